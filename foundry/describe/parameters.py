"""Decodes the parameter block of a kernel node: parameters, words, and what each points to."""

from __future__ import annotations

from collections.abc import Sequence

from foundry.describe import names
from foundry.describe.documents import Parameter, Word
from foundry.describe.targets import CONSTANT, UNREAD, Targets

WORD, ADDRESS = 8, 6
POINTING = ("allocation", "dangling", "range")
"""Kinds of targets that a word points to."""


def decode(
    layout: Sequence[tuple[int, int]], block: bytes, targets: Targets, read: bytes | None = None
) -> list[Parameter]:
    """Decode a block with its kernel's layout (`Kernel.parameters`).

    Bytes that no parameter covers come as parameters without an index, unless they are all zero. Words are aligned to
    8 bytes in the block, as the pointer audit reads them; a parameter's part of a word has a size below 8, and is
    judged by the whole word. `read` has a byte for each of the block, 0 for one that the launch does not read.
    """
    read = b"\xff" * len(block) if read is None else read
    found: list[Parameter] = []
    at = 0
    for index, (offset, size) in enumerate(layout):
        begin, end = min(max(offset, at), len(block)), min(offset + size, len(block))
        if begin > at:
            _gap(found, block, (at, begin), targets, read)
        found.append(Parameter(index=index, offset=offset, size=size, words=_words(block, (begin, end), targets, read)))
        at = max(at, end)
    if at < len(block):
        _gap(found, block, (at, len(block)), targets, read)
    return found


def _gap(found: list[Parameter], block: bytes, span: tuple[int, int], targets: Targets, read: bytes) -> None:
    begin, end = span
    if any(block[begin:end]):
        words = _words(block, span, targets, read)
        found.append(Parameter(index=None, offset=begin, size=end - begin, words=words))


def _words(block: bytes, span: tuple[int, int], targets: Targets, read: bytes) -> list[Word]:
    words = []
    at, end = span
    while at < end:
        start = at - at % WORD
        stop = min(start + WORD, end)
        whole = block[start : start + WORD]
        target = targets.of(int.from_bytes(whole, "little")) if len(whole) == WORD else CONSTANT
        if not any(read[at:stop]):
            target = UNREAD
        elif (stop - at < WORD and target["kind"] not in POINTING) or not all(read[start : start + ADDRESS]):
            target = CONSTANT
        value = int.from_bytes(block[at:stop], "little")
        words.append(Word(offset=at, size=stop - at, value=names.address(value), target=target))
        at = stop
    return words
