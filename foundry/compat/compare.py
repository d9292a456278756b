"""What can be compared without a driver: used before a restore and by `verify --host`, so that both say the same.

A restored graph meets the rest of the program in memory only. So a difference is refused where it may change what the
program writes for graphs to read, or what values a capture would have fixed in them; neither can be noticed later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from foundry import env
from foundry.compat import codes
from foundry.compat.items import Item, Level
from foundry.compat.packages import lays_out

if TYPE_CHECKING:
    from foundry.model import Image

ARGUMENTS = "argv"
"""Key of an archive's context: the masked argument vector, as JSON."""
VARIABLE = "env."
"""Prefix of a context key that holds an allow-listed variable."""
VERSION = "foundry"
"""Key of an archive's context: the version of Foundry that captured."""
RELEASE = "driver_release"
"""Key of an archive's context: the driver's own version, such as 580.159.04."""

HARMLESS_OPTIONS = (
    "--host", "--port", "--uds", "--root-path", "--api-key", "--served-model-name", "--log-level", "--log-config",
    "--uvicorn-log-level", "--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--nccl-port", "--dist-init-addr",
)  # fmt: skip
"""Options with a value that says where and as whom a server serves, never what it computes."""
_VARIABLE_LEVELS = {
    "CUDA_VISIBLE_DEVICES": Level.NOTE,
    "CUDA_DEVICE_ORDER": Level.NOTE,
    "CUDA_MODULE_LOADING": Level.WARN,
    "PYTORCH_CUDA_ALLOC_CONF": Level.WARN,
    "CUBLAS_WORKSPACE_CONFIG": Level.REFUSE,
}
"""Which GPU it is gets compared by itself; what moves memory is found by the allocation log."""
_GROUP_SIZE = "WORLD_SIZE"
# Compiled when they are first used: most starts need neither.
_PYTHON = r"(python|pypy)[\d.]*t?"
_CUDA_LIBRARY = r"lib(cublas|cublasLt|cudnn\w*|cufft\w*|cusolver\w*|cusparse\w*|curand|npp\w+)\.so[.\d]*"
"""Libraries with a stable interface, of which only the choice and rounding of kernels may differ."""


class Library(NamedTuple):
    """A library file, by its base name, that kernel images came from."""

    name: str
    build_id: str


Find = Callable[[Library], "str | None"]
"""Tells what build id a library of that name has here, the same one if any has it: empty if it has none, None if it is
not found."""

Context = Mapping[str, str]


def simulated(captured: Iterable[bool], here: bool) -> Item:
    """Compare what kind of driver it is."""
    kinds = set(captured)
    names = " and ".join(_driver_kind(value) for value in sorted(kinds)) or "none"
    level = Level.SAME if kinds <= {here} else Level.REFUSE
    return Item(codes.SIMULATED, "simulated", names, _driver_kind(here), level)


def _driver_kind(value: bool) -> str:
    return "the simulator" if value else "a real driver"


def graphs(restorable: int) -> Item:
    """Ask for something to restore."""
    level = Level.SAME if restorable else Level.REFUSE
    return Item(codes.NO_GRAPHS, "restorable graphs", str(restorable), "at least 1 is needed", level)


def models(captured: Iterable[str], here: Sequence[str]) -> Iterator[Item]:
    """Compare GPU models by what the kernel module says: nothing if there is no saying. The hook compares exactly."""
    names = sorted(set(captured))
    if names and here:
        # A MIG slice's name begins like its GPU's.
        pairs = ((one.casefold(), other.casefold()) for one in names for other in here)
        same = any(one.startswith(other) or other.startswith(one) for one, other in pairs)
        level = Level.SAME if same else Level.REFUSE
        yield Item(codes.GPU_MODEL, "GPU model", ", ".join(names), ", ".join(sorted(set(here))), level)


def release(context: Context, now: str, *, simulated: bool) -> Iterator[Item]:
    """Compare the driver's own version; empty if it is not known."""
    before = context.get(RELEASE, "")
    if before and not simulated:
        level = Level.UNKNOWN if not now else Level.SAME if before == now else Level.NOTE
        yield Item(codes.RELEASE, "driver release", before, now or "unknown", level)


