"""Compares captures process by process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TypeVar

from foundry.diff.difference import Difference
from foundry.diff.graphs import compare_graphs, context_of
from foundry.model import NONE, Capture, Image, Process

Key = TypeVar("Key")
MISSING = "none"


def compare_captures(before: Capture, after: Capture) -> list[Difference]:
    """List the differences of two captures. What is looked at, and what is not, stands in `scope`."""
    return list(_captures(before, after))


def _captures(before: Capture, after: Capture) -> Iterator[Difference]:
    for role in _union((p.role for p in before.processes), (p.role for p in after.processes)):
        left, right = before.process(role), after.process(role)
        if left is None or right is None:
            yield Difference(role, "process", _presence(left), _presence(right))
        else:
            yield from _processes(left, right)
            yield from _images((before, left), (after, right))


def _processes(left: Process, right: Process) -> Iterator[Difference]:
    role = left.role
    for name in ("driver_version", "simulated"):
        yield from _unequal(role, name.replace("_", " "), getattr(left, name), getattr(right, name))
    for one, other in zip(left.devices, right.devices, strict=False):
        for name in ("ordinal", "name", "compute_major", "compute_minor", "multiprocessors", "base", "arena_size"):
            yield from _unequal(f"{role}: device {one.ordinal}", name, getattr(one, name), getattr(other, name))
    yield from _unequal(role, "devices", len(left.devices), len(right.devices))
    graphs = {(g.set, g.key): g for g in left.graphs}, {(g.set, g.key): g for g in right.graphs}
    for set_key in _union(graphs[0], graphs[1]):
        where = f"{role}: graph {'/'.join(set_key)}"
        first, second = graphs[0].get(set_key), graphs[1].get(set_key)
        if first is None or second is None:
            yield Difference(where, "graph", _presence(first), _presence(second))
        else:
            yield from compare_graphs(where, (left, first), (right, second))


def _images(left: tuple[Capture, Process], right: tuple[Capture, Process]) -> Iterator[Difference]:
    """List the differences of the images that graphs use on both sides; a kernel of any other is one of its graph's."""
    found = _in_graphs(left[1]), _in_graphs(right[1])
    for key, one in found[0].items():
        other = found[1].get(key)
        if other is None:
            continue
        where = f"{left[1].role}: image {key[0].hex()[:12]}, load {key[1]}"
        yield from _unequal(where, "api", one.api, other.api)
        yield from _unequal(where, "options", one.options, other.options)
        yield from _unequal(where, "context", context_of(left[1], one.context), context_of(right[1], other.context))
        code = _code(left[0], one), _code(right[0], other)
        if code[0] != code[1]:
            yield Difference(where, "code", _named(code[0]), _named(code[1]))


def _in_graphs(process: Process) -> dict[tuple[bytes, int], Image]:
    return {(image.key, image.instance): image for image in process.images if image.in_graphs}


def _code(capture: Capture, image: Image) -> bytes:
    return capture.blobs[image.loaded] if image.loaded != NONE else b""


def _named(code: bytes) -> str:
    return f"{len(code)} bytes {hashlib.sha256(code).hexdigest()[:12]}"


def _unequal(where: str, what: str, left: object, right: object) -> Iterator[Difference]:
    if left != right:
        yield Difference(where, what, str(left), str(right))


def _presence(thing: object) -> str:
    return MISSING if thing is None else "present"


def _union(left: Iterable[Key], right: Iterable[Key]) -> list[Key]:
    """Every key once, in the order of the left and then of the right."""
    return list(dict.fromkeys([*left, *right]))
