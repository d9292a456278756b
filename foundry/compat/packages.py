"""Versions of the packages that decide which kernels run, read off folder names: no interpreter is started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ENGINES = ("vllm", "sglang", "transformers", "tensorrt-llm", "lmdeploy")
"""Serving engines."""
NAMES = (
    "torch",
    *ENGINES,
    "triton",
    "flashinfer-python",
    "flash-attn",
    "xformers",
    "deep-gemm",
    "sgl-kernel",
    "cuda-bindings",
    "nvidia-cublas",
    "nvidia-cublas-cu12",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
)
"""Packages that decide which kernels run."""
LAYING_OUT = ("torch", *ENGINES, "flashinfer", "flash-attn", "xformers", "deep-gemm", "sgl-kernel", "nvidia-nccl")
"""How packages begin whose code lays out memory that graphs read: weights, caches, plans, communicators."""
_SUFFIX = ".dist-info"


def versions(folders: Iterable[Path]) -> dict[str, str]:
    """Find the packages in these import folders; the first folder that has one counts, as for an import."""
    found: dict[str, str] = {}
    for folder in folders:
        for name, version in _distributions(folder):
            found.setdefault(name, version)
    return dict(sorted(found.items()))


def lays_out(name: str) -> bool:
    """Whether this package's code lays out memory that graphs read."""
    return any(name == begin or name.startswith(begin + "-") for begin in LAYING_OUT)


def _distributions(folder: Path) -> Iterator[tuple[str, str]]:
    try:
        entries = [entry.name for entry in folder.iterdir() if entry.name.endswith(_SUFFIX)]
    except OSError:
        return
    for entry in sorted(entries):
        name, _, version = entry.removesuffix(_SUFFIX).partition("-")
        name = re.sub(r"[-_.]+", "-", name).lower()
        if version:
            yield name, version


def import_folders(program: Path, environment: Mapping[str, str]) -> list[Path]:
    """List the folders that a Python interpreter imports from, most important first; empty if it is no Python.

    `program` is not resolved: a virtual environment is a link with a folder of its own.
    """
    if not re.fullmatch(r"(python|pypy)[\d.]*t?", program.name):
        return []
    folders = [Path(entry) for entry in environment.get("PYTHONPATH", "").split(":") if entry]
    prefix = program.absolute().parent.parent
    home = _base_of(prefix)
    own, user = _site_folders(prefix), environment.get("HOME", "")
    users = _site_folders(Path(user) / ".local") if user and "PYTHONNOUSERSITE" not in environment else []
    if home is None:
        # The interpreter may be a link into another folder.
        folders += [*users, *own, *_site_folders(program.resolve().parent.parent)]
    else:
        folders += [*own, *users, *_site_folders(home)] if _sees_base(prefix) else own
    unique: dict[Path, Path] = {}
    for folder in folders:
        unique.setdefault(folder.resolve(), folder)  # `lib64` may be a link to `lib`
    return list(unique.values())


def _site_folders(prefix: Path) -> list[Path]:
    found: list[Path] = []
    for pattern in ("lib/python3*/site-packages", "lib64/python3*/site-packages", "local/lib/python3*/dist-packages"):
        found += sorted(prefix.glob(pattern))
    return found + [path for path in (prefix / "lib/python3/dist-packages",) if path.is_dir()]


def _settings(prefix: Path) -> dict[str, str]:
    try:
        text = (prefix / "pyvenv.cfg").read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _base_of(prefix: Path) -> Path | None:
    """Name the prefix of the interpreter that a virtual environment was made from; None if it is none."""
    home = _settings(prefix).get("home")
    return Path(home).parent if home else None


def _sees_base(prefix: Path) -> bool:
    return _settings(prefix).get("include-system-site-packages", "").lower() == "true"