def command(context: Context, arguments: Sequence[str] | None, environment: Mapping[str, str]) -> Iterator[Item]:
    """Compare the command line, masked, and the variables. `arguments` None: there is no command to compare."""
    captured = captured_arguments(context)
    if arguments is not None:
        import shlex

        level = _arguments_level(captured, arguments) if captured else Level.UNKNOWN
        told = shlex.join(captured) if captured else "not recorded"
        yield Item(codes.ARGUMENTS, "command", told, shlex.join(arguments), level)
    if captured:
        for name, worst in _VARIABLE_LEVELS.items():
            before, now = context.get(VARIABLE + name), environment.get(name)
            if before is not None or now is not None:
                yield Item(codes.VARIABLE, name, _value(before), _value(now), Level.SAME if before == now else worst)


def _arguments_level(captured: Sequence[str], arguments: Sequence[str]) -> Level:
    before, now = _located(captured), _located(arguments)
    if before == now:
        return Level.SAME
    return Level.NOTE if _decisive(before) == _decisive(now) else Level.REFUSE


def _located(arguments: Sequence[str]) -> list[str]:
    """Leave out where the program lies: an interpreter by its kind, a program or script by its base name."""
    words = [word.rpartition("/")[2] if at == 0 else word for at, word in enumerate(arguments)]
    if words and re.fullmatch(_PYTHON, words[0]):
        words[0] = "python"
        script = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
        if script and not {"-c", "-m"} & set(words[:script]):
            words[script] = words[script].rpartition("/")[2]
    return words


def _decisive(arguments: Sequence[str]) -> list[str]:
    """Leave out the options that say only where and as whom a server serves."""
    kept = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in HARMLESS_OPTIONS:
            kept.append(word)
        elif not equals:
            next(words, None)
    return kept


def captured_arguments(context: Context) -> list[str]:
    """Read the masked command line of a capture; empty if it is not told."""
    try:
        return [str(word) for word in json.loads(context.get(ARGUMENTS, "null") or "null") or ()]
    except (ValueError, TypeError):
        return []


def ranks(captured: Sequence[Mapping[str, str]], environment: Mapping[str, str]) -> Iterator[Item]:
    """Compare the rank variables of each process with those of this shell.

    A launcher sets them for each worker, so that none in this shell is the usual case.
    """
    names = (*env.RANK_VARIABLES, _GROUP_SIZE)
    before = dict.fromkeys(f"{name}={process[name]}" for process in captured for name in names if name in process)
    now = [f"{name}={environment[name]}" for name in names if name in environment]
    if not before and not now:
        return
    level = Level.SAME if set(now) <= set(before) else Level.WARN
    sizes = {process[_GROUP_SIZE] for process in captured if _GROUP_SIZE in process}
    if sizes and environment.get(_GROUP_SIZE, next(iter(sizes))) not in sizes:
        level = Level.REFUSE
    yield Item(codes.RANKS, "ranks", ", ".join(before) or "none", ", ".join(now) or "as the launcher sets them", level)


def packages(captured: Mapping[str, str], here: Mapping[str, str]) -> Iterator[Item]:
    """Compare versions of Python distributions. None here: they are not known."""
    for name in sorted(captured):
        before, now = captured[name], here.get(name)
        code = codes.ENGINE if lays_out(name) else codes.PACKAGE
        level = Level.SAME if now == before else codes.RULES[code].level if here else Level.UNKNOWN
        yield Item(code, name, before, now or ("not found" if here else "unknown"), level)


def origins(images: Iterable[Image]) -> Iterator[Library]:
    """List the libraries that images of graphs came from."""
    for image in images:
        if image.build_id and image.provenance and image.in_graphs:
            yield Library(image.provenance, image.build_id)


def libraries(captured: Iterable[Library], find: Find | None, *, needed: bool) -> Iterator[Item]:
    """Compare build ids of libraries that images of graphs came from, or that a thin archive needs."""
    code = codes.LIBRARY_NEEDED if needed else codes.LIBRARY
    for library in sorted(captured):
        found = find(library) if find else None
        if found == library.build_id:
            level, text = Level.SAME, _short(found)
        elif found is None:
            level, text = Level.UNKNOWN, "not found"
        else:
            level = Level.WARN if re.fullmatch(_CUDA_LIBRARY, library.name) else Level.REFUSE
            text = _short(found) or "without a build id"
        if needed and level is not Level.SAME:
            level = Level.REFUSE
        yield Item(code, library.name, _short(library.build_id), text, level)


def _short(build_id: str) -> str:
    return f"build {build_id[:16]}" if build_id else ""


def _value(value: str | None) -> str:
    return "not set" if value is None else value or "empty"
