"""Sections in a file. Nothing in the file is believed before it is checked against the file's size and the limits."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import zstandard

from foundry import findings
from foundry.archive import layout
from foundry.archive.layout import ENTRY, FOOTER, HEADER, kind_name
from foundry.archive.parallel import begun
from foundry.archive.streams import SHORT, Stream
from foundry.errors import ArchiveError, ArchiveNotFoundError, ArchiveVersionError


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the table of contents."""

    kind: int
    flags: int
    process: int
    offset: int
    stored: int
    raw: int
    digest: bytes

    @property
    def critical(self) -> bool:
        """Whether a reader that does not know the kind must refuse the archive."""
        return bool(self.flags & layout.CRITICAL)

    @property
    def name(self) -> str:
        """The name of its kind in the registry, or `#<number>`."""
        return kind_name(self.kind)

    def packed(self) -> bytes:
        """Lay the entry out as it stands in the file."""
        return ENTRY.pack(self.kind, self.flags, self.process, 0, self.offset, self.stored, self.raw, self.digest)


def capture_id(sections: Iterable[Section]) -> bytes:
    """Hash what is in the archive, whatever the compression: the critical sections in file order."""
    digest = hashlib.sha256(b"foundry capture 1\n")
    for section in sections:
        if section.critical:
            digest.update(section.kind.to_bytes(4, "little") + section.process.to_bytes(4, "little"))
            digest.update(section.raw.to_bytes(8, "little") + section.digest)
    return digest.digest()


