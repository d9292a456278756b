"""Folding, placing and drawing graphs."""

from __future__ import annotations

import random
import re
import time
import xml.dom.minidom
from typing import Any

import pytest
from helpers.showcase import showcase

from foundry.describe import dot, svg
from foundry.describe.captions import shortened
from foundry.describe.chains import fold
from foundry.describe.documents import Body, Graph, Node
from foundry.describe.graphs import Graphs
from foundry.describe.layout import Size, arrange, layers
from foundry.describe.values import edge

NODES = 1400


def node(index: int, kernel: int) -> Node:
    name = f"k{kernel}"
    return Node(
        index=index, type="kernel", reason="", grid=[1, 1, 1], block=[32, 1, 1], shared_bytes=0, attributes=[],
        kernel={"index": kernel, "name": name, "readable": f"void {name}()", "short": name},
        parameters=None, memset=None, copy=None, event=None, child=None,
    )  # fmt: skip


def body(kernels: list[int], edges: list[tuple[int, int]] | list[tuple[int, int, int]]) -> Body:
    return Body(
        number=0, parent_body=None, parent_node=None, group=0,
        nodes=[node(index, kernel) for index, kernel in enumerate(kernels)],
        edges=[edge(item[0], item[1], item[2] if len(item) > 2 else 0) for item in edges],  # type: ignore[misc]
    )  # fmt: skip


def document(one: Body) -> Graph:
    graph: Any = {"set": "decode", "key": "<8>", "contents": [one]}
    return graph


def chain(count: int) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(count - 1)]


class TestFolding:
    def test_what_repeats_stands_once(self) -> None:
        kernels = [9, *[1, 2, 3, 4] * 28, 7, 8]
        folded = fold(body(kernels, chain(len(kernels))))
        assert [(len(piece.rows), piece.times) for piece in folded.pieces] == [(1, 1), (4, 28), (2, 1)]
        assert folded.pieces[1].rows[0][:3] == (1, 5, 9)
        assert [(link.start, link.end) for link in folded.links] == [(0, 1), (1, 2)]

    def test_every_node_stands_once(self) -> None:
        rng = random.Random(3)
        for _ in range(50):
            count = rng.randrange(1, 40)
            edges = [(rng.randrange(end), end) for end in range(1, count) for _ in range(rng.randrange(3))]
            folded = fold(body([rng.randrange(3) for _ in range(count)], sorted(set(edges))))
            stood = [index for piece in folded.pieces for row in piece.rows for index in row]
            assert sorted(stood) == list(range(count))

    def test_edges_that_wait_otherwise_are_not_folded_into_others(self) -> None:
        folded = fold(body([1] * 8, [(at, at + 1, (1 << 16 | 1) * (at == 3)) for at in range(7)]))
        assert (
            sum(link.text == "programmatic 1:0" for link in folded.links)
            + sum(text == "programmatic 1:0" for piece in folded.pieces for text in piece.links[1:])
            == 1
        )

    def test_a_fork_and_its_join_are_edges_between_pieces(self) -> None:
        folded = fold(body([0, 1, 2, 3, 4, 5], [(0, 1), (0, 3), (1, 2), (3, 4), (2, 5), (4, 5)]))
        assert [[row[0] for row in piece.rows] for piece in folded.pieces] == [[0], [1, 2], [3, 4], [5]]
        assert sorted((link.start, link.end) for link in folded.links) == [(0, 1), (0, 2), (1, 3), (2, 3)]

    def test_circles_end(self) -> None:
        folded = fold(body([0, 1, 2], [(0, 1), (1, 2), (2, 0)]))
        assert sum(len(piece.rows) for piece in folded.pieces) == 3


class TestLayout:
    def test_every_edge_leads_down(self) -> None:
        rng = random.Random(1)
        edges = [(rng.randrange(max(0, end - 9), end), end) for end in range(1, 200) for _ in range(2)]
        placed = arrange([Size(10, 5)] * 200, edges, gap=Size(3, 4))
        for (start, end), route in zip(edges, placed.routes, strict=True):
            assert placed.places[start].y + 5 + 4 <= placed.places[end].y
            assert [y for _, y in route] == sorted(y for _, y in route)

    def test_boxes_do_not_overlap(self) -> None:
        rng = random.Random(2)
        sizes = [Size(rng.randrange(5, 20), rng.randrange(5, 50)) for _ in range(60)]
        edges = [(rng.randrange(end), end) for end in range(1, 60) for _ in range(2)]
        places = arrange(sizes, edges, gap=Size(2, 2)).places
        for one in range(60):
            for other in range(one):
                apart_x = (
                    places[one].x + sizes[one].width <= places[other].x
                    or places[other].x + sizes[other].width <= places[one].x
                )
                apart_y = (
                    places[one].y + sizes[one].height <= places[other].y
                    or places[other].y + sizes[other].height <= places[one].y
                )
                assert apart_x or apart_y

    def test_circles_have_layers(self) -> None:
        assert layers(3, [(0, 1), (1, 2), (2, 0)]) == [0, 1, 2]
        assert layers(2, [(0, 0), (0, 1)]) == [0, 1]

    def test_nothing(self) -> None:
        assert arrange([], [], gap=Size(1, 1)).height == 0


