"""The seams against the released sources, and against the stand-ins that the tests run on."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from foundry.engines import seams
from foundry.engines.loader import adapters
from foundry.engines.protocol import Adapter, Seam
from foundry.engines.torch_seam import TorchAdapter

RELEASES = "FOUNDRY_RELEASES"
STAND_INS = Path(__file__).parents[2] / "engines" / "stand_ins"
SOURCE = """
class Runner:
    @decorated
    def run(self, size, *args, warm=False, **options):
        '''Say what.

        At length.'''
        # A reason.
        if warm:

            return size
        return args
"""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "runner.py").write_text(SOURCE)
    return tmp_path


def seam(text: str = SOURCE) -> Seam:
    function = ast.parse(text).body[0].body[0]  # type: ignore[attr-defined]
    return Seam(
        "engine.runner", "Runner.run", ("self", "size", "args", "warm", "options"), seams.digest_of(function, text)
    )


def test_a_seam_where_it_was_has_no_fault(release: Path) -> None:
    assert seams.fault_of(seam(), release) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# A reason.", "# Another reason."),
        ("Say what.", "Say something else."),
        ("        if warm:\n\n", "        if warm:\n"),
        ("        return args\n", "        return args\n\n    def other(self):\n        pass\n"),
    ],
)
def test_what_a_function_says_of_itself_is_not_what_it_does(release: Path, before: str, after: str) -> None:
    assert before in SOURCE
    (release / "engine" / "runner.py").write_text(SOURCE.replace(before, after))
    assert seams.fault_of(seam(), release) is None


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("return size", "return size + 1", "its source has changed"),
        ("size, *args", "count, *args", "takes (self, count, args, warm, options), not (self, size,"),
        ("def run", "def runs", "no such function"),
        ("class Runner", "class Runners", "no such function"),
    ],
)
def test_a_seam_that_moved_is_named(release: Path, before: str, after: str, fault: str) -> None:
    (release / "engine" / "runner.py").write_text(SOURCE.replace(before, after))
    assert fault in str(seams.fault_of(seam(), release))


def test_a_module_that_is_gone_is_named(release: Path) -> None:
    assert seams.fault_of(replace(seam(), module="engine.other"), release) == "no such module"


def test_a_setting_that_is_gone_is_named(release: Path) -> None:
    class Adapter(TorchAdapter):
        seams = ()
        fields: ClassVar = {("engine.config", "Config"): ("size", "mode", "gone"), ("engine.none", "Other"): ("one",)}

    (release / "engine" / "config.py").write_text(
        "class Config:\n    size: int = 1\n    other = 2\n\n    @property\n    def mode(self):\n        return 1\n"
    )
    assert seams.faults(Adapter(), release) == ["engine.config.Config: has no gone", "engine.none.Other: has no one"]


@pytest.mark.parametrize("adapter", adapters(), ids=lambda one: one.name)
def test_the_stand_ins_have_the_seams_that_are_replaced(adapter: Adapter) -> None:
    faults = [seams.fault_of(one, STAND_INS) for one in adapter.seams if one.replaced]
    # Their sources are shorter, their parameters the same.
    assert len(faults) >= 2
    assert [fault for fault in faults if fault is not None and "its source has changed" not in fault] == []


@pytest.mark.parametrize("adapter", adapters(), ids=lambda one: one.name)
def test_every_patched_module_has_a_seam_that_says_what_is_replaced(adapter: Adapter) -> None:
    assert {one.module for one in adapter.seams if one.replaced} == set(adapter.patches)


def test_the_released_sources_have_not_moved() -> None:
    folders = [Path(name) for name in os.environ.get(RELEASES, "").split(":") if name]
    if not folders:
        pytest.skip(f"{RELEASES} names no folder with an unpacked wheel")
    for folder in folders:
        present = [one for one in adapters() if (folder / one.name).is_dir()]
        assert present, f"no engine in {folder}"
        for adapter in present:
            assert seams.faults(adapter, folder) == []


def test_the_check_is_a_command(release: Path) -> None:
    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "foundry.engines.seams", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run().returncode == 2
    assert run(release).returncode == 1
    moved = run(STAND_INS)
    assert moved.returncode == 1
    assert "vllm.v1.worker.gpu_worker.Worker.determine_available_memory: its source has changed" in moved.stdout
