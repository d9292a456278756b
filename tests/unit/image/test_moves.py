"""The image of a proven capture, with all that it names moved, is the image of the second capture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from helpers.image_reader import ImageFile
from helpers.proving import ARENA, FIRST, SECOND, Program, proved

from foundry.image import build, layout
from foundry.model import Capture

DISTANCE = FIRST - SECOND


def built(capture: Capture, path: Path) -> ImageFile:
    build(capture, "python-0", path, "00" * 32)
    return ImageFile(path)


def sides() -> tuple[dict[str, object], dict[str, object]]:
    one, other = ({"packed": ((4, base + 8192), (21, base + 2 * ARENA + 5))} for base in (FIRST, SECOND))
    return one, other


def test_moved_it_is_the_second_one(tmp_path: Path) -> None:
    first, second = sides()
    image = built(proved(first, second).capture, tmp_path / "first.image")
    other = built(Program(SECOND, 1, **second).captured()[0], tmp_path / "second.image")  # type: ignore[arg-type]
    assert image.graphs["moves"].tolist() == [1, 1]
    names = [name for name, _ in layout.SECTIONS]
    bodies = {name: bytearray(image.sections[name].tobytes()) for name in names}
    for offset, section, device in image.moves.tolist():
        assert device == 0
        body = bodies[names[section]]
        if names[section] == "strings":
            end = next(at for at in range(offset, len(body)) if not chr(body[at]).isdigit())
            body[offset:end] = str(int(body[offset:end]) - DISTANCE).encode()
        else:
            word = int.from_bytes(body[offset : offset + 8], "little") - DISTANCE
            body[offset : offset + 8] = word.to_bytes(8, "little")
    for name in ("strings", "records", "parameter_bytes", "copies"):
        assert bodies[name] == other.sections[name].tobytes(), name
    for name in ("log", "allocations", "mappings"):
        assert (image.sections[name]["address"] - np.uint64(DISTANCE)).tolist() == other.sections[name][
            "address"
        ].tolist()


def test_only_what_the_image_holds_is_named(tmp_path: Path) -> None:
    first, second = sides()
    capture = proved(first, second).capture
    (process,) = capture.processes
    without = replace(process.graphs[0], reason_code="capture-failed", reason="a driver error")
    assert process.proof is not None
    kept = process.proof.parameters["row"] == 2
    proof = replace(
        process.proof,
        graphs=process.proof.graphs[1:],
        parameters=process.proof.parameters[kept],
        memsets=process.proof.memsets[:0],
        copies=process.proof.copies[:0],
        texts=process.proof.texts[:0],
    )
    changed = replace(process, graphs=(without, process.graphs[1]), proof=proof)
    image = built(replace(capture, processes=(changed,)), tmp_path / "one.image")
    assert (image.graphs["moves"].tolist(), len(image.moves)) == ([0, 1], 1)
    (offset, section, _) = image.moves[0].tolist()
    assert layout.SECTIONS[section][0] == "parameter_bytes"
    assert image.parameter_bytes[offset : offset + 8].view("<u8")[0] == FIRST + 8192


def test_without_a_proof_nothing_moves(tmp_path: Path) -> None:
    image = built(Program(FIRST).captured()[0], tmp_path / "plain.image")
    assert (image.graphs["moves"].tolist(), len(image.moves)) == ([0, 0], 0)
