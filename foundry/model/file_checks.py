"""Is sound what a capture says of files: an archive is read from outside. Needs no numpy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from foundry.model.files import File, Library, LibraryPlace, StartFile
from foundry.model.unsound import require, require_index

LARGEST_CONTAINER = 1 << 30
LARGEST_OFFSET = 1 << 53
LARGEST_ARCHITECTURE = 9999
NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What a role and a cache may be called, but for dots alone."""
LONGEST_PATH = 4096
MOST_START_FILES = 1 << 16
MOST_RANGES = 1 << 20
_FOLDER = re.compile(r"~?(?:/(?!\.{1,2}(?:/|\Z))[^/\0]+)*")
_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){1,64}")


def check_outside(places: Mapping[int, LibraryPlace], blob_sizes: Sequence[int]) -> None:
    """Check what is said of blobs that lie in library files."""
    for index, place in places.items():
        require_index(index, len(blob_sizes), "a library place")
        where = f"blob {index}, its library"
        require(_file_name(place.name), f"{where}: the name {place.name!r} is not a file name")
        require(_BUILD_ID.fullmatch(place.build_id) is not None, f"{where}: the build id is not one")
        require(0 < place.size <= LARGEST_CONTAINER, f"{where}: {place.size} bytes are past the limit")
        require(place.offset + place.size <= LARGEST_OFFSET, f"{where}: byte {place.offset} is past the limit")
        require(0 <= place.architecture <= LARGEST_ARCHITECTURE, f"{where}: {place.architecture} is no architecture")
        require(0 < blob_sizes[index] <= LARGEST_CONTAINER, f"{where}: the blob's size is past the limit")
        whole = place.architecture > 0 or place.size == blob_sizes[index]
        require(whole, f"{where}: {place.size} bytes there are {blob_sizes[index]} here")


def check_libraries(libraries: Sequence[Library]) -> None:
    """Check the list of libraries of a process."""
    for library in libraries:
        require(_file_name(library.name), f"the library name {library.name!r} is not a file name")
        known = not library.build_id or _BUILD_ID.fullmatch(library.build_id) is not None
        require(known, f"the build id of the library `{library.name}` is not one")
    require(list(libraries) == sorted(set(libraries)), "libraries are not in order")


def _file_name(name: str) -> bool:
    return 0 < len(name) <= 255 and name not in (".", "..") and not set(name) & {"/", "\0"}


def check_files(files: Sequence[File], blobs: int) -> None:
    """Check the cache files: no name may lead out of its folder."""
    places = set()
    for file in files:
        parts = file.path.split("/")
        safe = all(part not in ("", ".", "..") and "\0" not in part and "\\" not in part for part in parts)
        require(safe and NAME.fullmatch(file.cache) is not None, f"the file name {file.path!r} is not safe")
        require(file.cache not in (".", ".."), f"the cache name {file.cache!r} is not safe")
        require(0 <= file.mode <= 0o777, f"the file mode {file.mode:o} is not one")
        require_index(file.blob, blobs, f"the file {file.path!r}")
        places.add((file.cache, file.path))
    require(len(places) == len(files), "a file is there twice")


def check_start_files(files: Sequence[StartFile]) -> None:
    """Check the files that a start reads: whole paths, each once, and ranges in order that lie in their file."""
    require(len(files) <= MOST_START_FILES, f"{len(files)} files of the start are past the limit")
    require(sum(len(file.ranges) for file in files) <= MOST_RANGES, "files of the start have too many ranges")
    for file in files:
        folder, _, name = file.path.rpartition("/")
        whole = _FOLDER.fullmatch(folder) is not None and _file_name(name)
        require(whole and len(file.path) <= LONGEST_PATH, f"the path {file.path!r} of the start is not whole")
        end = 0
        for offset, length in file.ranges:
            require(end <= offset and length > 0, f"the ranges of {file.path!r} are not in order")
            end = offset + length
        require(end <= file.size < LARGEST_OFFSET, f"a range of {file.path!r} passes its end")
    require(len({file.path for file in files}) == len(files), "a file of the start is there twice")
