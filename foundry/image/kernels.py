"""Kernel images, kernels, and the bytes to load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foundry.image import layout
from foundry.image.strings import Strings
from foundry.model import NONE, Api, Image, Process
from foundry.model.checksum import crc32c
from foundry.model.kernels import SHORTEST_IMAGE
from foundry.model.tables import Bytes, Table


class Blobs:
    """Collects blobs and lays them out page by page."""

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._blobs: list[bytes] = []

    def add(self, data: bytes, number: int | None = None) -> int:
        """Add a blob and return its index; those with a number are added once."""
        if number is not None and number in self._index:
            return self._index[number]
        self._blobs.append(data)
        if number is not None:
            self._index[number] = len(self._blobs) - 1
        return len(self._blobs) - 1

    def packed(self) -> tuple[Table, Bytes]:
        """Lay out the list of blobs and their bytes."""
        table = np.zeros(len(self._blobs), layout.BLOB)
        at = 0
        for row, blob in zip(table, self._blobs, strict=True):
            row["offset"], row["length"], row["crc32c"] = at, len(blob), crc32c(blob)
            at = -(-(at + len(blob)) // layout.BLOB_ALIGNMENT) * layout.BLOB_ALIGNMENT
        data = np.zeros(at, np.uint8)
        for row, blob in zip(table, self._blobs, strict=True):
            data[int(row["offset"]) : int(row["offset"]) + len(blob)] = np.frombuffer(blob, np.uint8)
        return table, data


class Kernels:
    """The images and the kernels in use; `kernel_index` gives the image's number of a model's kernel."""

    def __init__(
        self, process: Process, used: Sequence[int], blobs: Sequence[bytes], store: Blobs, strings: Strings
    ) -> None:
        options: list[tuple[int, int]] = []
        rows: list[tuple[object, ...]] = []
        self._image_index: dict[int, int] = {}
        for number, image in enumerate(process.images):
            if image.blob == NONE or len(blobs[image.blob]) < SHORTEST_IMAGE:
                continue
            self._image_index[number] = len(rows)
            rows.append(
                (
                    np.frombuffer(image.key, np.uint8),
                    store.add(blobs[image.blob], image.blob),
                    image.api,
                    image.instance,
                    _device_of(process, image),
                    len(options),
                    len(image.options),
                    image.in_graphs,
                    strings.add(image.provenance),
                )
            )
            options.extend(image.options)
        self.images = np.array(rows, layout.KERNEL_IMAGE)
        self.options = np.zeros(len(options), layout.OPTION)
        self.options["option"] = [option for option, _ in options]
        self.options["value"] = np.array([value for _, value in options], np.uint64)
        self._kernels(process, used, strings)

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
