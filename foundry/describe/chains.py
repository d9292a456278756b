"""Folds the chains of a graph: what runs one after the other becomes one box, and what repeats in it is shown once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foundry.describe import values
from foundry.describe.documents import Body, Node

LONGEST_PERIOD = 96
"""Nodes of a repeated piece at most: a layer of a model has about 25."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a chain. Row k stands for the nodes `rows[k]`: one, or one of each repetition.

    `links[k]` is how row k waits for the row before it: empty if that row has to be done.
    """

    rows: tuple[tuple[int, ...], ...]
    links: tuple[str, ...]

    @property
    def times(self) -> int:
        """How often it runs."""
        return len(self.rows[0])


@dataclass(frozen=True)
class Link:
    """An edge between two pieces; `text` is empty if its end waits for all of its start."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Folded:
    """A body as pieces and the edges between them."""

    pieces: tuple[Piece, ...]
    links: tuple[Link, ...]


def fold(body: Body, *, repeats: bool = True) -> Folded:
    """Fold a body. Without `repeats`, every node stands alone in its row."""
    count = len(body["nodes"])
    out: list[list[tuple[int, str]]] = [[] for _ in range(count)]
    waits: list[list[int]] = [[] for _ in range(count)]
    for edge in body["edges"]:
        text = "" if values.plain_edge(edge) else edge_text(edge["type"], edge["from_port"], edge["to_port"])
        out[edge["start"]].append((edge["end"], text))
        waits[edge["end"]].append(edge["start"])
    follower = {
        start: found[0]
        for start, found in enumerate(out)
        if len(found) == 1 and len(waits[found[0][0]]) == 1 and found[0][0] != start
    }
    followed = {end for end, _ in follower.values()}
    pieces: list[Piece] = []
    links: list[Link] = []
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    heads = [index for index in range(count) if index not in followed]
    placed: set[int] = set()
    for head in [*heads, *range(count)]:
        if head in placed:
            continue
        chain, texts = [head], [""]
        placed.add(head)
        while chain[-1] in follower and follower[chain[-1]][0] not in placed:
            node, text = follower[chain[-1]]
            chain.append(node)
            texts.append(text)
            placed.add(node)
        begin = len(pieces)
        for piece in _pieces(body["nodes"], chain, texts, repeats):
            if len(pieces) > begin:
                links.append(Link(len(pieces) - 1, len(pieces), piece.links[0]))
            pieces.append(piece)
        first[head], last[chain[-1]] = begin, len(pieces) - 1
    for start, found in enumerate(out):
        for end, text in found:
            if start in last and end in first:
                links.append(Link(last[start], first[end], text))
    return Folded(tuple(pieces), tuple(dict.fromkeys(links)))


def edge_text(kind: str, from_port: int, to_port: int) -> str:
    """Say how an edge that does not wait for all of its start waits."""
    ports = f" {from_port}:{to_port}" if from_port or to_port else ""
    return f"{kind}{ports}"


def _pieces(nodes: Sequence[Node], chain: list[int], texts: list[str], repeats: bool) -> list[Piece]:
    names = [(_label(nodes[node]), text) for node, text in zip(chain, texts, strict=True)]
    found: list[Piece] = []
    plain: list[int] = []
    at = 0
    while at < len(chain):
        period, times = _repeat(names, at) if repeats else (1, 1)
        if times < 2:
            plain.append(at)
            at += 1
            continue
        _flush(found, plain, chain, texts)
        rows = tuple(tuple(chain[at + row + period * time] for time in range(times)) for row in range(period))
        found.append(Piece(rows, tuple(texts[at : at + period])))
        at += period * times
    _flush(found, plain, chain, texts)
    return found


def _flush(found: list[Piece], plain: list[int], chain: list[int], texts: list[str]) -> None:
    if plain:
        found.append(Piece(tuple((chain[at],) for at in plain), tuple(texts[at] for at in plain)))
        plain.clear()


def _repeat(names: list[tuple[str, str]], at: int) -> tuple[int, int]:
    """Find the repetition that starts here and covers most; it must save three rows or more."""
    best, saved = (1, 1), 2
    for period in range(1, min(LONGEST_PERIOD, (len(names) - at) // 2) + 1):
        if names[at] != names[at + period] or names[at : at + period] != names[at + period : at + 2 * period]:
            continue
        times = 2
        while names[at : at + period] == names[at + period * times : at + period * (times + 1)]:
            times += 1
        if period * (times - 1) > saved:
            best, saved = (period, times), period * (times - 1)
    return best


def _label(node: Node) -> str:
    kernel = node["kernel"]
    return f"{node['type']} {kernel['index'] if kernel else node['reason']}"
