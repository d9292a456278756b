"""A proven archive of the decode job, used at another base: no finding of the proof, and bit-equal results."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from scenarios import FOUNDRY, HERE, OTHER_FILES, check_job, run
from tampering import with_other_leftovers, without_proof

from foundry.archive import open_archive, read, write

RECORDED_BASE = "0x403500000000"
OCCUPY = """
import ctypes, os
if os.environ.get("FOUNDRY_MODE") == "restore":
    map = ctypes.CDLL(None).mmap
    map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *4 * [ctypes.c_long]]
    place = int(os.environ["OCCUPIED"], 16)
    assert map(place, 1 << 21, 0, 0x100022, -1, 0) == place
"""
"""Takes the recorded base before anything of CUDA is loaded, as a library that lies there would."""


def proof_of(archive: Path) -> dict[str, Any]:
    """Tell what an archive says of its proof: counts, and its findings by code."""
    with open_archive(archive) as opened:
        summary = opened.summary()
        findings = Counter(found.code for found in opened.head.findings if found.code.startswith("proof-"))
        return {"graphs": summary.graphs, "proof": summary.processes[0].proof, "findings": dict(findings)}


def proven_and_moved(folder: Path) -> dict[str, Any]:
    """Prove the steady decode job by a second capture; restore it where its addresses are taken; compare all bits."""
    program = [sys.executable, HERE / "decode_job_foundry.py", "--steady", "--replays", 2]
    archive, report, found = folder / "job.fdry", folder / "report.json", {}
    found["plain"] = _results(folder, "plain", [*program, "--eager"])
    found["capture"] = _results(folder, "capture", program, "capture", "--prove", "-f", "-o", archive, "--")
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(OCCUPY)
    path = os.pathsep.join(filter(None, (str(folder / "site"), os.environ.get("PYTHONPATH", ""))))
    # With an early start the range is had before anything else can take it.
    words = ("restore", "--no-early", *OTHER_FILES, archive, "--report", report, "--")
    found["restore"] = _results(folder, "restore", program, *words, PYTHONPATH=path, OCCUPIED=RECORDED_BASE)
    told = proof_of(archive)
    print(f"  proof: {json.dumps(told)}", flush=True)
    assert "at other addresses" in (folder / "restore.log").read_text(errors="replace")
    found["report"] = json.loads(report.read_text())
    check_job(found, 35)
    found["leftover_bytes_changed"] = _other_leftovers(folder, program, found)
    assert not told["findings"], told["findings"]
    assert told["proof"]["graphs"] == told["graphs"] == 35, told
    return {**found, "proof": told, "archive_bytes": archive.stat().st_size}


def _other_leftovers(folder: Path, program: list[Any], found: dict[str, Any]) -> int:
    """Restore with other numbers wherever no kernel is said to read; all bits must stay what they are."""
    archive, report = folder / "leftovers.fdry", folder / "leftovers.report.json"
    changed, count = with_other_leftovers(without_proof(read(folder / "job.fdry")))
    write(changed, archive, force=True)
    words = ("restore", *OTHER_FILES, archive, "--report", report, "--")
    restored = _results(folder, "leftovers", program, *words)
    archive.unlink()
    check_job({**found, "restore": restored, "report": json.loads(report.read_text())}, 35)
    assert count, "every byte is read"
    return count


def _results(folder: Path, name: str, program: list[Any], *words: Any, **environment: str) -> dict[str, Any]:
    out = folder / f"{name}.json"
    run(folder, name, [*(FOUNDRY if words else []), *words, *program, "--out", out], **environment)
    result: dict[str, Any] = json.loads(out.read_text())
    return result
