"""A proof that leaves an address out is found by the deep level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.proving import proved

from foundry import archive
from foundry.findings import VERIFY_PROOF
from foundry.model import Proof
from foundry.verify import Level, verify


def codes(path: Path, **fields: object) -> list[tuple[str, str]]:
    capture = proved({}, {}).capture
    process = capture.processes[0]
    assert process.proof is not None
    changed: Proof = replace(process.proof, **{name: getattr(process.proof, name)[1:] for name in fields})
    archive.write(replace(capture, processes=(replace(process, proof=changed),)), path)
    with archive.open_archive(path) as opened:
        found = verify(opened, Level.DEEP).problems
    return [(problem.code, problem.text) for problem in found if problem.code == VERIFY_PROOF]


def test_a_whole_proof_is_sound(tmp_path: Path) -> None:
    assert codes(tmp_path / "a.fdry") == []


@pytest.mark.parametrize("name", ["parameters", "memsets", "copies"])
def test_an_address_that_is_left_out(tmp_path: Path, name: str) -> None:
    ((_, text),) = codes(tmp_path / "a.fdry", **{name: True})
    assert text.startswith("1 words point to memory")
