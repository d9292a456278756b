"""Witnesses of the decode server on the simulator: made by a capture, held by a restore, missed by a damaged one."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foundry import archive
from foundry.model import NONE

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "gpu"))

from tampering import with_constant  # noqa: E402

SERVER = HERE / "decode_server.py"
FOUNDRY = [sys.executable, "-m", "foundry"]
GRAPHS = 5


def run(command: list[Any], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOUNDRY_SIM")}
    return subprocess.run(
        list(map(str, command)),
        env={**kept, "XDG_CACHE_HOME": str(folder / "cache"), **more},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def captured(folder: Path, *flags: str) -> tuple[Path, str]:
    path = folder / "server.fdry"
    command = [*FOUNDRY, "capture", "--sim", *flags, "-o", path, "--", sys.executable, SERVER, "--once"]
    done = run(command, folder, FOUNDRY_SIM_SEED="7")
    assert done.returncode == 0, done.stderr
    assert "is not checked" not in done.stderr
    return path, done.stdout


@pytest.fixture(scope="module")
def witnessed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return captured(tmp_path_factory.mktemp("witnessed"), "--witness")


def restored(path: Path, folder: Path, *flags: str, seed: str = "8") -> tuple[str, dict[str, Any], str]:
    report = folder / "report.json"
    command = [*FOUNDRY, "restore", "--sim", *flags, path, "--report", report, "--"]
    done = run([*command, sys.executable, SERVER, "--once"], folder, FOUNDRY_SIM_SEED=seed)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(report.read_text()), done.stderr


def metadata(path: Path) -> dict[str, Any]:
    (process,) = archive.read(path).processes
    return {graph.key: json.loads(graph.metadata) for graph in process.graphs}


def test_a_witness_changes_nothing_else_in_the_archive(witnessed: tuple[Path, str], tmp_path: Path) -> None:
    path, output = witnessed
    plain, plain_output = captured(tmp_path)
    assert output == plain_output
    (one,), (other,) = archive.read(path).processes, archive.read(plain).processes
    assert [a.first_use for a in one.graphs] == [b.first_use for b in other.graphs] == GRAPHS * [NONE]
    for name in ("bodies", "parameters", "allocations"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    found = metadata(path)
    assert len(found) == GRAPHS
    assert all(len(entry["witness"]["found"]) == 17 for entry in found.values())
    for key, entry in metadata(plain).items():
        assert entry == {name: value for name, value in found[key].items() if name != "witness"}


@pytest.mark.parametrize("seed", ["7", "9"])
def test_a_restore_is_checked_and_gives_the_same_tokens(witnessed: tuple[Path, str], tmp_path: Path, seed: str) -> None:
    path, expected = witnessed
    output, report, _ = restored(path, tmp_path, "--check", seed=seed)
    assert output == expected
    assert report["graphs_restored"] == GRAPHS
    assert report["witnesses"] == {
        "checked": GRAPHS, "equal": GRAPHS, "differs": 0, "missing": 0, "unsteady": 0, "state": 0,
    }  # fmt: skip


def test_nothing_is_checked_unasked(witnessed: tuple[Path, str], tmp_path: Path) -> None:
    _, report, _ = restored(witnessed[0], tmp_path)
    assert (report["witnesses"]["checked"], report["graphs_restored"]) == (0, GRAPHS)


def test_graphs_without_a_witness_are_restored_and_told(tmp_path: Path) -> None:
    path, expected = captured(tmp_path)
    output, report, errors = restored(path, tmp_path, "--check")
    assert output == expected
    assert (report["witnesses"]["missing"], report["graphs_restored"]) == (GRAPHS, GRAPHS)
    assert errors.count("witness-missing: captured without `--witness`") == 1


def test_a_changed_constant_is_found_and_that_graph_captured(witnessed: tuple[Path, str], tmp_path: Path) -> None:
    path, expected = witnessed
    damaged = tmp_path / "damaged.fdry"
    # Rows that the last addition of the step is for: half of them.
    archive.write(with_constant(archive.read(path), "8", "add", struct.pack("<I", 8), struct.pack("<I", 4)), damaged)
    wrong, report, _ = restored(damaged, tmp_path)
    assert wrong != expected, "the change makes no difference, so finding it would prove nothing"
    assert report["graphs_restored"] == GRAPHS
    output, report, errors = restored(damaged, tmp_path, "--check")
    assert output == expected
    assert (report["witnesses"]["equal"], report["witnesses"]["differs"]) == (GRAPHS - 1, 1)
    assert (report["graphs_restored"], report["graphs_given_up"]) == (GRAPHS - 1, 1)
    (given_up,) = [told for process in report["processes"] for told in process["given_up"]]
    assert given_up["key"] == "8"
    assert given_up["reason"].startswith("witness-differs: ")
    assert "graph 8 of set decode is captured, not restored: witness-differs" in errors