def shapes() -> dict[str, Body]:
    rng = random.Random(1)
    count = range(NODES)
    return {
        "chain": body(list(count), chain(NODES)),
        "same": body([0] * NODES, chain(NODES)),
        "wide": body(list(count), [(0, at) for at in count if at]),
        "random": body(list(count), [(rng.randrange(max(0, at - 20), at), at) for at in count if at for _ in range(2)]),
        "dense": body(list(count), [(at, end) for end in count for at in range(max(0, end - 30), end)]),
        "far": body(list(count), chain(NODES) + [(at, NODES - 1) for at in range(NODES - 2)]),
    }


@pytest.mark.parametrize("name", ["chain", "same", "wide", "random", "dense", "far"])
def test_large_graphs_are_drawn_in_seconds(name: str) -> None:
    graph = document(shapes()[name])
    begin = time.process_time()
    text = svg.draw(graph)
    assert time.process_time() - begin < 5
    xml.dom.minidom.parseString(text)


def test_a_long_chain_is_not_drawn_row_by_row() -> None:
    graph = document(shapes()["chain"])
    assert svg.draw(graph).count("<g><title>") == svg.MOST_ROWS - 1
    assert "1361 more" in svg.draw(graph)
    assert svg.draw(graph, most_rows=None).count("<g><title>") == NODES


def test_a_drawing_is_sound_xml_with_the_names_in_it() -> None:
    graph = document(body([0, 1], [(0, 1, 1 << 16 | 1)]))
    kernel = graph["contents"][0]["nodes"][0]["kernel"]
    assert kernel is not None
    kernel["readable"], kernel["short"] = 'void "a"<&>\x00\x1b\udc80', "a<&>\ufffe"
    parsed = xml.dom.minidom.parseString(svg.draw(graph))
    titles = [item.firstChild.data for item in parsed.getElementsByTagName("title")]  # type: ignore[union-attr]
    assert titles[0] == "graph decode/<8>"
    assert any('void "a"<&>' in text for text in titles)
    assert any(text.endswith("waits: programmatic 1:0") for text in titles)
    assert "prefers-color-scheme: dark" in svg.draw(graph)


def test_child_graphs_are_drawn_below() -> None:
    graph = Graphs(showcase().processes[0]).document(0)
    text = svg.draw(graph)
    assert "child graph 1, node 10: 2 nodes, 1 edges" in text
    assert "2 x 4 nodes" in text
    xml.dom.minidom.parseString(text)


def test_dot_names_every_node_and_edge() -> None:
    graph = Graphs(showcase().processes[0]).document(0, parameters=False)
    text = dot.draw(graph)
    assert text.startswith('digraph "decode/8" {\n') and text.endswith("}\n")
    nodes = sum(len(one["nodes"]) for one in graph["contents"])
    edges = sum(len(one["edges"]) for one in graph["contents"])
    assert text.count("[label=") == nodes
    assert len(re.findall(r"^ +b\d+n\d+ -> ", text, re.MULTILINE)) == edges + 1
    assert '  b0n1 -> b0n2 [style=dashed, label="programmatic 1:0"];' in text
    assert "  b0n10 -> b1n0 [style=dotted];" in text


def test_dot_quotes() -> None:
    graph = document(body([0], []))
    graph["set"], graph["key"] = 'a"\\', "b\n\0"
    assert dot.draw(graph).startswith('digraph "a\\"\\\\/b\\n" {')


@pytest.mark.parametrize(
    ("name", "most", "expected"),
    [
        ("gemm", 10, "gemm"),
        ("add<8, Functor<BFloat16>, array<char*, 3ul> >", 60, "add<8, Functor<BFloat16>, array<char*, 3ul> >"),
        ("add<8, Functor<BFloat16>, array<char*, 3ul> >", 30, "add<Functor, array<3ul>>"),
        ("abcdefghijklmnopqrstuvwxyz", 11, "abcde…vwxyz"),
        ("outer<neg::lambda::lambda>", 12, "outer<neg>"),
    ],
)
def test_names_are_shortened(name: str, most: int, expected: str) -> None:
    assert shortened(name, most) == expected
