"""What `doctor` finds on machines that are made up, and that it never raises."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry.compat import probe
from foundry.session import doctor
from foundry.session.doctor import Check, Surroundings, driver, install, machine, self_test, storage

GIB = 1 << 30
GPU = probe.Device(0, "NVIDIA H200", "00" * 16, 9, 0, 132, 139 * GIB, True, 0, False, 100 * GIB, 0)
WHOLE = probe.Machine(version=13000, release="580.159.04", devices=(GPU,))
NONE = probe.Machine(fault="libcuda.so.1: cannot open shared object file: No such file or directory")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in {
        "proc/cpuinfo": "model name\t: A Processor\n",
        "proc/meminfo": "MemAvailable:   4194304 kB\n",
        "proc/self/status": "Seccomp:\t2\n",
        "proc/self/maps": "7f0000000000-7f0000001000 r-xp 0 0:0 0\n",
        "proc/sys/vm/overcommit_memory": "0",
        "proc/sys/vm/max_map_count": "65530",
        "proc/sys/vm/mmap_rnd_bits": "28",
        "proc/sys/kernel/randomize_va_space": "2",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue\n",
        "dev/nvidiactl": "",
    }.items():
        file = tmp_path / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "root"


def here(root: Path, found: probe.Machine = WHOLE, **environment: str) -> Surroundings:
    return Surroundings({"PATH": os.environ["PATH"], **environment}, found, root)


def one(found: Iterator[Check], what: str) -> Check:
    (check,) = [check for check in found if check.what == what]
    return check


def test_a_whole_machine(root: Path) -> None:
    surroundings = here(root)
    for looks in (machine.processor, machine.container, machine.kernel_memory, machine.address_space):
        assert all(check.state == doctor.GOOD or check.what == "fixed addresses" for check in looks(surroundings))
    checks = [*driver.kernel_module(surroundings), *driver.driver(surroundings), *driver.gpus(surroundings)]
    assert [(check.state, check.found) for check in checks] == [
        ("ok", "580.159.04"),
        ("ok", "CUDA 13.0, release 580.159.04; 1 GPU"),
        ("ok", "NVIDIA H200, compute 9.0, 132 multiprocessors, 139.0 GiB, 100.0 GiB free"),
    ]


def changed(**fields: object) -> probe.Machine:
    from dataclasses import replace

    return replace(WHOLE, devices=(replace(GPU, **fields),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "state", "text"),
    [
        (changed(mig=True), "ok", "a MIG slice"),
        (changed(virtualization=2), "ok", "a vGPU"),
        (changed(compute_mode=3), "ok", "compute mode exclusive"),
        (changed(compute_mode=2), "bad", "prohibited"),
        (changed(virtual_memory=False), "bad", "no virtual memory management"),
    ],
)
def test_gpus(root: Path, found: probe.Machine, state: str, text: str) -> None:
    check = one(driver.gpus(here(root, found)), "GPU 0")
    assert (check.state, text in check.found) == (state, True)
    assert bool(check.hint) == bool(check.stops) == (state == "bad")


def test_a_driver_that_is_old_broken_or_absent(root: Path) -> None:
    old = probe.Machine(version=12030, devices=(GPU,))
    assert "too old" in one(driver.driver(here(root, old)), "driver").found
    broken = probe.Machine(fault="cuInit: CUDA_ERROR_SYSTEM_NOT_READY")
    assert one(driver.driver(here(root, broken)), "driver").state == "bad"
    (root / "proc/driver/nvidia/version").unlink()
    for check in (
        one(driver.driver(here(root, NONE)), "driver"),
        one(driver.kernel_module(here(root)), "kernel module"),
    ):
        assert (check.state, check.stops) == ("note", ("gpu",))


def test_a_container_without_gpus_and_a_variable_that_hides_them(root: Path) -> None:
    (root / "dev/nvidiactl").unlink()
    assert "--gpus all" in one(driver.kernel_module(here(root)), "kernel module").hint
    hidden = here(root, probe.Machine(fault="cuInit: CUDA_ERROR_NO_DEVICE"), CUDA_VISIBLE_DEVICES="")
    assert one(driver.gpus(hidden), "CUDA_VISIBLE_DEVICES").state == "bad"


def test_the_toolkit_s_stub_is_no_driver(root: Path, tmp_path: Path) -> None:
    stub = tmp_path / "stubs"
    stub.mkdir()
    (stub / "libcuda.so.1").touch()
    check = one(driver.driver_library(here(root, LD_LIBRARY_PATH=str(stub))), "driver library")
    assert (check.state, "stub" in check.found) == ("bad", True)
    usual = root / "usr/lib/x86_64-linux-gnu"
    usual.mkdir(parents=True)
    (usual / "libcuda.so.1").touch()
    assert one(driver.driver_library(here(root)), "driver library").found == str(usual / "libcuda.so.1")


def test_ranges_that_are_taken(root: Path) -> None:
    maps = root / "proc/self/maps"
    maps.write_text("403500000000-403500001000 rw-p 0 0:0 0\n")
    assert "4 of 5" in one(machine.address_space(here(root)), "address space").found
    maps.write_text("100000000000-700000000000 ---p 0 0:0 0\nnot a line\n")
    check = one(machine.address_space(here(root)), "address space")
    assert (check.state, check.stops) == ("bad", ("gpu", "simulator"))


def test_limits_and_kernel_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (4096, 4096))
    found = {check.what: check for check in machine.limits(here(root))}
    assert found["limit of address space"].state == "bad"
    assert "ulimit -v unlimited" in found["limit of address space"].hint
    assert found["limit of file size"].state == "note"
    assert "open files 4096" in found["limits"].found
    (root / "proc/sys/vm/overcommit_memory").write_text("2")
    assert one(machine.kernel_memory(here(root)), "kernel memory").state == "note"


def test_randomisation_can_be_asked_about_without_being_changed() -> None:
    before = Path("/proc/self/personality").read_text()
    machine.may_fix_addresses()
    assert Path("/proc/self/personality").read_text() == before


def test_preloaded_libraries(root: Path, tmp_path: Path) -> None:
    (tmp_path / "libother.so").touch()
    assert one(install.preload(here(root)), "LD_PRELOAD").found == "empty"
    kept = one(install.preload(here(root, LD_PRELOAD=f"{tmp_path}/libother.so")), "LD_PRELOAD")
    assert (kept.state, kept.found) == ("note", f"{tmp_path}/libother.so; kept, after the hook")
    assert "is not there" in one(install.preload(here(root, LD_PRELOAD="/no/lib.so")), "LD_PRELOAD").found


def test_python_and_what_it_has(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "v" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    (tmp_path / "v" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    packages = tmp_path / "v" / "lib" / "python3.1" / "site-packages"
    for name in ("torch-2.11", "vllm-0.19"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    found = {check.what: check.found for check in install.python(here(root, PATH=str(program.parent)))}
    assert found == {"python": f"{program}, can be hooked", "torch": "2.11", "engines": "vllm 0.19"}
    none = one(install.python(here(root, PATH=str(tmp_path))), "python")
    assert none.state == "note"
    shim = tmp_path / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 0\n")
    shim.chmod(0o755)
    assert "a script" in one(install.python(here(root, PATH=str(shim.parent))), "python").found


def test_a_store_without_room(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    surroundings = here(root, XDG_CACHE_HOME=str(tmp_path))
    assert one(storage.store(surroundings), "store").found.startswith(f"{tmp_path}/foundry, 0 archives, ")
    monkeypatch.setattr(storage, "LEAST_ROOM", 1 << 62)
    assert one(storage.store(surroundings), "store").state == "note"
    assert one(storage.temporary(surroundings), "temporary folder").state == "note"


def test_a_look_that_fails_is_a_line_and_not_an_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_look(_: Surroundings) -> Iterator[Check]:
        raise RuntimeError("why not")

    monkeypatch.setattr(doctor, "LOOKS", (broken_look, machine.tracing))
    checks = doctor.examine(here(root))
    assert [(check.what, check.state) for check in checks] == [("broken look", "bad"), ("ptrace", "ok")]
    assert checks[0].found == "cannot be looked at: RuntimeError: why not"


def test_nothing_at_all_can_be_read(tmp_path: Path) -> None:
    checks = doctor.examine(Surroundings({}, NONE, tmp_path / "nothing"))
    assert [check for check in checks if "cannot be looked at" in check.found] == []


def test_the_verdict_names_what_is_in_the_way() -> None:
    checks = [Check("a", "ok", "x"), Check("driver", "note", "none", "", ("gpu",))]
    assert doctor.verdict(checks) == [
        "capture and restore on a GPU: no, because of: driver",
        "capture and restore with --sim: yes",
    ]
    assert doctor.sound(checks)
    hook = Check("hook", "bad", "gone", "install", ("gpu", "simulator"))
    assert not doctor.sound([hook])
    skipped = doctor.test({}, [hook])
    assert (skipped.state, skipped.found) == ("note", "on the simulator: not run, because of: hook")


class TestSelfTest:
    @pytest.mark.parametrize(
        ("program", "text"),
        [
            (("sleep", "60"), "the capture took too long"),
            (("false",), "the capture ended with 1: it said nothing"),
            (
                ("python3", "-c", "import sys; sys.exit('cuX: 218\\nfoundry: error: it ended with 1')"),
                "with 1: cuX: 218",
            ),
            (("echo", "hello"), "printed what it should not"),
            (("echo", '{"right": false}'), "computed something else than the same work without a graph"),
            (("echo", '{"right": true}'), "the capture did not run as it should"),
        ],
    )
    def test_what_goes_wrong_is_told_in_time(
        self, monkeypatch: pytest.MonkeyPatch, program: tuple[str, ...], text: str
    ) -> None:
        monkeypatch.setattr(self_test, "COMMAND", ("sh", "-c", " ".join([program[0], *map(repr, program[1:])])))
        begin = time.monotonic()
        check = self_test.run(os.environ, device=False, seconds=1)
        assert time.monotonic() - begin < 8
        assert (check.state, text in check.found) == ("bad", True), check.found
        assert check.stops == ("gpu", "simulator")

    def test_only_the_gpu_is_stopped_by_a_failure_on_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(self_test, "COMMAND", ("false",))
        assert self_test.run(os.environ, device=True).stops == ("gpu",)

    def test_results_are_compared(self, tmp_path: Path) -> None:
        captured = {"restored": 0, "results": {"1": 5}}
        assert self_test._compare(captured, {"restored": 1, "results": {"1": 5}}, tmp_path / "x") == 1
        with pytest.raises(self_test.Failed, match="something else"):
            self_test._compare(captured, {"restored": 1, "results": {"1": 6}}, tmp_path / "x")
        (tmp_path / "report").write_text('{"disarmed": {"python-0": "range taken"}}')
        with pytest.raises(self_test.Failed, match=r"0 of 1 graphs were restored: .*range taken"):
            self_test._compare(captured, {"restored": 0, "results": {"1": 5}}, tmp_path / "report")
