from __future__ import annotations

import os
from pathlib import Path

import pytest

from foundry.errors import NativeLibraryError
from foundry.launch import environment

SESSION = {"spool": Path("/s/spool"), "status": Path("/s/status"), "quiet": True}


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib"
    (folder / "sim").mkdir(parents=True)
    (folder / "libfoundry_hook.so").touch()
    (folder / "sim" / "libcuda.so.1").touch()
    monkeypatch.setenv("FOUNDRY_LIBRARY_DIR", str(folder))
    return folder


def test_capture(libraries: Path) -> None:
    assert environment.for_capture({"A": "1"}, simulated=False, **SESSION) == {
        "A": "1",
        "PYTHONPATH": str(environment.ADAPTERS),
        "LD_PRELOAD": str(libraries / "libfoundry_hook.so"),
        "FOUNDRY_MODE": "capture",
        "FOUNDRY_SPOOL": "/s/spool",
        "FOUNDRY_STATUS": "/s/status",
        "FOUNDRY_QUIET": "1",
        "FOUNDRY_COMMAND": f"child:{os.getpid()}",
    }


def test_python_tells_what_it_opens_only_where_that_is_asked_for(libraries: Path) -> None:
    without = {"FOUNDRY_ADAPTERS": "0"}
    hooked = environment.for_capture(without, simulated=False, opened=Path("/s/opened"), **SESSION)
    assert (hooked["PYTHONPATH"], hooked["FOUNDRY_OPENED"]) == (str(environment.ADAPTERS), "/s/opened")
    again = environment.for_capture(hooked, simulated=False, **SESSION)
    assert {"PYTHONPATH", "FOUNDRY_OPENED"} & again.keys() == set()


@pytest.mark.parametrize(("before", "after"), [("", ""), ("/a:/b", "/a:/b"), ("/a::", "/a::")])
def test_python_finds_the_adapters_in_hooked_commands_only(libraries: Path, before: str, after: str) -> None:
    adapters = str(environment.ADAPTERS)
    without = environment.for_capture({"FOUNDRY_ADAPTERS": "0", "PYTHONPATH": before}, simulated=False, **SESSION)
    assert without["PYTHONPATH"] == before
    hooked = environment.for_capture({"PYTHONPATH": before}, simulated=False, **SESSION)
    assert hooked["PYTHONPATH"].split(":", 1) == [adapters, *([after] if after else [])]
    again = environment.for_capture(hooked, simulated=False, **SESSION)
    assert again["PYTHONPATH"] == hooked["PYTHONPATH"]
    assert environment.plain(hooked).get("PYTHONPATH", "") == after
    assert "PYTHONPATH" not in environment.plain(environment.for_capture({}, simulated=False, **SESSION))


