"""What is judged before the command starts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from foundry.compat import codes, gate
from foundry.compat.items import Item, Level


@dataclass
class Device:
    name: str


@dataclass
class Process:
    simulated: bool = False
    devices: list[Device] = field(default_factory=lambda: [Device("NVIDIA H200")])
    ranks: dict[str, str] = field(default_factory=dict)
    restorable: int = 1


@dataclass
class Archive:
    processes: list[Process] = field(default_factory=lambda: [Process()])
    context: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)


def start(*models: str, simulated: bool = False) -> gate.Start:
    return gate.Start(["python"], {}, simulated, models)


def judged(archive: Archive, start: gate.Start, *allowed: str) -> list[Item]:
    return gate.pass_through(gate.examine(archive, start), allowed)


def test_the_same_model_is_usable() -> None:
    items = judged(Archive(), start("NVIDIA H200", "NVIDIA A2"))
    assert {item.level for item in items if item.code != codes.ARGUMENTS} == {Level.SAME}


def test_an_unknown_machine_is_left_to_the_hook() -> None:
    judged(Archive(), start())
    judged(Archive([Process(devices=[])]), start("NVIDIA H200"))


def test_a_slice_of_a_gpu_is_left_to_the_hook() -> None:
    judged(Archive([Process(devices=[Device("NVIDIA H200 MIG 1g.18gb")])]), start("NVIDIA H200"))


def test_another_model_is_refused_with_both_names() -> None:
    with pytest.raises(gate.RefusedError) as caught:
        judged(Archive(), start("NVIDIA H100", "NVIDIA H100"))
    assert str(caught.value) == (
        "the archive must not be used here: mismatch-gpu-model: GPU model: archive NVIDIA H200, here NVIDIA H100"
    )
    assert caught.value.hint == (
        "capture again: `foundry capture -- CMD`; `--allow mismatch-gpu-model` restores all the same"
    )
    assert (caught.value.code, caught.value.exit_code) == (codes.GPU_MODEL, 5)
    (item, *_) = judged(Archive(), start("NVIDIA H100"), codes.GPU_MODEL)
    assert (item.code, item.level) == (codes.GPU_MODEL, Level.ALLOWED)


@pytest.mark.parametrize("simulated", [True, False])
def test_the_simulator_and_a_gpu_do_not_mix(simulated: bool) -> None:
    with pytest.raises(gate.RefusedError) as caught:
        judged(Archive([Process(simulated=not simulated)]), start(simulated=simulated))
    assert caught.value.code == codes.SIMULATED
    assert caught.value.hint is not None and "`--sim`" in caught.value.hint


def test_an_archive_with_nothing_to_restore() -> None:
    for archive in (Archive([]), Archive([Process(restorable=0)])):
        with pytest.raises(gate.RefusedError) as caught:
            judged(archive, start())
        assert caught.value.code == codes.NO_GRAPHS
        assert caught.value.hint == "capture again: `foundry capture -- CMD`"


def test_all_that_is_refused_is_named_at_once() -> None:
    archive = Archive(
        [Process(ranks={"RANK": "0", "WORLD_SIZE": "2"})],
        {"argv": '["python", "a.py"]', "driver_release": "570.1"},
        {"vllm": "0.27.0", "triton": "3.5"},
    )
    here = gate.Start(["python", "a.py", "--layers", "2"], {"WORLD_SIZE": "4"}, False, (), "580.2", {"vllm": "0.28.0"})
    with pytest.raises(gate.RefusedError) as caught:
        judged(archive, here)
    assert str(caught.value) == (
        "the archive must not be used here: "
        "mismatch-arguments: command: archive python a.py, here python a.py --layers 2; "
        "mismatch-ranks: ranks: archive RANK=0, WORLD_SIZE=2, here WORLD_SIZE=4; "
        "mismatch-engine: vllm: archive 0.27.0, here 0.28.0"
    )
    flags = "--allow mismatch-arguments --allow mismatch-ranks --allow mismatch-engine"
    assert caught.value.hint == f"capture again: `foundry capture -- CMD`; `{flags}` restores all the same"
    items = judged(archive, here, codes.ARGUMENTS, codes.RANKS, codes.ENGINE)
    assert {item.code: item.level for item in items if item.level is not Level.SAME} == {
        codes.PACKAGE: Level.WARN,
        codes.ARGUMENTS: Level.ALLOWED,
        codes.RANKS: Level.ALLOWED,
        codes.ENGINE: Level.ALLOWED,
        codes.RELEASE: Level.NOTE,
    }
    (item,) = [item for item in caught.value.items if item.code == codes.PACKAGE]
    assert (item.archive, item.here) == ("3.5", "not found")
