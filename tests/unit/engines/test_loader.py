"""The import hook, on packages of the test's own."""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from foundry.engines import loader, plugins, protocol
from foundry.engines.protocol import Seam


class Adapter:
    """Marks the module that it waits for."""

    name = "toyengine"
    versions: tuple[str, ...] = ("1.0",)
    fields: Mapping[tuple[str, str], tuple[str, ...]] = {}
    seams = (Seam("toyengine.core", "Core.run", ("self", "size"), ""),)

    def __init__(self, fault: Exception | None = None) -> None:
        self.patched: list[str] = []
        self.fault = fault

    @property
    def patches(self) -> Mapping[str, Callable[[ModuleType], None]]:
        return {"toyengine.core": self.patch}

    def patch(self, module: ModuleType) -> None:
        if self.fault:
            raise self.fault
        self.patched.append(module.__name__)
        module.marked = True  # type: ignore[attr-defined]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "toyengine"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '1.0'\n")
    (package / "core.py").write_text("class Core:\n    def run(self, size):\n        return size\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    disabled = dict(protocol.disabled)
    yield package
    sys.meta_path[:] = before
    protocol.disabled.clear()
    protocol.disabled.update(disabled)
    for name in [name for name in sys.modules if name.partition(".")[0] == "toyengine"]:
        del sys.modules[name]


def watch(adapter: Adapter) -> loader.Watcher:
    watcher = loader.Watcher([adapter])
    sys.meta_path.insert(0, watcher)
    return watcher


def test_a_module_is_patched_when_it_has_run(engine: Path) -> None:
    adapter = Adapter()
    watch(adapter)
    importlib.import_module("toyengine")
    assert adapter.patched == []
    core = importlib.import_module("toyengine.core")
    assert (adapter.patched, core.marked) == (["toyengine.core"], True)


def test_a_module_keeps_no_trace_of_the_hook(engine: Path) -> None:
    watch(Adapter())
    core = importlib.import_module("toyengine.core")
    kind = "SourceFileLoader"
    assert (type(core.__loader__).__name__, type(core.__spec__.loader).__name__) == (kind, kind)
    assert "def run" in inspect.getsource(core.Core)
    importlib.reload(core)


def test_a_module_that_was_there_before_is_patched(engine: Path) -> None:
    importlib.import_module("toyengine.core")
    adapter = Adapter()
    loader.Watcher([adapter]).patch_present()
    assert adapter.patched == ["toyengine.core"]


def test_an_unknown_version_is_said_in_one_line_and_left_alone(engine: Path, caplog: pytest.LogCaptureFixture) -> None:
    (engine / "__init__.py").write_text("__version__ = '1.1'\n")
    adapter = Adapter()
    watch(adapter)
    with caplog.at_level(logging.WARNING, "foundry"):
        importlib.import_module("toyengine.core")
    assert adapter.patched == []
    assert caplog.messages == [
        "foundry: toyengine: version 1.1 is not known, only 1.0: its graphs are captured as always"
    ]


def test_other_parameters_are_named_and_nothing_is_patched(engine: Path, caplog: pytest.LogCaptureFixture) -> None:
    (engine / "core.py").write_text("class Core:\n    def run(self, count, more):\n        return count\n")
    adapter = Adapter()
    watch(adapter)
    core = importlib.import_module("toyengine.core")
    assert adapter.patched == []
    assert core.Core().run(3, 4) == 3
    reason = "toyengine.core.Core.run takes (self, count, more), not (self, size)"
    assert caplog.messages == [f"foundry: toyengine: cannot be patched, its graphs are captured as always: {reason}"]
    assert protocol.disabled == {"toyengine": reason}


def test_a_function_that_is_gone_is_named(engine: Path, caplog: pytest.LogCaptureFixture) -> None:
    (engine / "core.py").write_text("")
    watch(Adapter())
    importlib.import_module("toyengine.core")
    assert "toyengine.core has no Core.run" in caplog.text


def test_a_fault_of_the_adapter_does_not_reach_the_program(engine: Path, caplog: pytest.LogCaptureFixture) -> None:
    watch(Adapter(ValueError("oh")))
    importlib.import_module("toyengine.core")
    assert "ValueError: oh" in caplog.text


def test_a_module_that_fails_fails_as_before(engine: Path) -> None:
    (engine / "core.py").write_text("raise RuntimeError('broken')\n")
    adapter = Adapter()
    watch(adapter)
    with pytest.raises(RuntimeError, match="broken"):
        importlib.import_module("toyengine.core")
    (engine / "core.py").write_text("class Core:\n    def run(self, size):\n        return size + 1\n")
    importlib.invalidate_caches()
    assert importlib.import_module("toyengine.core").marked


def test_a_missing_module_is_missing(engine: Path) -> None:
    (engine / "core.py").unlink()
    watch(Adapter())
    with pytest.raises(ModuleNotFoundError, match=r"toyengine\.core"):
        importlib.import_module("toyengine.core")


def test_the_entry_point_does_nothing_outside_a_hooked_process(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    monkeypatch.delenv("FOUNDRY_MODE", raising=False)
    plugins.load()
    assert sys.meta_path == before
    monkeypatch.setenv("FOUNDRY_MODE", "capture")
    monkeypatch.setenv("FOUNDRY_ADAPTERS", "0")
    plugins.load()
    assert sys.meta_path == before
    monkeypatch.delenv("FOUNDRY_ADAPTERS")
    plugins.load()
    plugins.load()
    assert [type(one).__name__ for one in sys.meta_path if one not in before] == ["Watcher"]


def test_both_engines_find_the_entry_point() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    for group in ("vllm.general_plugins", "sglang.srt.plugins"):
        part = text.partition(f'[project.entry-points."{group}"]\n')[2]
        assert part.startswith('foundry = "foundry.engines.plugins:load"\n')
