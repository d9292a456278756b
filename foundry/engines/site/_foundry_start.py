"""Waits in a hooked Python process until it imports a package that foundry has adapters for. Imports nothing before."""

import os
import sys

PACKAGES = frozenset({"torch", "vllm", "sglang", "transformers"})


class FirstImport:
    """Stands in front of the finders, finds nothing, and makes room for the adapters at the first such import."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Let the import go on as it would, after the adapters are ready for what it brings."""
        if name not in PACKAGES or self not in sys.meta_path:
            return
        place = sys.meta_path.index(self)
        try:
            _have_foundry()
            from foundry.engines import loader

            sys.meta_path[place] = loader.watcher()
        except Exception as error:
            del sys.meta_path[place]
            sys.stderr.write(f"foundry: no adapters in this process: {type(error).__name__}: {error}\n")


def begin() -> None:
    """Write down what is opened, if that is asked for, and wait for the first import of interest, unless it is not."""
    if log := os.environ.get("FOUNDRY_OPENED"):
        from _foundry_opened import Opened  # type: ignore[import-not-found]

        sys.addaudithook(Opened(log))
    from _foundry_names import Names  # type: ignore[import-not-found]

    sys.meta_path.insert(0, Names())
    if os.environ.get("FOUNDRY_ADAPTERS") != "0":
        sys.meta_path.insert(0, FirstImport())


def _have_foundry() -> None:
    """Make `foundry` importable, by a path of its own: nothing that lies beside it may come into this process.

    A foundry that the process has by itself comes first, since the program may use it. Another package of that name
    is not touched.
    """
    import importlib.util
    from pathlib import Path

    own = Path(__file__).resolve().parents[2]
    found = importlib.util.find_spec("foundry")
    if found is None:
        spec = importlib.util.spec_from_file_location(
            "foundry", own / "__init__.py", submodule_search_locations=[str(own)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"no package in {own}")
        module = importlib.util.module_from_spec(spec)
        sys.modules["foundry"] = module
        spec.loader.exec_module(module)
    elif not any(Path(folder, "engines", "loader.py").is_file() for folder in found.submodule_search_locations or ()):
        raise ImportError("this process has another package, or another version, called foundry")
