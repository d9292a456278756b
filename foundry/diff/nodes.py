"""Nodes that belong together: kernels, launches, attributes, memsets, copies, events. Parameters: `parameters.py`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.describe import names, values
from foundry.diff.fingerprint import context_name
from foundry.diff.flat import Flat, Index, Pairing
from foundry.diff.kernels import kernel_name
from foundry.diff.parameters import tell_words
from foundry.diff.places import Places
from foundry.diff.report import Kind, Report, Strength, unequal
from foundry.diff.telling import Telling, spelled
from foundry.diff.words import Source, compare_words
from foundry.model import NONE
from foundry.model.pointers import DEVICE, UNIFIED
from foundry.model.tables import COPY_SIDES, COPY_SIZE

Mask = npt.NDArray[np.bool_]
ADDRESS_AT = 16
"""Offset of a device address in a side of a copy."""


def compare_nodes(
    report: Report,
    where: str,
    flats: tuple[Flat, Flat],
    pairing: Pairing,
    reads: tuple[Source, Source] | None = None,
) -> None:
    """Tell all that differs between nodes that belong together. `reads` tells which parameters matter."""
    comparison = _Nodes(report, flats, pairing)
    comparison.topology()
    comparison.launches()
    comparison.events(where)
    comparison.memsets()
    comparison.copies()
    comparison.parameters(where, reads)


class _Nodes:
    def __init__(self, report: Report, flats: tuple[Flat, Flat], pairing: Pairing) -> None:
        self._report, self._flats = report, flats
        self._telling = Telling(report, flats, pairing)
        self._nodes, self._graphs = self._telling.nodes, self._telling.graphs
        self._places = Places(flats[0].process), Places(flats[1].process)
        self._table = [flat.nodes[nodes] for flat, nodes in zip(flats, self._nodes, strict=True)]

    def topology(self) -> None:
        """Compare what nodes are, beside their order."""
        telling, (left, right) = self._telling, self._table
        telling.tell(
            left["type"] != right["type"], "type", lambda side, at: names.node_type(self._field(side, at, "type"))
        )
        kernels = [flat.kernel[nodes] for flat, nodes in zip(self._flats, self._nodes, strict=True)]
        self._same_kernel = kernels[0] == kernels[1]
        telling.tell(~self._same_kernel, "kernel", self._kernel)
        owns = self._both("kernel")
        sizes = owns & self._same_kernel & (left["parameter_size"] != right["parameter_size"])
        telling.tell(sizes, "bytes of parameters", lambda side, at: str(self._field(side, at, "parameter_size")))
        self._listed("reason", [flat.process.node_reasons for flat in self._flats])
        self._listed("context", [[_context(item) for item in flat.process.contexts] for flat in self._flats])
        sets = [flat.process.attribute_sets for flat in self._flats]
        differs = owns & self._unlike("attributes", sets)
        self._telling.tell(differs, "launch attributes", self._attributes, kind=Kind.EDGES)

    def launches(self) -> None:
        """Compare grids, blocks and shared memory."""
        at, rows = self._rows("kernel")
        tables = [flat.process.launches[each] for flat, each in zip(self._flats, rows, strict=True)]
        for name in ("grid", "block", "shared_bytes"):
            differs = tables[0][name] != tables[1][name]
            differs = differs.any(axis=1) if differs.ndim > 1 else differs

            def tell(side: int, pair: int, name: str = name) -> str:
                value = tables[side][name][np.searchsorted(at, pair)]
                return " x ".join(f"{number:,}" for number in np.atleast_1d(value).tolist())

            self._telling.tell(_spread(differs, at, len(self._nodes[0])), name.replace("_", " "), tell)

    def events(self, where: str) -> None:
        """Compare which events nodes wait for and record, and the flags that these were created with."""
        at, rows = self._rows("event")
        events = [flat.process.event_nodes[each] for flat, each in zip(self._flats, rows, strict=True)]

        def tell(side: int, pair: int) -> str:
            number = int(events[side][np.searchsorted(at, pair)])
            return "none" if number == NONE else f"event {number}"

        self._telling.tell(_spread(events[0] != events[1], at, len(self._nodes[0])), "event", tell)
        flags = [flat.process.events for flat in self._flats]
        for number in range(max(map(len, flags))):
            sides = [f"{side[number]:#x}" if number < len(side) else "no such event" for side in flags]
            self._report.add(unequal(Kind.NODES, where, f"flags of event {number}", *sides))

    def memsets(self) -> None:
        """Compare memsets: the destination as an address, the rest as numbers."""
        at, rows = self._rows("memset")
        tables = [flat.process.memsets[each] for flat, each in zip(self._flats, rows, strict=True)]
        for name in ("pitch", "width", "height", "value", "element_size"):

            def tell(side: int, pair: int, name: str = name) -> str:
                return spelled(int(tables[side][name][np.searchsorted(at, pair)]))

            differs = tables[0][name] != tables[1][name]
            self._telling.tell(_spread(differs, at, len(self._nodes[0])), f"memset {name.replace('_', ' ')}", tell)
        self._addresses("memset destination", at, [table["destination"] for table in tables])

    def copies(self) -> None:
        """Compare copies: device addresses as such, the rest as numbers."""
        at, rows = self._rows("copy")
        tables = [
            flat.process.copies.reshape(-1, COPY_SIZE)[each] for flat, each in zip(self._flats, rows, strict=True)
        ]
        rest = [table.copy() for table in tables]
        for name, begin in COPY_SIDES.items():
            span = slice(begin + ADDRESS_AT, begin + ADDRESS_AT + 8)
            both = np.ones(len(at), np.bool_)
            for table in tables:
                both &= np.isin(table[:, begin], (DEVICE, UNIFIED))
            words = [np.ascontiguousarray(table[:, span]).view("<u8").reshape(-1)[both] for table in tables]
            self._addresses(f"copy {name}", at[both], words)
            for table in rest:
                table[both, span] = 0
        differs = (rest[0] != rest[1]).any(axis=1)

        def tell(side: int, pair: int) -> str:
            row = np.searchsorted(at, pair)
            return _copy(rest[side][row].tobytes(), rest[1 - side][row].tobytes())

        self._telling.tell(_spread(differs, at, len(self._nodes[0])), "copy", tell)

    def parameters(self, where: str, reads: tuple[Source, Source] | None) -> None:
        """Compare the parameters of nodes with the same kernel and as many bytes of them."""
        left, right = self._table
        at = np.flatnonzero(
            self._both("kernel") & self._same_kernel & (left["parameter_size"] == right["parameter_size"])
        )
        nodes = self._nodes[0][at], self._nodes[1][at]
        words = compare_words(self._flats, self._places, nodes, (self._graphs[0][at], self._graphs[1][at]), reads)
        tell_words(self._report, where, self._telling, at, words)

    def _addresses(self, what: str, at: Index, words: Sequence[npt.NDArray[np.uint64]]) -> None:
        """Tell addresses that differ: those that moved with their memory, and those that point elsewhere."""
        spots = [
            places.spots(side, graphs[at])
            for places, side, graphs in zip(self._places, words, self._graphs, strict=True)
        ]
        differs = words[0] != words[1]
        alike = spots[0].alike(spots[1])

        def tell(side: int, pair: int) -> str:
            return self._telling.pointer(side, pair, int(words[side][np.searchsorted(at, pair)]))

        count = len(self._nodes[0])
        self._telling.tell(_spread(differs & ~alike, at, count), what, tell)
        self._telling.tell(_spread(differs & alike, at, count), what, tell, strength=Strength.RELOCATION)

    def _both(self, name: str) -> Mask:
        return self._flats[0].owns(name, self._nodes[0]) & self._flats[1].owns(name, self._nodes[1])

    def _rows(self, name: str) -> tuple[Index, list[Index]]:
        """Give the pairs in which both nodes own a row of a table, and the rows."""
        at = np.flatnonzero(self._both(name))
        return at, [flat.rows(name, nodes[at]) for flat, nodes in zip(self._flats, self._nodes, strict=True)]

    def _field(self, side: int, at: int, name: str) -> int:
        return int(self._table[side][name][at])

    def _listed(self, name: str, lists: Sequence[Sequence[str]]) -> None:
        """Compare a field that is an index of a list of texts."""

        def tell(side: int, at: int) -> str:
            index = self._field(side, at, name)
            return "none" if index == NONE else lists[side][index]

        self._telling.tell(self._unlike(name, lists), name, tell)

    def _unlike(self, name: str, lists: Sequence[Sequence[Hashable]]) -> Mask:
        """Tell in which pairs the things that a field refers to differ."""
        numbers: dict[Hashable, int] = {}
        sides = []
        for table, listed in zip(self._table, lists, strict=True):
            mapped = np.array([*(numbers.setdefault(item, len(numbers)) for item in listed), -1], np.int64)
            sides.append(mapped[np.minimum(table[name], len(listed))])
        differs: Mask = sides[0] != sides[1]
        return differs

    def _kernel(self, side: int, at: int) -> str:
        index = self._field(side, at, "kernel")
        process = self._flats[side].process
        if index == NONE:
            return "none"
        kernel = process.kernels[index]
        image = process.images[kernel.image] if kernel.image != NONE else None
        return kernel_name(kernel.name) + (f" of image {image.key.hex()[:12]}, load {image.instance}" if image else "")

    def _attributes(self, side: int, at: int) -> str:
        """Give the attributes that the other side has not."""
        sets = [
            self._flats[each].process.attribute_sets[self._field(each, at, "attributes")] for each in (side, 1 - side)
        ]
        own = tuple(item for item in sets[0] if item not in sets[1]) or sets[0]
        told = [f"{item['name']} {_value(item['value'])}" for item in values.launch_attributes(own)]
        return ", ".join(told) or "none"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_value(each)}" for name, each in value.items())
    return str(value)


def _copy(own: bytes, other: bytes) -> str:
    """Describe the fields of a copy that the other has otherwise."""
    told = [
        f"{name} {spelled(int.from_bytes(own[begin : begin + size], 'little'))}"
        for name, begin, size in _COPY_FIELDS
        if own[begin : begin + size] != other[begin : begin + size]
    ]
    return ", ".join(told) or f"bytes of no field {own[36:40].hex()} {own[124:128].hex()}"


_COPY_SIDE = (
    ("x", 0, 8), ("y", 8, 8), ("z", 16, 8), ("level", 24, 8), ("memory type", 32, 4), ("host", 40, 8),
    ("device", 48, 8), ("array", 56, 8), ("reserved", 64, 8), ("pitch", 72, 8), ("height", 80, 8),
)  # fmt: skip
_COPY_FIELDS = (
    *((f"source {name}", at, size) for name, at, size in _COPY_SIDE),
    *((f"destination {name}", at + 88, size) for name, at, size in _COPY_SIDE),
    ("width", 176, 8), ("height", 184, 8), ("depth", 192, 8),
)  # fmt: skip


def _context(item: Any) -> str:
    return context_name(item.device, item.primary, item.ordinal)


def _spread(differs: Mask, at: Index, count: int) -> Mask:
    """Lay a mask of some pairs out over all."""
    found = np.zeros(count, np.bool_)
    found[at[differs]] = True
    return found
