"""The machine: system, C library, processor, container, limits, address space."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Iterator

from foundry.launch import linux
from foundry.session.doctor.check import BOTH, Check, Surroundings, bad, good, note

LEAST_GLIBC = (2, 31)
LEAST_FILES = 1024
LEAST_MAPPINGS = 65530
CANDIDATES = (0x403500000000, 0x203500000000, 0x303500000000, 0x503500000000, 0x103500000000)
"""The addresses that the hook tries on the first GPU, in its order."""
RANGE_BYTES = 3 * (256 << 30)
_KINDS = ("docker", "containerd", "kubepods", "podman", "lxc", "libpod", "garden")


def system(_: Surroundings) -> Iterator[Check]:
    """Tell the operating system."""
    found = f"{platform.system()} {platform.release()}, {platform.machine()}, Python {platform.python_version()}"
    if sys.platform == "linux" and platform.machine() == "x86_64":
        yield good("system", found)
    else:
        yield bad("system", found, "use Linux on x86-64")


def c_library(_: Surroundings) -> Iterator[Check]:
    """Tell the C library."""
    name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    version = tuple(int(part) for part in name.rpartition(" ")[2].split(".") if part.isdigit())
    if version >= LEAST_GLIBC:
        yield good("C library", name)
    else:
        least = ".".join(map(str, LEAST_GLIBC))
        yield bad("C library", name or "not glibc", f"use a system with glibc {least} or newer")


def processor(here: Surroundings) -> Iterator[Check]:
    """Tell processor and memory."""
    model = next((value for name, value in _pairs(here.text("proc/cpuinfo")) if name == "model name"), "unknown")
    memory = dict(_pairs(here.text("proc/meminfo"))).get("MemAvailable", "").split()
    free = f", {int(memory[0]) / (1 << 20):.0f} GiB of memory free" if memory and memory[0].isdigit() else ""
    yield good("processor", f"{model}, {len(os.sched_getaffinity(0))} usable cores{free}")


def container(here: Surroundings) -> Iterator[Check]:
    """Tell whether this is a container, and what system calls are filtered."""
    groups = here.text("proc/1/cgroup") + here.text("proc/self/mountinfo")[:65536]
    kind = next((kind for kind in _KINDS if kind in groups), "")
    if here.present(".dockerenv"):
        kind = "docker"
    elif here.present("run/.containerenv"):
        kind = "podman"
    status = dict(_pairs(here.text("proc/self/status")))
    filtered = {"0": "no", "1": "strict", "2": "filtered"}.get(status.get("Seccomp", ""), "unknown")
    yield good("container", f"{kind or 'none seen'}; system call filter: {filtered}")


def limits(_: Surroundings) -> Iterator[Check]:
    """Tell the limits of this shell."""
    space, files = _limit(resource.RLIMIT_AS), _limit(resource.RLIMIT_NOFILE)
    locked, size = _limit(resource.RLIMIT_MEMLOCK), _limit(resource.RLIMIT_FSIZE)
    if space is not None:
        hint = "lift it: `ulimit -v unlimited`"
        yield bad("limit of address space", f"{_size(space)}; the hook reserves {_size(RANGE_BYTES)} per GPU", hint)
    if files is not None and files < LEAST_FILES:
        yield note("limit of open files", str(files), f"raise it: `ulimit -n {LEAST_FILES}`")
    if size is not None:
        yield note("limit of file size", _size(size), "lift it: `ulimit -f unlimited`")
    shown = (("address space", space), ("open files", files), ("locked memory", locked), ("file size", size))
    yield good(
        "limits",
        ", ".join(
            f"{name} {'unlimited' if value is None else value if name == 'open files' else _size(value)}"
            for name, value in shown
        ),
    )


def kernel_memory(here: Surroundings) -> Iterator[Check]:
    """Tell how the kernel gives out memory."""
    overcommit, mappings = here.number("proc/sys/vm/overcommit_memory"), here.number("proc/sys/vm/max_map_count")
    found = f"overcommit_memory {_shown(overcommit)}, max_map_count {_shown(mappings)}"
    if overcommit == 2:
        hint = "if memory runs out early: `sysctl vm.overcommit_memory=0`"
        yield note("kernel memory", f"{found}: memory is promised only up to a limit", hint)
    elif mappings is not None and mappings < LEAST_MAPPINGS:
        yield note("kernel memory", found, f"raise it: `sysctl vm.max_map_count={LEAST_MAPPINGS}`")
    else:
        yield good("kernel memory", found)


def tracing(here: Surroundings) -> Iterator[Check]:
    """Tell who may trace: Foundry does not need it, debuggers do."""
    scope = here.number("proc/sys/kernel/yama/ptrace_scope")
    meanings = {0: "every process of the user", 1: "own children", 2: "administrators", 3: "nobody"}
    yield good("ptrace", f"{'not restricted' if scope is None else meanings.get(scope, str(scope))}; not needed")


def address_space(here: Surroundings) -> Iterator[Check]:
    """Tell whether the addresses that the hook wants are free, and whether randomisation can be turned off."""
    level, bits = here.number("proc/sys/kernel/randomize_va_space"), here.number("proc/sys/vm/mmap_rnd_bits")
    free = [base for base in CANDIDATES if not _taken(here.text("proc/self/maps"), base, RANGE_BYTES)]
    found = f"{len(free)} of {len(CANDIDATES)} ranges free, randomisation {_shown(level)} ({_shown(bits)} bits)"
    if not free:
        hint = "something maps memory there in each process: look at `LD_PRELOAD` and sanitizers"
        yield bad("address space", found, hint, BOTH)
    elif CANDIDATES[0] not in free:
        yield note(
            "address space", f"{found}; the first, {CANDIDATES[0]:#x}, is taken", "`cat /proc/self/maps` shows by what"
        )
    else:
        yield good("address space", found)
    allowed = may_fix_addresses()
    if allowed:
        yield good("fixed addresses", "can be had, should a range be taken")
    else:
        hint = "in a container: `--security-opt seccomp=unconfined`, needed only when a restore says `range taken`"
        yield note("fixed addresses", "the system forbids to turn address randomisation off", hint)


def may_fix_addresses() -> bool:
    """Whether a command could be started with address randomisation off; leaves this process as it is."""
    try:
        return linux.may_keep_addresses_fixed()
    except OSError:
        return False


def _taken(maps: str, base: int, size: int) -> bool:
    for line in maps.splitlines():
        start, _, end = line.split(" ", 1)[0].partition("-")
        try:
            if int(start, 16) < base + size and int(end, 16) > base:
                return True
        except ValueError:
            continue
    return False


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _limit(which: int) -> int | None:
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _shown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _size(size: int) -> str:
    for unit, bytes_each in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_each:
            return f"{size / bytes_each:.4g} {unit}"
    return f"{size} bytes"
