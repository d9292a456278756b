"""Where the native libraries are, and what Python asks of the hook without loading it into a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from foundry import env
from foundry.errors import NativeLibraryError

ABI = 7
"""FOUNDRY_ABI of `native/abi/spool_format.h`: spools and images of another number are of another build."""
HOOK_NAME = "libfoundry_hook.so"
SIMULATOR_NAME = "libcuda.so.1"
STATIC_NAME = "libfoundry_restore.a"


def library_directory() -> Path:
    """Name the folder of the native libraries: FOUNDRY_LIBRARY_DIR of a development build, else `_lib` here."""
    named = os.environ.get(env.LIBRARY_DIRECTORY)
    return Path(named).absolute() if named else Path(__file__).absolute().parent / "_lib"


def hook_library() -> Path:
    """Find the hook. NativeLibraryError if it is not there."""
    return _present(library_directory() / HOOK_NAME, "hook")


def static_library() -> Path:
    """Find the restore engine for programs that link it. NativeLibraryError if it is not there."""
    return _present(library_directory() / STATIC_NAME, "restore engine to link")


def simulator_directory() -> Path:
    """Find the folder of the simulated libcuda.so.1. NativeLibraryError if it is not there."""
    return _present(library_directory() / "sim" / SIMULATOR_NAME, "simulator").parent


def _present(path: Path, what: str) -> Path:
    if not path.is_file():
        raise NativeLibraryError(
            f"the {what} is missing: no file `{path}`",
            hint="install foundry again; a development build is named by `FOUNDRY_LIBRARY_DIR`",
        )
    return path


class Hook:
    """The hook's C interface, loaded into this process. That touches no driver: the hook does nothing before cuInit."""

    def __init__(self, path: Path | None = None) -> None:
        import ctypes

        self.path = path or hook_library()
        try:
            self._library: Any = ctypes.CDLL(str(self.path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
            self._library.foundry_image_check.argtypes = [ctypes.c_char_p]
            self._library.foundry_image_check.restype = ctypes.c_int
            self._library.foundry_table_row.argtypes = [ctypes.c_uint]
            self._library.foundry_table_row.restype = ctypes.c_char_p
            self._library.foundry_reason.restype = ctypes.c_char_p
            self._library.foundry_capi_version.restype = ctypes.c_int
        except (OSError, AttributeError) as error:
            raise NativeLibraryError(f"`{self.path}` is not a usable hook: {error}") from error

    def interface_version(self) -> int:
        """Tell the version of the C interface."""
        return int(self._library.foundry_capi_version())

    def image_fault(self, path: Path) -> str:
        """Tell why the hook would refuse this restore image, as it checks it itself; empty if it would not."""
        if self._library.foundry_image_check(os.fsencode(path)) == 0:
            return ""
        reason = self._library.foundry_reason()
        return str(reason.decode(errors="replace")) if reason else "no reason given"

    def table(self) -> list[list[str]]:
        """List the driver functions that the hook knows, each as [family, symbol, since, on capture, on restore]."""
        rows: list[list[str]] = []
        while (row := self._library.foundry_table_row(len(rows))) is not None:
            rows.append(row.decode().split())
        return rows
