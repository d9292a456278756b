"""Reads a restore image back, by the dtypes that a test has compared with the C header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from foundry.image import layout


class ImageFile:
    """The sections of an image as arrays."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.header = np.frombuffer(self.data, layout.HEADER, 1)[0]
        self.sections: dict[str, Any] = {}
        for (name, dtype), entry in zip(layout.SECTIONS, self.header["sections"], strict=True):
            self.sections[name] = np.frombuffer(self.data, dtype, int(entry["count"]), int(entry["offset"]))

    def __getattr__(self, name: str) -> Any:
        return self.sections[name]

    def string(self, offset: int) -> str:
        data = self.sections["strings"].tobytes()
        return data[offset : data.index(b"\0", offset)].decode()

    def blob(self, number: int) -> bytes:
        entry = self.blobs[number]
        return self.blob_bytes[int(entry["offset"]) : int(entry["offset"]) + int(entry["length"])].tobytes()

    def graph(self, set_name: str, key: str) -> Any:
        for row in self.graphs:
            if (self.string(row["set"]), self.string(row["key"])) == (set_name, key):
                return row
        raise KeyError(key)

    def record(self, number: int, dtype: np.dtype[np.void]) -> Any:
        return self.records[number : number + 1].view(dtype)[0]
