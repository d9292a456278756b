"""Gives each adapter the modules of its engine when they are imported, and only those of a release that it knows.

The import hook is one finder in front of the others. It looks at names only; the modules that it hands on are found
and run by whoever would have found and run them.
"""

from __future__ import annotations

import importlib.machinery
import inspect
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from types import ModuleType
from typing import Any

from foundry.engines.protocol import Adapter, Seam, disabled, tell, version_of
from foundry.engines.sglang.adapter import SglangAdapter
from foundry.engines.torch_seam import TorchAdapter
from foundry.engines.transformers.adapter import TransformersAdapter
from foundry.engines.vllm.adapter import VllmAdapter


def adapters() -> list[Adapter]:
    """All adapters."""
    return [TorchAdapter(), VllmAdapter(), SglangAdapter(), TransformersAdapter()]


class Watcher:
    """The import hook."""

    def __init__(self, known: Sequence[Adapter]) -> None:
        self._waiting: dict[str, Adapter] = {module: one for one in known for module in one.patches}
        self._judged: dict[str, bool] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a module that an adapter waits for, through the other finders; leave all others to them."""
        if name not in self._waiting:
            return None
        for finder in list(sys.meta_path):
            search = None if finder is self else getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = search(name, path, target) if search else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Then(spec.loader, self)
                return spec
        return None

    def imported(self, module: ModuleType) -> None:
        """Let the adapter patch a module that has just run. What goes wrong in it is no fault of the program."""
        name = module.__name__
        adapter = self._waiting.pop(name, None)
        if adapter is None or not self._knows(adapter):
            return
        try:
            fault = next(filter(None, (moved(seam, module) for seam in adapter.seams if seam.module == name)), None)
            if fault is None:
                adapter.patches[name](module)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        if fault is not None:
            self._judged[adapter.name] = False
            disabled[adapter.name] = fault
            tell(adapter.name, f"cannot be patched, its graphs are captured as always: {fault}")

    def patch_present(self) -> None:
        """Patch what was imported before this hook came."""
        for name in list(self._waiting):
            module = sys.modules.get(name)
            if module is not None:
                self.imported(module)

    def _knows(self, adapter: Adapter) -> bool:
        if adapter.name not in self._judged:
            found = version_of(adapter.name)
            known = not adapter.versions or found.partition("+")[0] in adapter.versions
            self._judged[adapter.name] = known
            if not known:
                versions = ", ".join(adapter.versions)
                tell(adapter.name, f"version {found} is not known, only {versions}: its graphs are captured as always")
        return self._judged[adapter.name]


class _Then(Loader):
    """Runs a module as its own loader would, then tells the watcher. The module keeps no trace of it."""

    def __init__(self, loader: Any, watcher: Watcher) -> None:
        self._loader = loader
        self._watcher = watcher

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Leave it to the loader."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then let its adapter have it."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._watcher.imported(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


_watcher: Watcher | None = None


def watcher() -> Watcher:
    """Return the one import hook of this process. Whoever asks first puts it in front of the finders."""
    global _watcher
    if _watcher is None:
        _watcher = Watcher(adapters())
        _watcher.patch_present()
    return _watcher


def begin() -> None:
    """Have the import hook in this process, whether or not it was there from its start."""
    if watcher() not in sys.meta_path:
        sys.meta_path.insert(0, watcher())


def moved(seam: Seam, module: ModuleType) -> str | None:
    """Say how a function differs from what the adapter expects, as far as the running process tells, or None."""
    if not seam.replaced:
        return None
    found: Any = module
    for part in seam.name.split("."):
        found = getattr(found, part, None)
    if found is None:
        return f"{seam.module} has no {seam.name}"
    parameters = tuple(inspect.signature(found).parameters)
    if parameters != seam.parameters:
        return f"{seam.module}.{seam.name} takes ({', '.join(parameters)}), not ({', '.join(seam.parameters)})"
    return None
