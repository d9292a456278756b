"""Each driver function that a program reaches fails: at its first, second and last call, in capture and in restore.

The program notices nothing of what fails in the hook's own calls; what fails in its own is told as the driver's error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.native_build import link_simulator
from native.fault_cases import Subject, build_images, cases, judge_all
from native.hook_run import Bench, events

from foundry.spool.reader import process_folders, read_spool


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    bench = Bench(tmp_path_factory.mktemp("fault_programs"))
    program = bench.program("every_call", *link_simulator())
    return Subject([str(program), str(bench.folder / "kernels.image")], tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def images(subject: Subject) -> Path:
    usual = subject.run("captured", "capture")
    assert usual.result == subject.plain.result
    return build_images(usual.session, subject.folder / "images")


def test_the_program_itself_ends_in_order_and_leaves_nothing(subject: Subject) -> None:
    assert subject.plain.code == 0
    assert subject.plain.alive == {}

    def judge(fault: str) -> Iterator[str]:
        ending = subject.run(f"alone-{fault}", None, FOUNDRY_SIM_FAIL=fault)
        if ending.code not in (0, 10):
            yield f"{ending.code} {ending.errors}"

    judge_all(cases(subject.plain.calls), judge)


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

    judge_all(cases(usual.calls), judge)


@pytest.mark.timeout(1200)
def test_a_restore_with_a_fault(subject: Subject, images: Path) -> None:
    usual = subject.run("restore-usual", "restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8")
    assert usual.result == subject.plain.result

    def judge(fault: str) -> Iterator[str]:
        ending = subject.run(
            f"restore-{fault}", "restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8", FOUNDRY_SIM_FAIL=fault
        )
        yield from subject.judge(fault, ending, usual)
        if ending.code == 0 and "disarmed" not in ending.status:
            yield from untold(ending.session)

    judge_all(cases(usual.calls), judge)


def untold(session: Path) -> Iterator[str]:
    """Say which graphs were neither given to the program nor refused with a reason."""
    for folder in process_folders(session):
        spool = read_spool(folder)
        assert spool is not None
        told = {event.key: event for event in events(spool, "GraphRestored")}
        for key in ("4", "2", "1", "outer", "shape-1", "shape-2", "shape-3"):
            if key not in told or not (told[key].state or told[key].reason):
                yield f"nothing is told of graph {key}"
