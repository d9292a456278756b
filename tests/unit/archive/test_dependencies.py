"""The orders of dependencies that a section of its own keeps."""

from __future__ import annotations

from pathlib import Path

from helpers.spool_writer import SpoolWriter, body, empty_node

from foundry import archive
from foundry.archive.layout import Kind
from foundry.pack import pack


def test_images_are_told_apart_by_orders_that_the_capture_id_does_not_cover(tmp_path: Path) -> None:
    summaries = []
    for name, edges in (("a", [(0, 2, 0), (1, 2, 0)]), ("b", [(1, 2, 0), (0, 2, 0)])):
        spool = SpoolWriter(tmp_path / name)
        spool.graph(0x90, body([empty_node()] * 3, edges))
        spool.write()
        archive.write(pack(tmp_path / name)[0], tmp_path / f"{name}.fdry")
        summaries.append(archive.summary(tmp_path / f"{name}.fdry"))
    assert summaries[0].capture_id == summaries[1].capture_id
    assert (bool(summaries[0].proof_id), bool(summaries[1].proof_id)) == (False, True)


def test_the_section_is_there_where_a_node_has_an_order_of_its_own(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "s")
    nodes = [empty_node()] * 5
    for graph, edges in enumerate(
        (
            [(0, 4, 0), (1, 4, 0)],
            [(3, 4, 0), (1, 4, 0), (2, 4, 0), (0, 3, 0)],
            [],
            [(1, 0, 0), (2, 4, 1), (0, 4, 1 << 56)],
        )
    ):
        spool.graph(0x90 + graph, body(nodes, edges))
    spool.write()
    capture, _ = pack(tmp_path / "s")
    archive.write(capture, tmp_path / "x.fdry")
    with archive.open_archive(tmp_path / "x.fdry") as opened:
        (section,) = (section for section in opened.sections if section.kind == Kind.DEPENDENCIES)
        assert section.raw == 4 * (2 + 2 * 2 + 3 + 2)
    (process,) = archive.read(tmp_path / "x.fdry").processes
    assert process == capture.processes[0]
    assert [group.dependencies for group in process.groups] == [
        {4: [0, 1]},
        {3: [0], 4: [3, 1, 2]},
        {},
        {0: [1], 4: [2, 0]},
    ]
