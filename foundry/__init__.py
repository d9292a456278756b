"""Foundry: capture CUDA graphs once, start from them in seconds."""

from __future__ import annotations


def get_include() -> str:
    """Name the folder of `foundry.h`, `foundry_capi.h` and `foundry_embed.h`, for a compiler's -I.

    `foundry --include` prints it.
    """
    import os

    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "capi")  # noqa: PTH100, PTH118, PTH120


def get_library() -> str:
    """Name the file of `libfoundry_restore.a`, which programs link that restore graphs without a preloaded hook.

    `foundry --library` prints it.
    """
    from foundry import native

    return str(native.static_library())
