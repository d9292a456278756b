"""What is said of images that are none."""

from __future__ import annotations


class ImageError(ValueError):
    """The bytes are no image that a driver would load; the text says why."""


class ForeignImageError(ImageError):
    """The bytes may well be an image, but of a kind that cannot be looked into."""