class Container:
    """An open archive whose header, footer and table were checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open(path)
        try:
            status = os.fstat(self._file)
            if not stat.S_ISREG(status.st_mode):
                raise self.error(findings.ARCHIVE_NOT_ONE, "it is not a regular file")
            self.size = status.st_size
            self.major, self.minor = self._read_header()
            self.sections, self.capture_id = self._read_table()
        except BaseException:
            os.close(self._file)
            raise
        self._places: dict[tuple[int, int], list[Section]] = {}
        for section in self.sections:
            self._places.setdefault((section.kind, section.process), []).append(section)

    def __enter__(self) -> Container:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def error(self, code: str, text: str) -> ArchiveError:
        """Make the error that says what is wrong with this file."""
        return ArchiveError(f"cannot read the archive `{self.path}`: {text}", code=code)

    def _at(self, offset: int, size: int) -> bytes:
        try:
            data = b""
            while len(data) < size:
                part = os.pread(self._file, size - len(data), offset + len(data))
                if not part:
                    raise self.error(findings.ARCHIVE_TRUNCATED, "it became shorter while it was read")
                data = data + part if data else part
            return data
        except OSError as error:
            raise self.error(findings.ARCHIVE_UNREADABLE, str(error.strerror)) from None

    def _read_header(self) -> tuple[int, int]:
        if not self.size:
            raise self.error(findings.ARCHIVE_EMPTY, "it is empty")
        start = self._at(0, min(self.size, HEADER.size))
        if start[: len(layout.MAGIC)] != layout.MAGIC[: len(start)]:
            raise self.error(findings.ARCHIVE_NOT_ONE, "it is not a Foundry archive")
        if len(start) >= 12:
            major, minor = int.from_bytes(start[8:10], "little"), int.from_bytes(start[10:12], "little")
            if major > layout.MAJOR:
                raise ArchiveVersionError(
                    f"the archive `{self.path}` is of format {major}.{minor}, "
                    f"this Foundry reads up to {layout.MAJOR}.{layout.MINOR}",
                    code=findings.ARCHIVE_TOO_NEW,
                    hint="upgrade Foundry, or capture again",
                )
        if self.size < HEADER.size + FOOTER.size:
            raise self.error(findings.ARCHIVE_TRUNCATED, f"it ends after {self.size} bytes")
        _, major, minor, *zeros = HEADER.unpack(start)
        if major < 1 or any(zeros):
            raise self.error(findings.ARCHIVE_HEADER, "its header is damaged")
        return major, minor

    def _read_table(self) -> tuple[tuple[Section, ...], bytes]:
        footer_at = self.size - FOOTER.size
        footer = FOOTER.unpack(self._at(footer_at, FOOTER.size))
        table_at, count, zero, digest, identity, major, minor, zero_too, magic = footer
        if magic != layout.END_MAGIC:
            raise self.error(findings.ARCHIVE_TRUNCATED, "it does not end with a footer: it was cut, or overwritten")
        if zero or zero_too:
            raise self.error(findings.ARCHIVE_FOOTER, "its footer is damaged")
        if (major, minor) != (self.major, self.minor):
            text = f"its header says version {self.major}.{self.minor}, its footer {major}.{minor}"
            raise self.error(findings.ARCHIVE_HEADER, text)
        if count > layout.MOST_SECTIONS:
            raise self.error(findings.ARCHIVE_LIMIT, f"{count} sections are past the limit of {layout.MOST_SECTIONS}")
        if table_at < HEADER.size or table_at + count * ENTRY.size != footer_at:
            raise self.error(findings.ARCHIVE_FOOTER, "its table does not lie where the footer says")
        table = self._at(table_at, count * ENTRY.size)
        if hashlib.sha256(self._at(0, HEADER.size) + table).digest() != digest:
            raise self.error(findings.ARCHIVE_TABLE, "its table of contents does not match its checksum")
        sections = tuple(self._entry(fields) for fields in ENTRY.iter_unpack(table))
        self._check_layout(sections, table_at)
        if capture_id(sections) != identity:
            raise self.error(findings.ARCHIVE_FOOTER, "its capture id is not that of its sections")
        return sections, identity

    def _entry(self, fields: tuple[int, int, int, int, int, int, int, bytes]) -> Section:
        kind, flags, process, zero, offset, stored, raw, digest = fields
        if zero or flags & ~layout.CRITICAL:
            raise self.error(findings.ARCHIVE_TABLE, f"the table has unknown flags for section {kind_name(kind)}")
        return Section(kind, flags, process, offset, stored, raw, digest)

    def _check_layout(self, sections: tuple[Section, ...], end: int) -> None:
        at = HEADER.size
        for index, section in enumerate(sections):
            name = f"section {index} ({kind_name(section.kind)})"
            if section.offset != at:
                what = "overlaps what is before it" if section.offset < at else "leaves a hole before it"
                raise self.error(findings.ARCHIVE_LAYOUT, f"{name} {what}")
            if not section.stored or section.stored > end - at:
                raise self.error(findings.ARCHIVE_LAYOUT, f"{name} passes the end of the sections")
            if section.raw > layout.largest_raw(section.kind):
                limit = layout.largest_raw(section.kind)
                raise self.error(findings.ARCHIVE_LIMIT, f"{name} has {section.raw} bytes, the limit is {limit}")
            if section.critical and section.kind not in layout.Kind._value2member_map_:
                text = f"{name} is of a kind that this Foundry does not know and must not skip"
                raise self.error(findings.ARCHIVE_SECTION_UNKNOWN, text)
            at += section.stored
        if at != end:
            raise self.error(findings.ARCHIVE_LAYOUT, "there is a hole before the table of contents")

    def only(self, kind: int, process: int = layout.WHOLE) -> Section | None:
        """Find the one section of a kind, if there is one."""
        found = self._places.get((kind, process), [])
        if len(found) > 1:
            raise self.error(findings.ARCHIVE_TABLE, f"it has more than one section {kind_name(kind)}")
        return found[0] if found else None

    def required(self, kind: int, process: int = layout.WHOLE) -> Section:
        """Find the one section of a kind that must be there."""
        found = self.only(kind, process)
        if found is None:
            raise self.error(findings.ARCHIVE_SECTION_MISSING, f"it has no section {kind_name(kind)}")
        return found

    def raw(self, section: Section) -> bytes:
        """Unpack a section and check its digest."""
        data = self.unpacked(section)
        self.require_digest(section, hashlib.sha256(data).digest())
        return data

    def require_digest(self, section: Section, found: bytes) -> None:
        """Check the digest of a section's content."""
        if found != section.digest:
            raise self.error(findings.ARCHIVE_SECTION_DAMAGED, f"{_named(section)} does not match its digest")

    def check(self, section: Section) -> None:
        """Compare a section's digest with its content, which is unpacked a piece at a time and not kept."""
        Stream(self, section, alone=True).finish()

    def unpacked(self, section: Section) -> bytes:
        """Unpack a section whose digest the caller checks. Never makes more than the declared bytes."""
        stored = self.frame(section)
        if not section.raw:  # of such a frame `decompress` looks at the header alone
            self.check(section)
            return b""
        try:
            data = zstandard.ZstdDecompressor().decompress(stored, max_output_size=section.raw, allow_extra_data=False)
        except (zstandard.ZstdError, MemoryError):
            raise self.damaged(section) from None
        if len(data) != section.raw:
            raise self.damaged(section)
        return data

    def damaged(self, section: Section) -> ArchiveError:
        """Make the error of a section whose frame does not unpack to what the table of contents says."""
        return self.error(findings.ARCHIVE_SECTION_DAMAGED, f"{_named(section)} cannot be unpacked")

    @staticmethod
    def unpacker(section: Section) -> zstandard.ZstdDecompressor:
        """Make what unpacks a section a piece at a time, with the largest window that its frame may ask for."""
        return zstandard.ZstdDecompressor(max_window_size=max(layout.LARGEST_WINDOW, section.raw))

    def frame(self, section: Section) -> bytes:
        """Read a section's frame, and check what its header declares."""
        stored = self._at(section.offset, section.stored)
        name = _named(section)
        try:
            parameters = zstandard.get_frame_parameters(stored)
        except zstandard.ZstdError:
            raise self.error(findings.ARCHIVE_SECTION_DAMAGED, f"{name} is not a zstd frame") from None
        if parameters.content_size != section.raw:
            declared = "no size" if parameters.content_size >= zstandard.CONTENTSIZE_ERROR else parameters.content_size
            text = f"{name}: the table says {section.raw} bytes, its frame {declared}"
            raise self.error(findings.ARCHIVE_SECTION_SIZE, text)
        if parameters.window_size > max(layout.LARGEST_WINDOW, section.raw):
            raise self.error(findings.ARCHIVE_LIMIT, f"{name} needs a window of {parameters.window_size} bytes")
        return stored

    def begin(self, sections: Iterable[Section]) -> Callable[[], list[bytes]]:
        """Begin to unpack several sections, on several cores where that pays; what it gives waits for them."""
        wanted = list(sections)
        if sum(section.raw for section in wanted) < SHORT:
            return lambda: [self.raw(section) for section in wanted]
        # The largest first: it then has a core for itself while the others share what is left.
        order = sorted(range(len(wanted)), key=lambda index: -wanted[index].raw)
        wait = begun(self.raw, [wanted[index] for index in order])

        def result() -> list[bytes]:
            found = dict(zip(order, wait(), strict=True))
            return [found[index] for index in range(len(wanted))]

        return result


def _named(section: Section) -> str:
    return f"section {section.name} at byte {section.offset}"


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise ArchiveNotFoundError(f"there is no archive `{path}`") from None
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise ArchiveError(f"cannot read the archive `{path}`: {text}", code=findings.ARCHIVE_UNREADABLE) from None
