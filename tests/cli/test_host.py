"""`foundry verify --host`: it must say beforehand what a restore would do."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from helpers.commandline import CommandLine

from foundry import native
from foundry.cli.hosting import item_lines
from foundry.compat.items import Item, Level

SELF_TEST = [sys.executable, "-m", "foundry.selftest"]


@pytest.fixture
def command(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    made = CommandLine(tmp_path_factory.mktemp("host"), native.library_directory())
    assert made.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *SELF_TEST).returncode == 0
    return made


def compared(command: CommandLine, *words: str, **environment: str) -> tuple[int, dict[str, str]]:
    result = command.run("verify", "--host", "--json", "a.fdry", *words, environment=environment)
    assert result.stderr == ""
    host = json.loads(result.stdout)["host"]
    assert host["usable"] == (result.returncode != 5)
    return result.returncode, {item["code"]: item["severity"] for item in host["items"] if item["severity"] != "same"}


def test_the_same_machine(command: CommandLine) -> None:
    assert compared(command, "--sim") == (0, {})
    assert compared(command, "--sim", "--", *SELF_TEST) == (0, {})


def test_another_command(command: CommandLine) -> None:
    assert compared(command, "--sim", "--", sys.executable, "-m", "foundry.selftest", "-v") == (
        5,
        {"mismatch-arguments": "refuse"},
    )
    result = command.run("verify", "--host", "--json", "a.fdry", "--", "no-such-command")
    assert (result.returncode, json.loads(result.stdout)["error"]["code"]) == (127, "command-not-found")


@pytest.mark.parametrize(
    ("environment", "codes"),
    [
        ({"FOUNDRY_SIM_VERSION": "12080"}, {"mismatch-driver": "refuse"}),
        ({"FOUNDRY_SIM_VERSION": "13010"}, {"mismatch-driver": "note"}),
        (
            {"FOUNDRY_SIM_GPU": "NVIDIA Simulated A100:8.0:108"},
            {
                "mismatch-gpu-model": "refuse",
                "mismatch-compute-capability": "refuse",
                "mismatch-multiprocessors": "refuse",
            },
        ),
        ({"FOUNDRY_SIM_GPU": "NVIDIA Simulated H200:9.0:114"}, {"mismatch-multiprocessors": "refuse"}),
        ({"FOUNDRY_SIM_MEMORY": str(400 << 30)}, {"mismatch-arenas": "note"}),
        ({"FOUNDRY_SIM_DEVICES": "2"}, {}),
    ],
)
def test_it_refuses_what_the_hook_gives_up(
    command: CommandLine, environment: dict[str, str], codes: dict[str, str]
) -> None:
    status, found = compared(command, "--sim", **environment)
    assert found == codes
    refused = "refuse" in codes.values()
    assert status == (5 if refused else 0)
    restored = command.run("restore", "-q", "--sim", "a.fdry", "--", *SELF_TEST, environment=environment)
    assert (json.loads(restored.stdout)["restored"] == 0) == refused, restored.stderr


def test_no_gpu_and_no_driver(command: CommandLine) -> None:
    status, found = compared(command, "--sim", FOUNDRY_SIM_DEVICES="0")
    assert (status, found["host-no-driver"]) == (5, "refuse")
    status, found = compared(command, LD_LIBRARY_PATH="/nowhere")
    assert (status, found["mismatch-simulated"]) == (5, "refuse")


def test_lines() -> None:
    same = Item("mismatch-mig", "MIG slice", "no", "no", Level.SAME)
    assert item_lines("a.fdry", [same]) == ["`a.fdry` can be restored here: 1 same"]
    other = Item("mismatch-driver", "CUDA of the driver", "13.0", "12.8", Level.REFUSE, "python-0")
    assert item_lines("a.fdry", [other, same]) == [
        "`a.fdry` cannot be restored here: 1 refuse, 1 same",
        "refuse: mismatch-driver: python-0: CUDA of the driver: archive 13.0, here 12.8",
        "can be allowed: --allow mismatch-driver",
    ]
    never = Item("mismatch-simulated", "simulated", "the simulator", "a real driver", Level.REFUSE)
    assert item_lines("a.fdry", [never, other])[-1] == "never allowed: mismatch-simulated"
    allowed = replace(other, level=Level.ALLOWED)
    assert item_lines("a.fdry", [allowed, same]) == [
        "`a.fdry` can be restored here: 1 allowed, 1 same",
        "allowed: mismatch-driver: python-0: CUDA of the driver: archive 13.0, here 12.8",
    ]
