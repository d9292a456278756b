"""The documents of `inspect --json` are what `cli/JSON.md` says, for every view of every kind of archive."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.json_schema import of_object, read_schema
from helpers.showcase import showcase
from helpers.source import ROOT
from helpers.varied import varied_capture

from foundry import archive
from foundry.cli.main import run
from foundry.model import StartFile

SCHEMA = read_schema(ROOT / "cli" / "JSON.md")
VIEWS = ("summary", "graphs", "kernels", "memory", "files", "timeline", "findings", "sections")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archives") / "a.fdry"
    archive.write(showcase(2), path)
    return path


def told(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    code = run(["inspect", *map(str, words), "--json"])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return json.loads(captured.out)


def check(view: str, document: Any) -> None:
    assert of_object(SCHEMA, SCHEMA["Every document"] | SCHEMA[view], document, view) == []
    assert (document["schema"], document["view"]) == (1, view)


@pytest.mark.parametrize("view", VIEWS)
def test_the_documents_are_as_documented(shown: Path, capsys: pytest.CaptureFixture[str], view: str) -> None:
    words = [] if view == "summary" else [f"--{view}"]
    check(view, told(capsys, shown, *words))
    check(view, told(capsys, shown, *words, "--process", "rank-1"))


def test_the_files_of_a_start_are_as_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = (StartFile("~/a", 8, ((0, 4), (5, 1))), StartFile("/b", 0))
    archive.write(replace(showcase(), start_files=files), tmp_path / "a.fdry")
    document = told(capsys, tmp_path / "a.fdry", "--files")
    check("files", document)
    assert len(document["start_files"]) == 2


@pytest.mark.parametrize("words", [["--graph", "decode/4"], ["--graph", "prefill/8", "--node", "1"], ["--graph", "#0"]])
def test_a_graph_is_as_documented(shown: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    document = told(capsys, shown, *words, "--process", "rank-0")
    check("graph", document)
    assert document["whole"] == ("--node" not in words)


@pytest.mark.parametrize("seed", range(12))
def test_any_archive_is_as_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    path = tmp_path / "a.fdry"
    archive.write(varied_capture(random.Random(seed)), path)
    for view in VIEWS:
        check(view, told(capsys, path, *([] if view == "summary" else [f"--{view}"])))
    for row in told(capsys, path, "--graphs")["graphs"]:
        key = f"{row['set']}/{row['key']}" if row["set"] else row["key"]
        if key.count("/") < 2 and key:
            check("graph", told(capsys, path, "--graph", key, "--process", row["process"]))


def test_a_restore_report_stands_beside_the_timeline(
    shown: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    process = {
        "role": "rank-0", "graphs_restored": 2, "graphs_given_up": 1, "build_seconds": 0.25,
        "seconds": {"load_ns": 0.5}, "moments": {"commit": 3.5}, "counters": {},
    }  # fmt: skip
    report.write_text(json.dumps({"report": 1, "processes": [process]}))
    document = told(capsys, shown, "--timeline", "--restore-report", report)
    check("timeline", document)
    first, second = document["processes"]
    assert first["restore"] == {
        "spent": {"build": 0.25, "load": 0.5}, "moments": {"commit": 3.5}, "graphs_restored": 2, "graphs_given_up": 1,
    }  # fmt: skip
    assert (first["moments"], second["restore"]) == ({"init": 1.5, "commit": 9.25}, None)


def test_the_check_itself_finds_what_is_wrong() -> None:
    keys = {"a": "list of integer", "b?": "address or null"}
    assert of_object({}, keys, {"a": [1]}, "x") == []
    assert sorted(of_object({}, keys, {"a": [True], "b": "12", "c": 1}, "x")) == [
        "x.a[0]: True is no integer", "x.b: '12' is no address", "x: `c` is not documented",
    ]  # fmt: skip
    assert of_object({}, keys, {}, "x") == ["x: `a` is missing"]
