"""An archive that is open for reading: a process or a blob at a time, so that the largest section bounds the memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from foundry.archive import layout
from foundry.archive.blobs import Blobs
from foundry.archive.container import Container, Section
from foundry.archive.heads import Head, decode_head
from foundry.archive.layout import Kind
from foundry.archive.outlines import Outline, decode_outline
from foundry.archive.parallel import in_order
from foundry.archive.prefetch import decode_prefetch
from foundry.archive.streams import Stream
from foundry.archive.text import ContentError, Fields, decode
from foundry.archive.timeline import decode_timeline
from foundry.findings import ARCHIVE_CONTENT

if TYPE_CHECKING:
    from foundry.archive.summaries import Summary
    from foundry.model import Process, StartFile


class Opened:
    """An archive whose header, footer and table were checked. What it hands out is decoded and checked each time.

    Whatever is wrong with the file is an ArchiveError with a finding code. Close it, or use it as a context manager;
    one thread at a time.
    """

    def __init__(self, path: Path) -> None:
        self._container = Container(path)
        self.path = path
        self.capture_id = self._container.capture_id.hex()
        self.major, self.minor = self._container.major, self._container.minor
        self.size = self._container.size

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    @property
    def sections(self) -> tuple[Section, ...]:
        """The table of contents, in the order of the file."""
        return self._container.sections

    @property
    def raw_size(self) -> int:
        """Bytes of all sections, unpacked."""
        return sum(section.raw for section in self.sections)

    @cached_property
    def head(self) -> Head:
        """What it says of the whole."""
        with self._told():
            head = decode_head(decode(self._container.raw(self._container.required(Kind.CAPTURE))))
            for index in range(head.processes):
                for kind in layout.OF_PROCESS:
                    self._container.required(kind, index)
            for section in self.sections:
                if section.kind in layout.OWNED and section.process >= head.processes:
                    raise ContentError(f"a section belongs to process {section.process} of {head.processes}")
            return head

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The role of each process."""
        with self._told():
            found = [self._text(index).text("role") for index in range(self.head.processes)]
            _require_different(found)
            return tuple(found)

    def outline(self, index: int) -> Outline:
        """Read what a command's start asks of one process."""
        with self._told():
            return decode_outline(self._text(index))

    def _text(self, index: int) -> Fields:
        return decode(self._container.raw(self._container.required(Kind.PROCESS, index)))

    def process(self, index: int) -> Process:
        """Decode one process."""
        return self._process(index, with_parameters=True)

    def structure(self, index: int) -> Process:
        """Decode one process but for its parameters, which are zeros; of their section only the size is looked at.

        All that can be wrong with parameters but their size is their digest, see `check_sections`. Those of a process
        with a proof are decoded, since a proof names words.
        """
        return self._process(index, with_parameters=False)

    def _process(self, index: int, *, with_parameters: bool) -> Process:
        with self._told():
            spent = self._timeline[index]
            small, parameters, whole = self._sections_of(index)
            raw = self._container.begin(small)
            # Not before: numpy is imported while other cores unpack.
            from foundry.archive.processes import decode_sections

            kinds = [Kind(section.kind) for section in small]
            return decode_sections(
                dict(zip(kinds, raw(), strict=True)),
                Stream(self._container, parameters) if with_parameters or whole else parameters.raw,
                spent,
                [entry.size for entry in self.head.blobs],
            )

    def _sections_of(self, index: int) -> tuple[list[Section], Section, bool]:
        """Give what is read of a process: all but its parameters, these, and whether its structure needs them too."""
        *others, parameters = (self._container.required(kind, index) for kind in layout.OF_PROCESS)
        proof = self._container.only(Kind.RELOCATIONS, index)
        more = [section for section in (proof, self._container.only(Kind.DEPENDENCIES, index)) if section]
        return [*others, *more], parameters, proof is not None

    def processes(self) -> Iterator[Process]:
        """Decode the processes one after the other."""
        with self._told():
            roles: list[str] = []
            for index in range(len(self._timeline)):
                process = self.process(index)
                roles.append(process.role)
                _require_different(roles)
                yield process

    def blob(self, index: int) -> bytes:
        """Read the bytes of one blob; `blob-outside` if a thin archive does not hold them."""
        with self._told():
            return self._blobs.blob(index)

    def held_blob(self, index: int) -> bytes | None:
        """Read the bytes of one blob, None if a thin archive does not hold them."""
        return None if self.head.blobs[index].library else self.blob(index)

    def outside_blob(self, index: int, found: bytes) -> bytes:
        """Check the bytes that a library gives for a blob; `blob-outside` if they are not those."""
        with self._told():
            return self._blobs.outside(index, found)

    def blobs(self) -> Iterator[tuple[int, bytes]]:
        """Read all blobs that the archive holds, with their indices."""
        with self._told():
            yield from self._blobs.every()

    def summary(self) -> Summary:
        """Give the archive in brief."""
        from foundry.archive.brief import summary_of

        with self._told():
            return summary_of(self)

    def summary_fields(self) -> Fields | None:
        """Read the summary section, if there is one."""
        with self._told():
            section = self._container.only(Kind.SUMMARY)
            return decode(self._container.raw(section)) if section else None

    def check_section(self, section: Section) -> None:
        """Unpack one section and compare its digest."""
        with self._told():
            self._container.check(section)

    def check_sections(self, *, left_out: bool = False) -> None:
        """Unpack every section and compare every digest, of the sections and of the blobs, on all cores.

        The caller may decode processes meanwhile. `left_out`: those are that `structure` of every process compares.
        """
        with self._told():
            compared: set[Section] = set()
            for index in range(self.head.processes if left_out else 0):
                small, parameters, whole = self._sections_of(index)
                compared.update([*small, parameters] if whole else small)
            blobs = self._blobs
            states = blobs.states()
            numbers = {section: number for number, section in enumerate(blobs.sections)}

            def check(section: Section) -> None:
                if section in numbers:
                    blobs.checked(numbers[section], states)
                else:
                    self._container.check(section)

            # The largest first: at the end, the cores then share what is small. Blobs wait for the one before them.
            others = sorted(
                set(self.sections) - numbers.keys() - compared, key=lambda section: (-section.raw, section.offset)
            )
            for _ in in_order(check, [*others, *blobs.sections]):
                pass

    def check_agreement(self) -> None:
        """Check what no process shows: that their roles differ, the timeline is of all, and files have whole paths."""
        with self._told():
            _ = self.roles, self._timeline, self.start_files

    @cached_property
    def start_files(self) -> tuple[StartFile, ...]:
        """The files that the command read until it was ready, if that was recorded."""
        with self._told():
            section = self._container.only(Kind.PREFETCH)
            return decode_prefetch(decode(self._container.raw(section))) if section else ()

    @cached_property
    def _blobs(self) -> Blobs:
        return Blobs(self._container, self.head.blobs)

    @cached_property
    def _timeline(self) -> tuple[dict[str, int], ...]:
        section, count = self._container.only(Kind.TIMELINE), self.head.processes
        return (
            decode_timeline(decode(self._container.raw(section)), count) if section else tuple({} for _ in range(count))
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Make the archive's error of what a section says wrongly."""
        try:
            yield
        except ContentError as error:
            raise self._container.error(ARCHIVE_CONTENT, str(error)) from None


def _require_different(roles: list[str]) -> None:
    if len(set(roles)) < len(roles):
        raise ContentError("two processes have the same role")
