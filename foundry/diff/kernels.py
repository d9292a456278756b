"""Images and kernels, and one numbering of them for both captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from foundry.describe import names
from foundry.describe.demangle import short
from foundry.diff.fingerprint import context_name
from foundry.diff.report import Change, Kind, note, unequal
from foundry.model import NONE, Image, Kernel, Process

KIND = Kind.KERNELS
WIDEST_NAME = 60

Digests = Sequence[bytes]
Numbers = npt.NDArray[np.int64]
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Numbering:
    """Numbers for the things of both captures: equal ones have the same. The last entry of each is for NONE."""

    before: Numbers
    after: Numbers


def number(
    before: Sequence[Hashable], after: Sequence[Hashable], kin: Sequence[tuple[Sequence[Hashable], Sequence[Hashable]]]
) -> tuple[Numbering, list[tuple[int, int]], list[int], list[int]]:
    """Give things with equal keys the same number, and of the rest those that are kin, by each kind of kinship in turn.

    Returns the numbering, the pairs of kin, and what only the one and only the other side has.
    """
    partner: dict[int, int] = {}
    kindred: list[tuple[int, int]] = []
    taken: set[int] = set()
    for turn, (lefts, rights) in enumerate([(before, after), *kin]):
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for index in range(len(after) - 1, -1, -1):
            if index not in taken and rights[index] is not None:
                waiting[rights[index]].append(index)
        for index in range(len(before)):
            if index not in partner and lefts[index] is not None and waiting.get(lefts[index]):
                found = waiting[lefts[index]].pop()
                partner[index] = found
                taken.add(found)
                if turn:
                    kindred.append((index, found))
    left = np.arange(len(before) + 1)
    left[-1] = -1
    right = np.arange(len(after) + 1) + len(before)
    right[-1] = -1
    for index, found in partner.items():
        right[found] = index
    gone = [index for index in range(len(before)) if index not in partner]
    new = [index for index in range(len(after)) if index not in taken]
    return Numbering(left, right), kindred, gone, new


def image_changes(
    where: str, left: tuple[Process, Digests], right: tuple[Process, Digests]
) -> tuple[Numbering, list[Change]]:
    """Compare images: by what the program handed to the driver, else by the kernels that are in them."""
    before, after = left[0], right[0]
    keys = [[(image.key, image.instance) for image in process.images] for process in (before, after)]
    inside = _kernels_inside(before), _kernels_inside(after)
    numbering, kindred, gone, new = number(keys[0], keys[1], [inside])
    kin = dict(kindred)
    found: list[Change] = []
    ends = {int(each): index for index, each in enumerate(numbering.after[:-1])}
    for index, one in enumerate(before.images):
        if index in gone:
            continue
        partner = ends[int(numbering.before[index])]
        other = after.images[partner]
        place = f"{where}: {_image_name(before, index)}"
        codes = _code(one, left[1]), _code(other, right[1])
        if index in kin:
            found.append(
                Change(
                    KIND,
                    place,
                    "code",
                    f"key {one.key.hex()[:12]}, {codes[0]}",
                    f"key {other.key.hex()[:12]}, {codes[1]}",
                )
            )
        else:
            found += unequal(KIND, place, "code", *codes)
        found += _image(place, (before, one), (after, other))
        found += note(place, "linked code that is not loaded", _linked(one, left[1]), _linked(other, right[1]))
    found += [Change(KIND, where, "image", _image_name(before, index), "none") for index in gone]
    found += [Change(KIND, where, "image", "none", _image_name(after, index)) for index in new]
    return numbering, found


def _image(place: str, left: tuple[Process, Image], right: tuple[Process, Image]) -> Iterator[Change]:
    one, other = left[1], right[1]
    yield from unequal(KIND, place, "loaded as", names.name(names.APIS, one.api), names.name(names.APIS, other.api))
    yield from unequal(KIND, place, "options", _options(one), _options(other))
    yield from unequal(KIND, place, "context", _context(left[0], one.context), _context(right[0], other.context))
    yield from unequal(KIND, place, "used by graphs", one.in_graphs, other.in_graphs)
    yield from unequal(KIND, place, "form", *(names.name(names.FORMATS, image.format) for image in (one, other)))
    for what, name in (
        ("size as handed over", "size"),
        ("unpacked", "unpacked"),
        ("file", "provenance"),
        ("build id", "build_id"),
        ("offset in the file", "offset"),
    ):
        yield from note(place, what, getattr(one, name), getattr(other, name))


def kernel_changes(where: str, before: Process, after: Process, images: Numbering) -> tuple[Numbering, list[Change]]:
    """Compare kernels: by image, name and device, then by layout and attributes, which may change in a process."""
    bases = [
        [(int(side[min(kernel.image, len(side) - 1)]), kernel.name, kernel.device) for kernel in process.kernels]
        for process, side in ((before, images.before), (after, images.after))
    ]
    whole = [
        [(*base, kernel.parameters, kernel.attributes) for base, kernel in zip(side, process.kernels, strict=True)]
        for side, process in zip(bases, (before, after), strict=True)
    ]
    alike = [
        [(*base, kernel.parameters) for base, kernel in zip(side, process.kernels, strict=True)]
        for side, process in zip(bases, (before, after), strict=True)
    ]
    numbering, kindred, gone, new = number(whole[0], whole[1], [(alike[0], alike[1]), (bases[0], bases[1])])
    found: list[Change] = []
    for index, partner in kindred:
        found += _kernel(where, before.kernels[index], after.kernels[partner])
    for side, process, indices in ((0, before, gone), (1, after, new)):
        for index in indices:
            told = kernel_name(process.kernels[index].name)
            found.append(Change(KIND, where, "kernel", *((told, "none") if side == 0 else ("none", told))))
    return numbering, found


def _kernel(where: str, one: Kernel, other: Kernel) -> Iterator[Change]:
    place = f"{where}: {kernel_name(one.name)}"
    if one.parameters != other.parameters:
        yield Change(KIND, place, "parameter layout", _layout(one), _layout(other))
    left, right = dict(one.attributes), dict(other.attributes)
    for attribute in sorted({*left, *right}):
        what = f"function attribute {names.function_attribute(attribute)}"
        yield from unequal(Kind.EDGES, place, what, left.get(attribute), right.get(attribute))
    if left == right and one.attributes != other.attributes:
        yield Change(Kind.EDGES, place, "function attributes", str(one.attributes), str(other.attributes))


def kernel_name(name: str, width: int = WIDEST_NAME) -> str:
    """Write a kernel's name for people, shortened in the middle."""
    readable = short(name) or "(no name)"
    if len(readable) > width:
        half = (width - 1) // 2
        readable = f"{readable[: width - 1 - half]}…{readable[len(readable) - half :]}"
    return f"`{readable}`"


