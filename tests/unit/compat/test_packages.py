from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from foundry.compat import packages


def distribution(folder: Path, name: str) -> None:
    (folder / f"{name}.dist-info").mkdir(parents=True)


def test_versions_are_read_off_folder_names_and_the_first_folder_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    distribution(first, "torch-2.11.0+cu130")
    distribution(first, "Flash_Attn-2.8")
    distribution(second, "torch-1.0")
    distribution(second, "vllm-0.19")
    (second / "broken.dist-info").mkdir()
    assert packages.versions([first, tmp_path / "none", second]) == {
        "flash-attn": "2.8",
        "torch": "2.11.0+cu130",
        "vllm": "0.19",
    }


@pytest.mark.parametrize("name", ["bash", "python.sh", "pythonista", "serve"])
def test_other_programs_import_from_nowhere(tmp_path: Path, name: str) -> None:
    assert packages.import_folders(tmp_path / "bin" / name, {"PYTHONPATH": "/x"}) == []


def test_a_virtual_environment_sees_its_own_folder_and_the_path_only(tmp_path: Path) -> None:
    venv.create(tmp_path / "v", with_pip=False)
    program = tmp_path / "v" / "bin" / "python"
    user = tmp_path / "home" / ".local" / "lib" / "python3.1" / "site-packages"
    user.mkdir(parents=True)
    environment = {"PYTHONPATH": f"{tmp_path}/extra:", "HOME": str(tmp_path / "home")}
    found = packages.import_folders(program, environment)
    asked = subprocess.run(
        [program, "-c", "import sys; print(*sys.path, sep='\\n')"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert found[0] == tmp_path / "extra"
    assert [str(path) for path in found if "site-packages" in str(path)] == [
        path for path in asked if path.endswith("site-packages")
    ]
    assert user not in found


def test_an_interpreter_sees_the_user_s_folder_unless_told_not_to(tmp_path: Path) -> None:
    program = tmp_path / "usr" / "bin" / "python3.12"
    own = tmp_path / "usr" / "lib" / "python3.12" / "site-packages"
    system = tmp_path / "usr" / "lib" / "python3" / "dist-packages"
    user = tmp_path / "home" / ".local" / "lib" / "python3.12" / "site-packages"
    for folder in (own, system, user, program.parent):
        folder.mkdir(parents=True)
    program.touch()
    environment = {"HOME": str(tmp_path / "home")}
    assert packages.import_folders(program, environment) == [user, own, system]
    assert packages.import_folders(program, {**environment, "PYTHONNOUSERSITE": "1"}) == [own, system]


def test_this_interpreter_s_packages_are_found() -> None:
    import pytest as itself

    assert packages.versions(packages.import_folders(Path(sys.executable), {}))["pytest"] == itself.__version__
