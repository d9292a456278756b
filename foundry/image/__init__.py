"""The restore image: what the hook maps, laid out as `native/abi/image_format.h` says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.model import Capture

__all__ = ["build"]


def build(capture: Capture, role: str, path: Path, capture_id: str, *, trim: bool = True) -> None:
    """Write the restore image of one process of a capture under its final name only when it is whole.

    `capture_id` is the hex id of the archive; `trim`: with kernel images for graphs alone beside the whole ones.
    Raises KeyError if the capture has no such role.
    """
    from foundry.image.assemble import build_image

    build_image(capture, role, path, bytes.fromhex(capture_id), trim=trim)