def _layout(kernel: Kernel) -> str:
    sizes = ", ".join(f"{size} at {offset}" for offset, size in kernel.parameters)
    return f"{len(kernel.parameters)} parameters: {sizes}" if sizes else "not known"


def _kernels_inside(process: Process) -> list[Hashable]:
    """Give what kernels each image has, and how it is loaded; None for one without."""
    inside: list[list[str]] = [[] for _ in process.images]
    for kernel in process.kernels:
        if kernel.image != NONE:
            inside[kernel.image].append(kernel.name)
    return [
        (tuple(sorted(set(found))), image.in_graphs) if found else None
        for found, image in zip(inside, process.images, strict=True)
    ]


def _image_name(process: Process, index: int) -> str:
    image = process.images[index]
    first = next((kernel.name for kernel in process.kernels if kernel.image == index), "")
    origin = f" of {image.provenance}" if image.provenance else ""
    load = f", load {image.instance}" if image.instance else ""
    inside = f" with {kernel_name(first)}" if first else ""
    return f"image {image.key.hex()[:12]}{origin}{load}{inside}"


def _code(image: Image, digests: Digests) -> str:
    return f"code {_digest(image.loaded, digests)}"


def _linked(image: Image, digests: Digests) -> str:
    return _digest(image.blob if image.linked else NONE, digests)


def _digest(blob: int, digests: Digests) -> str:
    return digests[blob].hex()[:16] if blob != NONE else "none"


def _options(image: Image) -> str:
    return ", ".join(f"{names.name(names.JIT_OPTIONS, number)}={value}" for number, value in image.options) or "none"


def _context(process: Process, index: int) -> str:
    if index >= len(process.contexts):
        return "none"
    context = process.contexts[index]
    return context_name(context.device, context.primary, context.ordinal)
