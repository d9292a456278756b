"""The Linux calls that Python does not have: prctl and personality. Imported only where a command is run as a child."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
ADDR_NO_RANDOMIZE = 0x0040000
CURRENT_PERSONALITY = 0xFFFFFFFF

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, argument: int | bytes) -> None:
    value = ctypes.c_char_p(argument) if isinstance(argument, bytes) else ctypes.c_ulong(argument)
    unused = ctypes.c_ulong(0)
    if _libc.prctl(ctypes.c_int(option), value, unused, unused, unused) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def adopts_orphans() -> bool:
    """Whether this process becomes the parent of what its children leave behind."""
    found = ctypes.c_int(0)
    _libc.prctl(ctypes.c_int(PR_GET_CHILD_SUBREAPER), ctypes.byref(found), *[ctypes.c_ulong(0)] * 3)
    return bool(found.value) or os.getpid() == 1


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent ends in whatever way. Call it in the child."""
    _prctl(PR_SET_PDEATHSIG, signal_number)


def name_process(name: str) -> None:
    """Set the name that `ps` shows, up to 15 bytes."""
    _prctl(PR_SET_NAME, name.encode())


def keep_addresses_fixed() -> None:
    """Turn address randomisation off for what this process executes next. OSError where that is forbidden."""
    _libc.personality.argtypes = [ctypes.c_ulong]
    current = _libc.personality(CURRENT_PERSONALITY)
    if current == -1 or _libc.personality(current | ADDR_NO_RANDOMIZE) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def may_keep_addresses_fixed() -> bool:
    """Whether address randomisation may be turned off. What this process executes next is not changed."""
    _libc.personality.argtypes = [ctypes.c_ulong]
    current = _libc.personality(CURRENT_PERSONALITY)
    if current == -1 or _libc.personality(current | ADDR_NO_RANDOMIZE) == -1:
        return False
    return bool(_libc.personality(current) != -1)
