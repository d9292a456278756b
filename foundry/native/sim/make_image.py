#!/usr/bin/env python3
"""Compile C kernels into an image of the simulator's own format (see image_format.h).

    make_image.py OUT.fsim KERNELS.c [--fatbin]

The source says what is in it, one line each:

    // kernel: NAME(TYPE, TYPE, ...) [static=BYTES] [dynamic=BYTES] [unread=OFFSET:SIZE,...]
    // global: NAME SIZE

TYPE is ptr, i8 to i64, u8 to u64, f32, f64, or TYPE[N] for N of them in one parameter.
Parameters lie at their natural alignment, as in CUDA. `unread` names bytes of them that the kernel never reads; of a
real kernel its code tells that.
The same source and compiler give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

MAGIC = b"FDRYSIM1"
HEADER = struct.Struct("<8sQII")
SIZES = {"ptr": 8, "f32": 4, "f64": 8, **{f"{sign}{bits}": bits // 8 for sign in "iu" for bits in (8, 16, 32, 64)}}
KERNEL = re.compile(r"^\s*//\s*kernel:\s*([A-Za-z_]\w*)\s*\(([^)]*)\)(.*)$")
GLOBAL = re.compile(r"^\s*//\s*global:\s*([A-Za-z_]\w*)\s+(\d+)\s*$")
DEFAULT_DYNAMIC_SHARED = 48 * 1024


def parameter_layout(types: str) -> list[tuple[int, int]]:
    """Give offset and size of each parameter in a comma-separated list of types."""
    layout: list[tuple[int, int]] = []
    end = 0
    for name in filter(None, (part.strip() for part in types.split(","))):
        match = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", name)
        if match is None or match[1] not in SIZES:
            raise ValueError(f"unknown parameter type `{name}`")
        alignment = SIZES[match[1]]
        size = alignment * int(match[2] or 1)
        offset = -(-end // alignment) * alignment
        layout.append((offset, size))
        end = offset + size
    return layout


def describe(source: str) -> str:
    """Turn the comment lines of a kernel source into the text of an image."""
    lines = []
    for line in source.splitlines():
        if match := KERNEL.match(line):
            options = dict(re.findall(r"(static|dynamic)=(\d+)", match[3]))
            static = int(options.get("static", 0))
            dynamic = int(options.get("dynamic", DEFAULT_DYNAMIC_SHARED - static))
            layout = parameter_layout(match[2])
            places = "".join(f" {offset}:{size}" for offset, size in layout)
            unread = re.search(r"unread=([\d:,]+)", match[3])
            places += " unread " + unread[1].replace(",", " ") if unread else ""
            lines.append(f"kernel {match[1]} {static} {dynamic} {len(layout)}{places}\n")
        elif match := GLOBAL.match(line):
            lines.append(f"global {match[1]} {match[2]}\n")
    if not lines:
        raise ValueError("the source has no `// kernel:` line")
    return "".join(lines)


def compile_object(source: Path) -> bytes:
    """Compile a kernel source into a shared object that holds no path and no build id."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernels.so"
        options = "-shared -fPIC -O2 -g0 -s -fvisibility=hidden -ffp-contract=off -frandom-seed=foundry -fno-ident"
        linking = "-Wl,--build-id=none -Wl,-Bsymbolic -Wl,--as-needed -lm"
        here = str(Path(__file__).absolute().parent)
        command = [*compiler, *options.split(), "-I", here, "-x", "c", "-", "-o", str(output), *linking.split()]
        done = subprocess.run(command, input=source.read_bytes(), capture_output=True, check=False)
        if done.returncode != 0:
            raise ValueError(f"`{compiler[0]}` failed on {source}:\n{done.stderr.decode(errors='replace')}")
        return output.read_bytes()


def build_image(source: Path) -> bytes:
    """Make the image of a kernel source."""
    text = describe(source.read_text(encoding="utf-8")).encode()
    elf_offset = -(-(HEADER.size + len(text)) // 16) * 16
    elf = compile_object(source)
    header = HEADER.pack(MAGIC, elf_offset + len(elf), len(text), elf_offset)
    return (header + text).ljust(elf_offset, b"\0") + elf


def wrap_fatbin(image: bytes, architecture: int = 90) -> bytes:
    """Put an image into a fatbin container as its only, uncompressed entry."""
    payload = image.ljust(-(-len(image) // 8) * 8, b"\0")
    entry = bytearray(64)
    struct.pack_into("<HHIQ", entry, 0, 2, 0x101, len(entry), len(payload))
    struct.pack_into("<I", entry, 28, architecture)
    struct.pack_into("<Q", entry, 40, 0x11)
    body = bytes(entry) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="compile C kernels into a simulator image")
    parser.add_argument("output", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--fatbin", action="store_true", help="wrap the image in a fatbin container")
    arguments = parser.parse_args()
    try:
        image = build_image(arguments.source)
    except (OSError, ValueError) as error:
        print(f"make_image: {error}", file=sys.stderr)
        return 1
    arguments.output.write_bytes(wrap_fatbin(image) if arguments.fatbin else image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
