"""At least 20,000 changed archives: every reader and tool takes them or refuses them with a code, in bounded memory and
time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from robustness import mutants, verdicts

import foundry

SEED = 1
SHARDS = 4
EACH = 5_200
CODES = {
    "archive-content",
    "archive-footer",
    "archive-header",
    "archive-layout",
    "archive-limit",
    "archive-not-one",
    "archive-section-damaged",
    "archive-section-missing",
    "archive-section-size",
    "archive-section-unknown",
    "archive-table",
    "archive-too-new",
    "archive-truncated",
}
"""What the mutants must meet between them, so that they are known to reach every layer."""


def run(*arguments: str) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOUNDRY_")}
    # One for the modules' own address space, not for speed.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(foundry.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_mutants.py")), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture(scope="module")
def shard_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Run all shards, as many at a time as there are cores; give what one found."""

    def found(shard: int) -> dict[str, Any]:
        # The first shard has all cores and so reads with threads; each other one has a single core.
        cores = [] if shard == 0 else ["--one-core", str(shard)]
        folder = str(folders[shard])
        return run("--seed", str(SEED), "--first", str(shard * EACH), "--count", str(EACH), "--keep", folder, *cores)

    folders = [tmp_path_factory.mktemp("mutants") for _ in range(SHARDS)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(found, shard) for shard in range(SHARDS)]
        yield lambda shard: running[shard].result()


@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutants_are_taken_or_refused_with_a_code(shard: int, shard_of: Callable[[int], dict[str, Any]]) -> None:
    found = shard_of(shard)
    assert found["failures"] == []
    assert sum(found["verdicts"].values()) == EACH


@pytest.mark.timeout(900)
def test_the_mutants_reach_every_layer(shard_of: Callable[[int], dict[str, Any]]) -> None:
    found: Counter[str] = Counter()
    for shard in range(SHARDS):
        found.update(shard_of(shard)["verdicts"])
    assert sum(found.values()) >= 20_000
    assert set(found) >= CODES | {verdicts.ACCEPTED}
    assert set(found) <= CODES | {verdicts.ACCEPTED, "archive-empty"}
    assert found[verdicts.ACCEPTED] > 3_000 and found["archive-content"] > 4_000


def test_a_mutant_follows_from_its_number() -> None:
    assert [mutants.Mutants(3).mutant(number) for number in range(40)] == [
        mutants.Mutants(3).mutant(number) for number in range(40)
    ]


def test_what_is_not_changed_is_accepted(tmp_path: Path) -> None:
    for archive in mutants.vectors():
        path = tmp_path / "x.fdry"
        path.write_bytes(archive.whole)
        assert verdicts.of_reader(path) == verdicts.of_opened(path) == verdicts.of_small(archive.whole) == "accepted"
        path.write_bytes(mutants._built(archive, archive.pieces))
        assert verdicts.of_reader(path) == "accepted"
    assert len(mutants.vectors()) == len(list(mutants.VECTORS.glob("*.fdry")))


def test_a_fault_would_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustness import run_mutants

    def broken(path: Path) -> str:
        raise KeyError("roles")

    path = tmp_path / "x.fdry"
    assert run_mutants.tried(0, mutants.vectors()[0].whole, path) == ("accepted", "")
    monkeypatch.setattr(verdicts, "of_reader", broken)
    assert run_mutants.tried(0, b"", path)[1].startswith("KeyError: 'roles' (test_mutants.py")
    monkeypatch.setattr(verdicts, "of_reader", lambda path: "accepted")
    assert run_mutants.tried(1, b"", path) == ("accepted", "the reader says accepted, the small reader archive-empty")
