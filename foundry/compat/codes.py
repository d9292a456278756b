"""The codes of what an archive is compared with a machine by: how much each matters, and whether it may be allowed.

`--allow CODE` lets one kind of difference pass. It never reaches what could not work, or could not be noticed to be
wrong: those have a reason in `never`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from foundry.compat.items import Item, Level
from foundry.compat.packages import LAYING_OUT
from foundry.errors import UsageError

NO_HOOK = "host-no-hook"
NO_DRIVER = "host-no-driver"
DEVICES = "host-devices"
VIRTUAL_MEMORY = "host-virtual-memory"
MEMORY = "host-memory"
COMPUTE_MODE = "host-compute-mode"
SIMULATED = "mismatch-simulated"
NO_GRAPHS = "mismatch-no-graphs"
GPU_MODEL = "mismatch-gpu-model"
COMPUTE = "mismatch-compute-capability"
MULTIPROCESSORS = "mismatch-multiprocessors"
MIG = "mismatch-mig"
ARENAS = "mismatch-arenas"
DRIVER = "mismatch-driver"
RELEASE = "mismatch-driver-release"
ARGUMENTS = "mismatch-arguments"
VARIABLE = "mismatch-variable"
RANKS = "mismatch-ranks"
ENGINE = "mismatch-engine"
PACKAGE = "mismatch-package"
LIBRARY = "mismatch-library"
LIBRARY_NEEDED = "library-missing"
VERSION = "mismatch-foundry"


class Rule(NamedTuple):
    """What is to be known of a code. `level` is the worst; `never` says why it cannot be allowed, empty if it can."""

    code: str
    level: Level
    meaning: str
    risk: str
    never: str = ""


_LAYING_OUT = ", ".join(f"`{name}`" for name in LAYING_OUT)
_HARMLESS = "nothing is refused for it"

RULES = {
    rule.code: rule
    for rule in (
        Rule(
            SIMULATED, Level.REFUSE, "simulator and real driver are mixed up", "",
            "kernels of the one are no code for the other",
        ),
        Rule(NO_GRAPHS, Level.REFUSE, "nothing in the archive can be restored", "", "there is nothing to restore"),
        Rule(
            LIBRARY_NEEDED, Level.REFUSE, "a thin archive needs a library that is not here", "",
            "the kernels in it are in no other place",
        ),
        Rule(NO_HOOK, Level.REFUSE, "the hook cannot be loaded", "", "nothing would be restored without it"),
        Rule(NO_DRIVER, Level.REFUSE, "no CUDA driver answers", "", "there is nothing to run on"),
        Rule(DEVICES, Level.REFUSE, "a GPU that the process used is not here", "", "there is nothing to run on"),
        Rule(
            VIRTUAL_MEMORY, Level.REFUSE, "the GPU has no virtual memory management", "",
            "addresses cannot be made to come back",
        ),
        Rule(COMPUTE_MODE, Level.REFUSE, "the GPU lets no process use it", "", "the driver refuses every program"),
        Rule(
            COMPUTE, Level.REFUSE, "another compute capability", "",
            "kernels are machine code for one compute capability",
        ),
        Rule(
            GPU_MODEL, Level.REFUSE, "another GPU model",
            "kernels and their sizes were chosen for the other model: right results, maybe slow",
        ),
        Rule(
            MULTIPROCESSORS, Level.REFUSE, "another number of multiprocessors",
            "kernels whose blocks wait for one another may hang where there are fewer",
        ),
        Rule(
            MIG, Level.REFUSE, "a MIG slice on one side only",
            "as for another number of multiprocessors; less cache and bandwidth",
        ),
        Rule(
            DRIVER, Level.REFUSE, "the driver's CUDA is older; a newer one is a note",
            "what the older driver does not know is given up, graph by graph",
        ),
        Rule(
            ARGUMENTS, Level.REFUSE, "other arguments; a note if only addresses, ports, keys and log levels differ",
            "values that the arguments decide may be fixed in graphs, such as another model's constants",
        ),
        Rule(
            RANKS, Level.REFUSE, "another `WORLD_SIZE`; a warning for a rank that was not captured",
            "graphs hold the shape of the old group",
        ),
        Rule(
            ENGINE, Level.REFUSE, "another version of a package that lays out memory which graphs read: " + _LAYING_OUT,
            "graphs may read weights, caches or plans in a layout that is no longer written",
        ),
        Rule(
            LIBRARY, Level.REFUSE,
            "another build of a library that kernels of graphs came from; a warning for CUDA's own libraries",
            "graphs run the kernels of the old build, without what was changed in them",
        ),
        Rule(
            VARIABLE, Level.REFUSE,
            "`CUBLAS_WORKSPACE_CONFIG` differs; a warning for `CUDA_MODULE_LOADING` and `PYTORCH_CUDA_ALLOC_CONF`, "
            "a note for those that choose among GPUs",
            "graphs keep the old choice of kernels, deterministic or not",
        ),
        Rule(
            PACKAGE, Level.WARN, "another version of another package whose kernels are in graphs, such as cuBLAS",
            "graphs run the old version's kernels, the rest of the program the new one's: results may round "
            "differently than on a plain start",
        ),
        Rule(MEMORY, Level.WARN, "less device memory than was in use at the capture", "the program may run out of it"),
        Rule(RELEASE, Level.NOTE, "another release of the driver", "", _HARMLESS),
        Rule(ARENAS, Level.NOTE, "another size of memory, for which a capture would make other arenas", "", _HARMLESS),
        Rule(VERSION, Level.NOTE, "another version of Foundry", "", _HARMLESS),
    )
}  # fmt: skip
"""All codes, those that can never be allowed first."""


def allowable(code: str) -> bool:
    """Whether `--allow` takes this code."""
    return code in RULES and not RULES[code].never


def code_of(reason: str) -> str | None:
    """Give the code that the hook's reason begins with; None if it has none."""
    code, colon, _ = reason.partition(": ")
    return code if colon and code in RULES else None


def require_allowable(codes: Iterable[str]) -> frozenset[str]:
    """Give the codes as a set. Raises UsageError for one that does not exist, or that can never be allowed."""
    wanted = frozenset(codes)
    for code in sorted(wanted):
        if code not in RULES:
            raise UsageError(f"`--allow {code}`: there is no such code", hint=_hint())
        if RULES[code].never:
            raise UsageError(f"`--allow {code}`: it cannot be allowed: {RULES[code].never}", hint=_hint())
    return wanted


def hint(names: Iterable[str]) -> str:
    """Say what to do about refusals with these codes."""
    refused = dict.fromkeys(names)
    if SIMULATED in refused:
        return "`--sim` goes with archives that were captured with `--sim`, and with no others"
    again = "capture again: `foundry capture -- CMD`"
    if not refused or not all(map(allowable, refused)):
        return again
    return f"{again}; `{' '.join(f'--allow {name}' for name in refused)}` restores all the same"


def _hint() -> str:
    return "these can be: " + ", ".join(code for code, rule in RULES.items() if not rule.never)


def document(item: Item) -> dict[str, object]:
    """Write an item for machines."""
    return {**item.as_dict(), "allowable": allowable(item.code)}
