"""Checks that every kernel is in its image, with the parameters that the archive gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from foundry.binary.entries import Entries, Layout, entries
from foundry.binary.errors import ForeignImageError, ImageError
from foundry.findings import (
    VERIFY_IMAGE,
    VERIFY_IMAGE_FOREIGN,
    VERIFY_KERNEL_MISSING,
    VERIFY_LAYOUT_DIFFERS,
    Severity,
)
from foundry.model import NONE, Process
from foundry.verify.places import Places
from foundry.verify.report import Place, Problem


@dataclass(frozen=True, slots=True)
class Wanted:
    """A kernel that must be in an image."""

    name: str
    layout: Layout
    architecture: int
    image: str
    """The image in words."""
    place: Place
    nodes: int
    restorable: bool


def wanted_kernels(process: Process, places: Places) -> Iterator[tuple[int, Wanted]]:
    """List the kernels that nodes name, each with the blob that must hold it."""
    compute = {device.ordinal: device.compute_major * 10 + device.compute_minor for device in process.devices}
    for number, use in sorted(places.kernel_uses().items()):
        kernel = process.kernels[number]
        image = process.images[kernel.image] if kernel.image != NONE else None
        if image is None or image.loaded == NONE or not kernel.name:
            continue  # a graph that can be restored has none of these, or the archive would not have been read
        graph = process.graphs[use.graph]
        origin = f" from `{image.provenance}`" if image.provenance else ""
        yield (
            image.loaded,
            Wanted(
                name=kernel.name,
                layout=kernel.parameters,
                architecture=compute.get(kernel.device, 0),
                image=f"image {kernel.image}{origin} (blob {image.loaded})",
                place=places.node(graph, use.body, use.node),
                nodes=use.nodes,
                restorable=use.restorable,
            ),
        )


def check_image(data: bytes, kernels: Iterable[Wanted]) -> Iterator[Problem]:
    """Check all kernels that must be in one image."""
    by_architecture: dict[int, list[Wanted]] = {}
    for wanted in kernels:
        by_architecture.setdefault(wanted.architecture, []).append(wanted)
    for architecture, group in by_architecture.items():
        try:
            found = entries(data, architecture)
        except ForeignImageError as error:
            yield _of_image(VERIFY_IMAGE_FOREIGN, Severity.WARN, group, f"cannot be looked into: {error}")
            continue
        except ImageError as error:
            yield _of_image(VERIFY_IMAGE, Severity.ERROR, group, f"is not one: {error}")
            continue
        for wanted in group:
            try:
                yield from _check_kernel(found, wanted)
            except ImageError as error:
                yield _of_image(VERIFY_IMAGE, Severity.ERROR, [wanted], f"is damaged: {error}")


def of_outside(kernels: list[Wanted], code: str, text: str) -> Problem:
    """Say that the image of some kernels could not be looked at, because it is elsewhere."""
    return _of_image(code, Severity.WARN, kernels, text)


def _of_image(code: str, severity: Severity, kernels: list[Wanted], text: str) -> Problem:
    first = kernels[0]
    more = f"; {len(kernels) - 1} more kernels are in it" if len(kernels) > 1 else ""
    return Problem(code, severity, f"{first.image} {text}{more}", first.place)


def _check_kernel(found: Entries, wanted: Wanted) -> Iterator[Problem]:
    more = f" ({wanted.nodes} nodes use it)" if wanted.nodes > 1 else ""
    if wanted.name not in found:
        text = f"{wanted.image} has no kernel of that name{more}"
        yield Problem(VERIFY_KERNEL_MISSING, Severity.ERROR, text, wanted.place)
        return
    if not wanted.layout and not wanted.restorable:
        return  # the driver told no layout, which is why no graph with it can be restored
    layout = found.layout(wanted.name)
    if layout is None:
        return
    for parameter in range(max(len(layout), len(wanted.layout))):
        there = layout[parameter] if parameter < len(layout) else None
        here = wanted.layout[parameter] if parameter < len(wanted.layout) else None
        if there != here:
            place = replace(wanted.place, parameter=parameter, offset=(here or there or (0, 0))[0])
            text = f"the archive has {_placed(here)}, {wanted.image} has {_placed(there)}{more}"
            yield Problem(VERIFY_LAYOUT_DIFFERS, Severity.ERROR, text, place)
            return
    size, here_size = found.parameter_bytes(wanted.name), max((at + size for at, size in wanted.layout), default=0)
    if size is not None and size != here_size:
        text = f"its parameters take {here_size} bytes in the archive and {size} in {wanted.image}{more}"
        yield Problem(VERIFY_LAYOUT_DIFFERS, Severity.ERROR, text, wanted.place)


def _placed(parameter: tuple[int, int] | None) -> str:
    return f"{parameter[1]} bytes at byte {parameter[0]}" if parameter else "no such parameter"
