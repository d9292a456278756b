"""One spool gives one capture, whatever becomes of the way it is read: a capture id that is known."""

from __future__ import annotations

from pathlib import Path

from helpers.synthetic import Shape, make_spool

from foundry import archive
from foundry.pack import pack

KNOWN = "56e39e798aece74ebf8641777e2cf1821b0d65323f6b7ecd3c4b86b092fc9916"
SHAPE = Shape(graphs=5, layers=3, kernels_per_layer=24, kernels=20, images=8, image_bytes=2000)


def test_a_decode_job_has_the_id_that_it_always_had(tmp_path: Path) -> None:
    make_spool(tmp_path / "spool", SHAPE)
    capture, findings = pack(tmp_path / "spool")
    assert findings == []
    assert sum(len(process.launches) for process in capture.processes) == 5 * 3 * 24
    assert archive.write(capture, tmp_path / "x.fdry") == KNOWN
