from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from foundry.compat import gate
from foundry.errors import MismatchError


@dataclass
class Device:
    name: str


@dataclass
class Process:
    simulated: bool = False
    devices: list[Device] = field(default_factory=lambda: [Device("NVIDIA H200")])


@dataclass
class Archive:
    processes: list[Process] = field(default_factory=lambda: [Process()])
    context: dict[str, str] = field(default_factory=dict)


def test_the_same_model_is_usable() -> None:
    gate.require_usable(Archive(), ["NVIDIA H200", "NVIDIA A2"], simulated=False)


def test_an_unknown_machine_is_left_to_the_hook() -> None:
    gate.require_usable(Archive(), [], simulated=False)
    gate.require_usable(Archive([Process(devices=[])]), ["NVIDIA H200"], simulated=False)


def test_a_slice_of_a_gpu_is_left_to_the_hook() -> None:
    archive = Archive([Process(devices=[Device("NVIDIA H200 MIG 1g.18gb")])])
    gate.require_usable(archive, ["NVIDIA H200"], simulated=False)


def test_another_model_is_refused_with_both_names() -> None:
    with pytest.raises(MismatchError, match="captured on `NVIDIA H200`, and this machine has `NVIDIA H100`") as caught:
        gate.require_usable(Archive(), ["NVIDIA H100", "NVIDIA H100"], simulated=False)
    assert caught.value.code == gate.GPU_MODEL
    assert caught.value.exit_code == 5


@pytest.mark.parametrize("simulated", [True, False])
def test_the_simulator_and_a_gpu_do_not_mix(simulated: bool) -> None:
    with pytest.raises(MismatchError) as caught:
        gate.require_usable(Archive([Process(simulated=not simulated)]), [], simulated=simulated)
    assert caught.value.code == gate.SIMULATED


def test_equal_commands_differ_in_nothing() -> None:
    archive = Archive(context={"argv": json.dumps(["python", "x.py"]), "env.RANK": "0"})
    assert gate.differences(archive, ["/usr/bin/python", "x.py"], {"RANK": "0", "OTHER": "1"}) == []


def test_arguments_and_variables_are_compared() -> None:
    archive = Archive(context={"argv": json.dumps(["python", "x.py"]), "env.CUDA_MODULE_LOADING": "EAGER"})
    assert gate.differences(archive, ["python", "y.py"], {"RANK": "1"}) == [
        "captured with other arguments: `python x.py`",
        "RANK is `1`, at the capture it was not set",
        "CUDA_MODULE_LOADING is not set, at the capture it was `EAGER`",
    ]


@pytest.mark.parametrize("text", ["", "null", "7", "{", '["x"'])
def test_a_strange_context_is_no_failure(text: str) -> None:
    assert gate.differences(Archive(context={"argv": text}), ["python"], {"RANK": "1"}) == []


def test_arguments_are_shown_as_a_shell_takes_them() -> None:
    archive = Archive(context={"argv": json.dumps(["/a b/python", "x.py"])})
    assert gate.differences(archive, ["python", "y.py"], {}) == ["captured with other arguments: `'/a b/python' x.py`"]
