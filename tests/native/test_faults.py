"""Each driver function that a program reaches fails: at its first, second and last call, in capture and in restore.

The program notices nothing of what fails in the hook's own calls; what fails in its own is told as the driver's error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock

import pytest
from helpers.native_build import link_simulator
from helpers.source import NATIVE
from native.fault_cases import FAULTS, RELEASING, Ending, Subject, build_images, cases, judge_all
from native.hook_run import Bench, events

from foundry.spool.reader import process_folders, read_spool

TWIN = ("_ptsz", "_ptds")
PER_THREAD = ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "-Wl,--as-needed")
"""A program of which every call with a stream is that of the per-thread default stream; another file, for its flag."""
PROGRAMS = {"every_call": (), "rare_calls": (), "every_call per thread": PER_THREAD}
DEFINITIONS = NATIVE / "table" / "driver_functions.def"
ROW = re.compile(r"^FN(?:_STREAM)?\(\w+, (\w+), (?:([a-z]\w*), )?\d+, (\w+), (\w+),", re.M)
STICKY_AT = ("cuLaunchKernel", "cuGraphLaunch", "cuStreamSynchronize", "cuCtxSynchronize", "cuMemAlloc_v2")
STICKY_IN_RESTORE = ("cuMemCreate", "cuMemMap", "cuLibraryLoadData", "cuGraphInstantiateWithFlags", "cuStreamCreate")
NEVER_REACHED = {
    "cuGetProcAddress_v2": "a static list of names is linked, not looked up; `test_hook.py::TestDoors` asks it",
}


@pytest.fixture(scope="module", params=PROGRAMS)
def subject(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Subject:
    bench = Bench(tmp_path_factory.mktemp("fault_programs"))
    program = bench.program(request.param.split()[0], *link_simulator(), *PROGRAMS[request.param])
    return Subject([str(program), str(bench.folder / "kernels.image")], tmp_path_factory.mktemp("faults"))


def chosen(subject: Subject, calls: Mapping[str, int], what: str) -> list[str]:
    """The cases of a program: of the one for twins these only, as the others are those of the first."""
    of_twins = any(name.endswith(TWIN) for name in subject.plain.calls)
    return cases({name: calls[name] for name in calls if name.endswith(TWIN) or not of_twins}, what)


@pytest.fixture(scope="module")
def images(subject: Subject) -> Path:
    usual = subject.run("captured", "capture")
    assert usual.result == subject.plain.result
    return build_images(usual.session, subject.folder / "images")


def test_every_function_of_the_list_that_is_hooked_is_reached(tmp_path: Path) -> None:
    """Those whose calls the hook does more with than pass them on, old versions and twins among them."""
    (tmp_path / "programs").mkdir()
    bench = Bench(tmp_path / "programs")
    reached: set[str] = set()
    for name, flags in PROGRAMS.items():
        folder = tmp_path / name
        folder.mkdir()
        program = bench.program(name.split()[0], *link_simulator(), *flags)
        subject = Subject([str(program), str(bench.folder / "kernels.image")], folder)
        reached |= {*subject.plain.calls, *subject.run("captured", "capture").calls}
    hooked: set[str] = set()
    for function, twin, on_capture, on_restore in ROW.findall(DEFINITIONS.read_text()):
        if {on_capture, on_restore} != {"pass"}:
            hooked |= {function, *([f"{function}_{twin}"] if twin else ())}
    assert len(hooked) > 80
    assert hooked - reached == set(NEVER_REACHED)


def test_the_program_itself_ends_in_order_and_leaves_nothing(subject: Subject) -> None:
    assert subject.plain.code == 0
    assert subject.plain.alive == {}

    def judge(fault: str) -> Iterator[str]:
        ending = subject.run(f"alone-{fault}", None, FOUNDRY_SIM_FAIL=fault)
        if ending.code not in (0, 10):
            yield f"{ending.code} {ending.errors}"

    judge_all(chosen(subject, subject.plain.calls, "plain"), judge)


@pytest.mark.timeout(1200)
def test_a_capture_with_a_fault(subject: Subject) -> None:
    usual = subject.run("capture-usual", "capture")

    def judge(fault: str) -> Iterator[str]:
        ending = subject.run(f"capture-{fault}", "capture", FOUNDRY_SIM_FAIL=fault)
        yield from subject.judge(fault, ending, usual)
        if not process_folders(ending.session):
            if ending.code == 0 and "disarmed" not in ending.status:
                yield "there is no spool, and nothing says why"
            return
        # What was captured in spite of it must restore to the same results, or be captured anew.
        found = build_images(ending.session, ending.session / "images")
        again = subject.run(f"capture-{fault}-again", "restore", FOUNDRY_IMAGE=str(found), FOUNDRY_SIM_SEED="8")
        if again.result != subject.plain.result:
            yield f"restored: {again.code} {again.output[-600:]}{again.errors[-600:]}"

    judge_all(chosen(subject, usual.calls, "capture"), judge)


@pytest.mark.timeout(1200)
def test_a_restore_with_a_fault(subject: Subject, images: Path) -> None:
    usual = subject.run("restore-usual", "restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8")
    assert usual.result == subject.plain.result
    (spool,) = filter(None, map(read_spool, process_folders(usual.session)))
    keys = {event.key for event in events(spool, "GraphRestored")}
    assert keys

    def judge(fault: str) -> Iterator[str]:
        ending = subject.run(
            f"restore-{fault}", "restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8", FOUNDRY_SIM_FAIL=fault
        )
        yield from subject.judge(fault, ending, usual)
        if ending.code == 0 and "disarmed" not in ending.status:
            yield from untold(ending.session, keys)

    judge_all(chosen(subject, usual.calls, "restore"), judge)


def test_a_restore_in_which_a_call_takes_long(subject: Subject, images: Path) -> None:
    """Longer than the restore waits: whatever it was doing is given up, and the program's own calls are waited for."""
    usual = subject.run("restore-quick", "restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8")

    def judge(function: str) -> Iterator[str]:
        hang = f"{function}:1:300,{function}:{usual.calls[function]}:100"
        slow = {"FOUNDRY_SIM_HANG": hang, "FOUNDRY_PATIENCE": "0.05"}
        ending = subject.run(
            f"restore-slow-{function}", "restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8", **slow
        )
        yield from subject.judge(f"{function}:1:0", ending, usual)

    of_twins = any(name.endswith(TWIN) for name in subject.plain.calls)
    judge_all([name for name in sorted(usual.calls) if name.endswith(TWIN) or not of_twins], judge, at_once=8)


