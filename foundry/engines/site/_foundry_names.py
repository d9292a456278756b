"""Tells the hook how a process that `multiprocessing` started is called, so that it is found again by that name.

Engines start their workers at the same time, and which of them comes to the driver first is chance; their names
(`EngineCore`, `VllmWorker-1`, `Process-2`) are not. The hook reads FOUNDRY_PROCESS when the process first uses the
driver, and only in the process whose number stands before the name.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODULES = frozenset({"multiprocessing.process", "multiprocessing.spawn"})


class Names:
    """Stands in front of the finders until both modules of the standard library were imported."""

    def __init__(self) -> None:
        self._waiting = set(MODULES)

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Find one of the modules through the other finders, and wrap one function of it after it has run."""
        if name not in self._waiting:
            return None
        self._waiting.discard(name)
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        own: object = self
        for finder in list(sys.meta_path):
            search = None if finder is own else getattr(finder, "find_spec", None)
            spec = search(name, path, target) if search else None
            if spec is not None:
                _wrap_after(spec.loader, name)
                return spec
        return None


def tell(name: str) -> None:
    """Let this process be called so, unless it is the one that was there before `multiprocessing`."""
    if name != "MainProcess":
        os.environ["FOUNDRY_PROCESS"] = f"{os.getpid()}:{name}"


def _wrap_after(loader: "Any", name: str) -> None:
    plain = loader.exec_module

    def exec_module(module: "Any") -> None:
        plain(module)
        if name == "multiprocessing.process":
            # Every start method comes through it, before anything of the program's.
            _before(module.BaseProcess, "_bootstrap", lambda process, *_, **__: tell(process.name))
        else:
            # A spawned process runs the program's main module before that.
            _before(module, "prepare", lambda data, *_, **__: tell(data.get("name", "MainProcess")))

    loader.exec_module = exec_module


def _before(owner: "Any", name: str, first: "Any") -> None:
    import functools

    plain = getattr(owner, name, None)
    if plain is None:
        return

    @functools.wraps(plain)
    def function(*args: "Any", **kwargs: "Any") -> "Any":
        try:
            first(*args, **kwargs)
        except Exception as error:
            sys.stderr.write(f"foundry: the name of a process is not known: {type(error).__name__}: {error}\n")
        return plain(*args, **kwargs)

    setattr(owner, name, function)
