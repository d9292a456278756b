"""Another distribution that owns the import name `foundry`: the two overwrite each other's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

OWN = "foundry_graphs"
_OWNED = "foundry/__init__.py"


def quick(package: Path | None = None) -> list[str]:
    """Name distributions beside this one whose names begin like it, found by looking at one folder."""
    return _owners((package or Path(__file__).parents[1]).parent, "foundry")


def thorough(paths: list[str]) -> list[str]:
    """Name distributions of any name in these import folders that own files of the package `foundry`."""
    return sorted({name for path in paths for name in _owners(Path(path), "")})


def _owners(folder: Path, prefix: str) -> list[str]:
    return sorted(_distributions(folder, prefix))


def _distributions(folder: Path, prefix: str) -> Iterator[str]:
    try:
        records = list(folder.glob(f"{prefix}*.dist-info/RECORD"))
    except OSError:
        return
    for record in records:
        name, _, version = record.parent.name.removesuffix(".dist-info").partition("-")
        if name == OWN:
            continue
        try:
            owned = any(line.startswith(_OWNED) for line in record.read_text(errors="replace").splitlines())
        except OSError:
            continue
        if owned:
            yield f"{name.replace('_', '-')} {version}"


def warning(owners: list[str]) -> str:
    """Write one line for the user, empty if there is no such distribution."""
    if not owners:
        return ""
    return (
        f"`{', '.join(owners)}` is installed too and owns the same import name `foundry`; "
        "keep them in separate virtual environments"
    )