def test_a_colon_in_foundrys_own_path_does_not_cut_it(
    libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "a:b" / "site"
    odd.mkdir(parents=True)
    monkeypatch.setattr(environment, "ADAPTERS", odd)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    named = environment.for_capture({}, simulated=False, **SESSION)["PYTHONPATH"]
    assert ":" not in named
    assert Path(named).resolve() == odd


def test_restore_on_the_simulator(libraries: Path) -> None:
    made = environment.for_restore({"LD_LIBRARY_PATH": "/a:/b"}, image=Path("/i"), simulated=True, **SESSION)
    assert made["LD_LIBRARY_PATH"] == f"{libraries / 'sim'}:/a:/b"
    assert (made["FOUNDRY_MODE"], made["FOUNDRY_IMAGE"]) == ("restore", "/i")


def test_where_images_come_in_is_told_and_never_inherited(libraries: Path) -> None:
    base = {"FOUNDRY_BUILDING": "/other"}
    assert "FOUNDRY_BUILDING" not in environment.for_restore(base, image=Path("/i"), simulated=False, **SESSION)
    made = environment.for_restore(base, image=Path("/i"), building=Path("/b"), simulated=False, **SESSION)
    assert made["FOUNDRY_BUILDING"] == "/b"


def test_an_early_start_names_the_command(libraries: Path) -> None:
    base = {"FOUNDRY_EARLY": "other-0:0", "FOUNDRY_COMMAND": "child:1", "FOUNDRY_PROCESS": "1:Worker"}
    names = {"FOUNDRY_EARLY", "FOUNDRY_COMMAND"}
    made = environment.for_restore(base, image=Path("/i"), simulated=False, **SESSION)
    assert base.keys() & made.keys() == {"FOUNDRY_COMMAND"}
    assert made["FOUNDRY_COMMAND"] == f"child:{os.getpid()}"
    for replaces, process in ((False, "child"), (True, "self")):
        made = environment.for_restore(
            base, image=Path("/i"), simulated=False, early="python-0:0", replaces=replaces, **SESSION
        )
        assert {name: made[name] for name in names} == {
            "FOUNDRY_EARLY": "python-0:0",
            "FOUNDRY_COMMAND": f"{process}:{os.getpid()}",
        }


def test_witnesses_and_checks_are_asked_for_and_never_inherited(libraries: Path) -> None:
    base = {"FOUNDRY_WITNESS": "1", "FOUNDRY_CHECK": "1"}
    names = set(base)
    assert names & environment.for_capture(base, simulated=False, **SESSION).keys() == set()
    assert names & environment.for_restore(base, image=Path("/i"), simulated=False, **SESSION).keys() == set()
    made = environment.for_capture({}, simulated=False, witness=True, **SESSION)
    assert names & made.keys() == {"FOUNDRY_WITNESS"}
    made = environment.for_restore({}, image=Path("/i"), simulated=False, check=True, **SESSION)
    assert names & made.keys() == {"FOUNDRY_CHECK"}
    assert made["FOUNDRY_CHECK"] == "1"
    made = environment.for_restore({}, image=Path("/i"), simulated=False, only_equal=True, **SESSION)
    assert made["FOUNDRY_CHECK"] == "only"


@pytest.mark.parametrize("separator", [":", " ", ": "])
def test_the_users_preloads_stay_behind_the_hook(libraries: Path, separator: str) -> None:
    base = {"LD_PRELOAD": separator.join(["/x/liba.so", "/old/libfoundry_hook.so", "libb.so"])}
    made = environment.for_capture(base, simulated=False, **SESSION)
    assert made["LD_PRELOAD"] == f"{libraries / 'libfoundry_hook.so'}:/x/liba.so:libb.so"


def test_plain_takes_the_hook_out_and_leaves_the_rest() -> None:
    base = {"LD_PRELOAD": "/old/libfoundry_hook.so", "FOUNDRY_MODE": "capture", "FOUNDRY_SIM_SEED": "1", "B": "2"}
    assert environment.plain(base) == {"FOUNDRY_SIM_SEED": "1", "B": "2"}
    assert environment.plain({"LD_PRELOAD": "/x/liba.so"}) == {"LD_PRELOAD": "/x/liba.so"}


def test_the_base_is_not_changed() -> None:
    base = {"LD_PRELOAD": "liba.so", "FOUNDRY_MODE": "x"}
    environment.for_capture(base, simulated=True, **SESSION)
    assert base == {"LD_PRELOAD": "liba.so", "FOUNDRY_MODE": "x"}


def test_a_path_that_a_list_cannot_hold_gets_a_link(tmp_path: Path) -> None:
    path = tmp_path / "a b:c" / "lib.so"
    path.parent.mkdir()
    path.touch()
    name = environment.loadable(path)
    assert " " not in name
    assert ":" not in name
    assert Path(name).samefile(path)
    assert environment.loadable(path) == name


def test_missing_libraries_are_named(libraries: Path) -> None:
    (libraries / "sim" / "libcuda.so.1").unlink()
    with pytest.raises(NativeLibraryError, match=r"the simulator is missing: no file `.*/sim/libcuda\.so\.1`"):
        environment.plain({}, simulated=True)
    (libraries / "libfoundry_hook.so").unlink()
    with pytest.raises(NativeLibraryError, match="the hook is missing"):
        environment.for_capture({}, simulated=False, **SESSION)
