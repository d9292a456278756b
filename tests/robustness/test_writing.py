"""Whatever call fails, and wherever foundry is killed: the whole old file or the whole new one, and nothing for long
beside it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.varied import varied_spool

import foundry

HERE = Path(__file__).parent
Runs = list[dict[str, Any]]
SAYS = {
    "full": "the file system is full; {size} bytes are needed",
    "limit": "a file may not be that large here; {size} bytes are needed",
    "broken": "Input/output error",
    "read-only": "Read-only file system",
}


@pytest.fixture(scope="module")
def runs_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("writing")
    library = folder / "failing_calls.so"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "failing_calls.c"), "-ldl"], check=True
    )
    varied_spool(folder / "session", "python-0", random.Random(4))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOUNDRY_")}
    environment |= {
        "LD_PRELOAD": str(library),
        "PYTHONPATH": str(Path(foundry.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
    }

    def run(what: str) -> Runs:
        place = folder / what
        place.mkdir()
        ended = subprocess.run(
            [sys.executable, str(HERE / "failing_writes.py"), what, str(folder / "session"), str(place / "target")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        found: Runs = json.loads(ended.stdout)
        return found

    return run


def faults(runs: Runs, *modes: str) -> Runs:
    found = [run for run in runs if run["mode"] in modes]
    assert {run["mode"] for run in found} == set(modes)
    return found


@pytest.mark.parametrize("what", ["archive", "archive-replaced"])
def test_an_archive_is_there_whole_or_not_at_all(runs_of: Any, what: str) -> None:
    runs = runs_of(what)
    whole = runs[0]["left"]
    assert runs[0]["code"] == 0 and list(whole) == ["x.fdry"]
    old = {"x.fdry": runs_old(runs)} if what == "archive-replaced" else {}
    for run in runs:
        assert {name: digest for name, digest in run["left"].items() if name == "x.fdry"} in (old, whole), run
        assert run["after"] == whole, run
    for run in faults(runs, "short", "interrupted"):
        assert (run["code"], run["left"]) == (0, whole), run
    for run in faults(runs, "full", "limit", "broken", "read-only"):
        done = run["left"].get("x.fdry") == whole["x.fdry"]
        assert run["code"] == (0 if done else 125), run
        size = next(word for word in faults(runs, "limit")[0]["said"].split() if word.isdigit())
        assert done or SAYS[run["mode"]].format(size=size) in run["said"], run
        assert done or ("cannot write `" in run["said"] and "Traceback" not in run["said"]), run
    for run in faults(runs, "broken", "limit"):
        assert run["left"] in (old, whole) or run["code"] == 0, run
    killed = faults(runs, "killed")
    assert len(killed) > 10
    assert {run["left"].get("x.fdry") for run in killed} == {old.get("x.fdry"), whole["x.fdry"]}


def runs_old(runs: Runs) -> str:
    old: str = faults(runs, "killed")[0]["left"]["x.fdry"]
    assert old != runs[0]["left"]["x.fdry"]
    return old


def test_restore_images_are_there_whole_or_are_made_again(runs_of: Any) -> None:
    runs = runs_of("images")
    name = "images/id-1/python-0.image"
    # The note beside them tells one file from another, so that none is like another's.
    for run in runs:
        for when in ("left", "after"):
            run[when] = {path: digest for path, digest in run[when].items() if path != "images/id-1/whole"}
    whole = runs[0]["left"]
    assert runs[0]["code"] == 0 and list(whole) == [name]
    old = faults(runs, "killed")[0]["left"][name]
    for run in runs:
        assert run["left"].get(name) in (None, old, whole[name]), run
        assert all(path == name or path.startswith("images/.id-1") for path in run["left"]), run
        assert run["after"] == whole, run
        assert run["mode"] == "killed" or run["code"] == (0 if run["left"].get(name) == whole[name] else 1), run
    for run in faults(runs, "short", "interrupted"):
        assert (run["code"], run["left"]) == (0, whole), run
    assert len(faults(runs, "killed")) > 8
