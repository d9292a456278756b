"""The dtypes say what the compiler makes of `image_format.h`, field by field."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.source import NATIVE, ROOT

from foundry.image import layout

KEPT = ROOT / "tests" / "data" / "capi" / "layout.txt"
HEADER = NATIVE / "abi" / "image_format.h"
SPOOL_HEADER = HEADER.with_name("spool_format.h")

STRUCTS = {
    "foundry_image_section": layout.SECTION,
    "foundry_image_header": layout.HEADER,
    "foundry_image_device": layout.DEVICE,
    "foundry_image_log_entry": layout.LOG_ENTRY,
    "foundry_image_allocation": layout.ALLOCATION,
    "foundry_image_mapping": layout.MAPPING,
    "foundry_image_blob": layout.BLOB,
    "foundry_image_kernel_image": layout.KERNEL_IMAGE,
    "foundry_image_option": layout.OPTION,
    "foundry_image_kernel": layout.KERNEL,
    "foundry_image_parameter": layout.PARAMETER,
    "foundry_image_attribute": layout.ATTRIBUTE,
    "foundry_image_group": layout.GROUP,
    "foundry_image_node": layout.NODE,
    "foundry_image_edge": layout.EDGE,
    "foundry_image_node_attribute": layout.NODE_ATTRIBUTE,
    "foundry_image_graph": layout.GRAPH,
    "foundry_image_move": layout.MOVE,
}
RECORDS = {
    "kernel": layout.KERNEL_RECORD,
    "memset": layout.MEMSET_RECORD,
    "memcpy": layout.COPY_RECORD,
    "event": layout.EVENT_RECORD,
    "child": layout.CHILD_RECORD,
}


def expectations() -> list[tuple[str, int]]:
    """C expressions with the value that numpy has for them."""
    found = [(f"sizeof(struct {name})", dtype.itemsize) for name, dtype in STRUCTS.items()]
    found.append(("sizeof(struct foundry_image_record)", layout.RECORD_SIZE))
    places = [(f"struct {name}", "", dtype) for name, dtype in STRUCTS.items()]
    places += [("struct foundry_image_record", f"{name}.", dtype) for name, dtype in RECORDS.items()]
    for struct, prefix, dtype in places:
        for field in dtype.names or ():
            offset = dtype.fields[field][1]  # type: ignore[index]
            found.append((f"offsetof({struct}, {prefix}{field})", offset))
            found.append((f"sizeof((({struct} *)0)->{prefix}{field})", dtype[field].itemsize))
    found.append(("FOUNDRY_SECTION_COUNT", len(layout.SECTIONS)))
    found += [(f"FOUNDRY_SECTION_{name.upper()}", index) for index, (name, _) in enumerate(layout.SECTIONS)]
    found.append(("FOUNDRY_ABI", layout.ABI))
    return found


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_every_field_lies_where_the_compiler_puts_it(tmp_path: Path) -> None:
    expected = expectations()
    lines = [f'#include "{HEADER}"', f'#include "{SPOOL_HEADER}"', "#include <stddef.h>", "#include <stdio.h>"]
    lines += ["int main(void) {", *(f'printf("%zu\\n", (size_t)({text}));' for text, _ in expected), "}"]
    source = tmp_path / "layout.c"
    source.write_text("\n".join(lines))
    program = tmp_path / "layout"
    subprocess.run(["cc", "-o", str(program), str(source)], check=True)
    values = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    wrong = [
        (text, mine, int(theirs)) for (text, mine), theirs in zip(expected, values, strict=True) if mine != int(theirs)
    ]
    assert wrong == []


def test_every_field_of_the_header_has_a_dtype() -> None:
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    for name, block in re.findall(r"struct (\w+) \{(.*?)\n\};", text, flags=re.DOTALL):
        if name == "foundry_image_record":
            continue
        declared = re.findall(r"(\w+)(?:\[\w+\])?(?=[,;])", block)
        assert list(STRUCTS[name].names or ()) == declared, name


def test_the_magic_is_that_of_the_header() -> None:
    assert f'#define FOUNDRY_IMAGE_MAGIC "{layout.MAGIC.decode()}"' in HEADER.read_text()
    assert np.dtype(layout.HEADER).itemsize == 632


def test_the_layout_is_the_kept_one_of_its_number() -> None:
    """A hook and a package of one FOUNDRY_ABI understand each other: what changes here needs another number.

    `UPDATE_SNAPSHOTS=1` writes the list anew.
    """
    lines = [f"{text} = {value}" for text, value in expectations() if not text.startswith("sizeof(((")]
    if os.environ.get("UPDATE_SNAPSHOTS"):
        KEPT.write_text("\n".join(lines) + "\n")
    kept = KEPT.read_text().splitlines()
    assert lines == kept, "raise FOUNDRY_ABI, unless the kept list is of another one already"
