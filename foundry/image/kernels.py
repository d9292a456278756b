"""Kernel images and kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foundry.image import layout
from foundry.image.blobs import Blobs
from foundry.image.strings import Strings
from foundry.model import NONE, Api, Image, Process
from foundry.model.kernels import SHORTEST_IMAGE


class Kernels:
    """The images and the kernels in use; `kernel_index` gives the image's number of a model's kernel."""

    def __init__(
        self,
        process: Process,
        used: Sequence[int],
        blobs: Sequence[bytes],
        store: Blobs,
        strings: Strings,
        *,
        trim: bool,
    ) -> None:
        options: list[tuple[int, int]] = []
        rows: list[list[object]] = []
        self._image_index: dict[int, int] = {}
        for number, image in enumerate(process.images):
            if image.loaded == NONE or len(blobs[image.loaded]) < SHORTEST_IMAGE:
                continue
            self._image_index[number] = len(rows)
            rows.append(
                [
                    np.frombuffer(image.key, np.uint8),
                    store.add(blobs[image.loaded], image.loaded),
                    image.api,
                    image.instance,
                    _device_of(process, image),
                    len(options),
                    len(image.options),
                    NONE,
                    strings.add(image.provenance),
                ]
            )
            options.extend(image.options)
        if trim:
            self._trim(process, used, blobs, store, rows)
        self.images = np.array([tuple(row) for row in rows], layout.KERNEL_IMAGE)
        self.options = np.zeros(len(options), layout.OPTION)
        self.options["option"] = [option for option, _ in options]
        self.options["value"] = np.array([value for _, value in options], np.uint64)
        self._kernels(process, used, strings)

    def _trim(
        self,
        process: Process,
        used: Sequence[int],
        blobs: Sequence[bytes],
        store: Blobs,
        rows: list[list[object]],
    ) -> None:
        """Add images with no other kernels than graphs use beside those that have more, for graphs alone."""
        from foundry.binary.trim import trimmed  # most restores do not ask for it

        wanted: dict[int, set[str]] = {}
        for number in used:
            wanted.setdefault(process.kernels[number].image, set()).add(process.kernels[number].name)
        added: dict[tuple[int, frozenset[str]], int | None] = {}
        for number, names in wanted.items():
            image = process.images[number]
            if image.options:
                continue
            need = image.loaded, frozenset(names)
            if need not in added:
                less = trimmed(blobs[image.loaded], names)
                added[need] = None if less is None else store.add(less)
            blob, whole = added[need], self._image_index[number]
            if blob is not None:
                self._image_index[number] = len(rows)
                rows.append([rows[whole][0], blob, *rows[whole][2:7], whole, rows[whole][8]])

    def _kernels(self, process: Process, used: Sequence[int], strings: Strings) -> None:
        parameters: list[tuple[int, int]] = []
        attributes: list[tuple[int, int]] = []
        rows: list[tuple[int, ...]] = []
        self.kernel_index: npt.NDArray[np.uint32] = np.full(len(process.kernels), NONE, np.uint32)
        for number in used:
            kernel = process.kernels[number]
            self.kernel_index[number] = len(rows)
            rows.append(
                (
                    self._image_index[kernel.image],
                    strings.add(kernel.name),
                    len(parameters),
                    len(kernel.parameters),
                    len(attributes),
                    len(kernel.attributes),
                    kernel.parameter_bytes,
                    kernel.device,
                )
            )
            parameters.extend(kernel.parameters)
            attributes.extend(kernel.attributes)
        self.kernels = np.array(rows, layout.KERNEL)
        self.parameters = np.array(parameters, layout.PARAMETER)
        self.attributes = np.array(attributes, layout.ATTRIBUTE)


def _device_of(process: Process, image: Image) -> int:
    """Tell the device of a module's context; a library has none and gets the first."""
    if image.api == Api.MODULE and image.context != NONE:
        return process.contexts[image.context].device
    return process.devices[0].ordinal if process.devices else 0
