"""`foundry image`: the restore image of an archive's process, for a program that embeds the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foundry import native
from foundry.errors import ArchiveExistsError, NotInArchiveError, UsageError


@dataclass(frozen=True)
class Request:
    """What the user asked for. `role` None: the archive's only process."""

    archive: Path
    output: Path
    role: str | None = None
    force: bool = False


@dataclass(frozen=True)
class Made:
    """The image that was written."""

    path: Path
    role: str
    graphs: int
    size: int

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        return {
            "image": str(self.path),
            "process": self.role,
            "graphs": self.graphs,
            "bytes": self.size,
            "abi": native.ABI,
        }


def run(request: Request) -> Made:
    """Read the archive and write the image of one process, under its name only when it is whole."""
    from foundry import archive, image

    if request.output.is_dir():
        raise UsageError(f"`{request.output}` is a folder", hint="name a file with `-o`")
    if request.output.exists() and not request.force:
        raise ArchiveExistsError(f"`{request.output}` exists", hint="`--force` replaces it")
    summary = archive.summary(request.archive)
    capture = archive.read(request.archive)
    roles = [process.role for process in capture.processes]
    role = _role(request, roles)
    process = next(process for process in capture.processes if process.role == role)
    image.build(capture, role, request.output, summary.capture_id, trim=False)
    return Made(request.output, role, len(process.graphs), request.output.stat().st_size)


def _role(request: Request, roles: list[str]) -> str:
    if request.role is None and len(roles) == 1:
        return roles[0]
    known = ", ".join(f"`{role}`" for role in roles)
    if request.role is None:
        raise UsageError(
            f"`{request.archive}` holds {len(roles)} processes: {known}" if roles else "the archive holds no process",
            hint="name one with `--process`" if roles else "capture again",
        )
    if request.role not in roles:
        raise NotInArchiveError(f"`{request.archive}` has no process `{request.role}`; it has {known}")
    return request.role
