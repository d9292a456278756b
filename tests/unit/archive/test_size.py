"""What a capture like that of a torch decode job costs: most of its parameter bytes are noise, and noise is cheap."""

from __future__ import annotations

from pathlib import Path

from helpers.synthetic import Shape, make_spool

from foundry import archive
from foundry.pack import pack


def stored(folder: Path, shape: Shape) -> dict[str, int]:
    folder.mkdir()
    capture, _ = pack(make_spool(folder / "spool", shape))
    archive.write(capture, folder / "x.fdry")
    assert archive.read(folder / "x.fdry") == capture
    sizes: dict[str, int] = {}
    for section in archive.summary(folder / "x.fdry").sections:
        sizes[section.kind] = sizes.get(section.kind, 0) + section.stored
    return sizes


def test_parameters_and_topology_of_a_decode_job_are_small(tmp_path: Path) -> None:
    sizes = stored(tmp_path / "job", Shape(images=4, image_bytes=4096))
    assert sizes["parameters"] < 1_500_000
    assert sizes["groups"] + sizes["bodies"] + sizes["process"] + sizes["allocations"] < 50_000


def test_sixty_four_further_graphs_cost_less_than_30_kb_each(tmp_path: Path) -> None:
    """Even where each picks a few other kernels, as libraries do for other batch sizes."""
    few = stored(tmp_path / "few", Shape(graphs=4, images=4, image_bytes=4096))
    more = stored(tmp_path / "more", Shape(graphs=68, images=4, image_bytes=4096))
    assert (sum(more.values()) - sum(few.values())) / 64 < 30_000
