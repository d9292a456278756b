"""The hot loop that reads kernel nodes in a row, against a reader that takes one field after the other."""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.spool_writer import body, child_node, empty_node, kernel_node, memset_node, refused_node

from foundry.model.checks import LARGEST_BLOCK
from foundry.spool.bodies import NODE, Body, read_body
from foundry.spool.cursor import Cursor, MalformedError


def slowly(cursor: Cursor) -> Body:
    """The same for kernel, memset, child and refused nodes, field by field."""
    found, rows, launches, blocks = Body(), [], [], []
    for _ in range(cursor.u32()):
        kind, reason = cursor.u32(), cursor.text()
        kernel = context = size = 0
        if not reason and kind == 0:
            kernel = cursor.u64()
            launches.append(cursor.raw(28))
            context, block = cursor.u64(), cursor.counted()
            size, start = len(block), cursor.at
            for _ in range(cursor.u32()):
                cursor.u32()
                cursor.counted()
            found.attributes.append(cursor.data[start : cursor.at])
            blocks.append(block + bytes(-size % 16))
        elif not reason and kind == 2:
            found.memsets.append((cursor.u64(), cursor.u64(), cursor.u32(), cursor.u32(), cursor.u64(), cursor.u64()))
            context = cursor.u64()
        elif not reason and kind == 4:
            found.children.append(slowly(cursor))
        rows.append((kind, size, kernel, context))
        found.reasons.append(reason)
    for _ in range(cursor.u32()):
        cursor.raw(16)
    found.nodes = np.array(rows, NODE)
    found.launches, found.parameters = b"".join(launches), memoryview(b"".join(blocks))
    return found


def random_nodes(rng: random.Random, depth: int = 0) -> bytes:
    nodes = []
    attributes = [[(1, b"")], [(1, b""), (5, rng.randbytes(4))], [], *([(9, bytes([one]))] for one in range(20))]
    for _ in range(rng.randrange(30)):
        kind = rng.randrange(10)
        if kind == 0:
            nodes.append(memset_node(rng.getrandbits(40)))
        elif kind == 1:
            nodes.append(refused_node(rng.choice([0, 3, 77]), "a host function"))
        elif kind == 2:
            nodes.append(empty_node())
        elif kind == 3 and depth < 3:
            nodes.append(child_node(random_nodes(rng, depth + 1)))
        else:
            block = rng.randbytes(rng.choice([0, 1, 8, 15, 16, 17, 576]))
            nodes.append(kernel_node(rng.getrandbits(47), block, attributes=rng.choice(attributes), context=kind))
    return body(nodes)


def same(left: Body, right: Body) -> bool:
    names = [name for name in Body.__slots__ if name not in ("nodes", "edges", "children")]
    return (
        all(getattr(left, name) == getattr(right, name) for name in names)
        and left.nodes.tolist() == right.nodes.tolist()
        and all(same(*pair) for pair in zip(left.children, right.children, strict=True))
    )


def test_both_read_the_same() -> None:
    for seed in range(300):
        data = random_nodes(random.Random(seed))
        fast = Cursor(data, 0, len(data))
        slow = Cursor(data, 0, len(data))
        assert same(read_body(fast), slowly(slow))
        assert fast.at == slow.at == len(data)


def test_no_cut_payload_is_read_past_its_end() -> None:
    data = random_nodes(random.Random(5))
    assert len(data) > 2000
    for end in range(len(data)):
        with pytest.raises(MalformedError):
            read_body(Cursor(data, 0, end))


def test_a_block_past_the_limit_is_refused() -> None:
    data = body([kernel_node(1, bytes(LARGEST_BLOCK + 1))])
    with pytest.raises(MalformedError, match="a parameter block has 65537 bytes"):
        read_body(Cursor(data, 0, len(data)))