def untold(session: Path, keys: set[str]) -> Iterator[str]:
    """Say which graphs were neither given to the program nor refused with a reason."""
    for folder in process_folders(session):
        spool = read_spool(folder)
        assert spool is not None
        told = {event.key: event for event in events(spool, "GraphRestored")}
        for key in keys:
            if key not in told or not (told[key].state or told[key].reason):
                yield f"nothing is told of graph {key}"


def told(ending: Ending) -> tuple[int, str]:
    """Leave out what releasing calls said: the hook releases in its own time, and answers some of them itself."""
    lines = ending.output.splitlines()
    return ending.code, "\n".join(
        line for line in lines if not (line.startswith("error cu") and any(word in line for word in RELEASING))
    )


@pytest.mark.timeout(600)
def test_a_context_that_is_lost(subject: Subject, images: Path) -> None:
    """From some call on the driver answers nothing else: as a plain run's that is lost at some call, and no hang."""
    known: set[tuple[int, str]] = {told(subject.plain)}
    lock = Lock()

    def lose(number: str) -> Iterator[str]:
        ending = subject.run(f"lost-{number}", None, FOUNDRY_SIM_STICKY=f"any:{number}")
        with lock:
            known.add(told(ending))
        if ending.code < 0:
            yield f"{ending.code} {ending.errors[-600:]}"

    judge_all([str(number + 1) for number in range(sum(subject.plain.calls.values()))], lose)
    assert len(known) > 50

    def judge(case: str) -> Iterator[str]:
        mode, function, nth = case.split(":")
        more = {"FOUNDRY_IMAGE": str(images), "FOUNDRY_SIM_SEED": "8"} if mode == "restore" else {}
        sticky = {"FOUNDRY_SIM_STICKY": f"{function}:{nth}"}
        ending = subject.run(f"lost-{mode}-{function}-{nth}", mode, **more, **sticky)
        if told(ending) not in known or any(word in ending.errors for word in FAULTS):
            yield f"{ending.code} {ending.output[-600:]}{ending.errors[-600:]}"

    functions = {"capture": STICKY_AT, "restore": (*STICKY_AT, *STICKY_IN_RESTORE)}
    wanted = [f"{mode}:{name}:{nth}" for mode, names in functions.items() for name in names for nth in (1, 2, 5)]
    judge_all([*wanted, *(f"{mode}:any:{nth}" for mode in functions for nth in range(5, 400, 13))], judge)
