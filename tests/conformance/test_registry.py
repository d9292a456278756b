"""The texts of `format_spec` against the numbers and codes in the code."""

from __future__ import annotations

import re
from pathlib import Path

from foundry import findings
from foundry.archive import layout
from foundry.findings import Severity
from foundry.model import (
    HOST_RANGES,
    Api,
    Arena,
    DeviceFlag,
    Format,
    NodeType,
    Origin,
    PhaseKind,
    RangeKind,
    checks,
    file_checks,
)
from foundry.model.kernels import LARGEST_PARAMETERS

ROOT = Path(__file__).resolve().parents[2]


def test_the_registry_lists_every_number_and_code() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    codes = {
        value for name, value in vars(findings).items() if name.isupper() and isinstance(value, str) and "-" in value
    }
    assert {code for code in codes if f"`{code}`" not in text} == set()
    for kind in layout.Kind:
        assert f"| {int(kind)} | `{kind.name.lower()}` |" in text
    for node in NodeType:
        assert f"| {int(node)} | `{node.name.lower()}` |" in text


def test_the_registry_lists_every_code_of_a_command() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("compat", "session", "store", "launch")
        for path in (ROOT / "foundry" / folder).rglob("*.py")
    ]
    codes = {code for source in sources for code in re.findall(r'"(mismatch-[a-z-]+)"|code="([a-z-]+)"', source)}
    found = {one or other for one, other in codes}
    assert found >= {"mismatch-gpu-model", "image-not-written"}
    assert {code for code in found if f"| `{code}` |" not in text} == set()


def test_the_registry_lists_every_code_of_a_witness() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    source = (ROOT / "foundry" / "witness" / "judging.py").read_text(encoding="utf-8")
    codes = re.findall(r'^[A-Z]+ = "(witness-[a-z]+)"', source, re.M)
    assert len(codes) == 6
    assert {code for code in codes if f"| `{code}` |" not in text} == set()


def test_the_registry_lists_every_code_of_the_hook() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "foundry" / "native").rglob("*.cpp")]
    codes = {code for source in sources for code in re.findall(r'\bfinding(?:_once)?\("([a-z-]+)"', source)}
    assert codes and {code for code in codes if f"`{code}`" not in text} == set()


def test_the_spec_gives_the_numbers_of_the_code() -> None:
    text = (ROOT / "format_spec" / "archive.md").read_text(encoding="utf-8")
    assert layout.MAGIC.hex(" ").upper() in text and layout.END_MAGIC.hex(" ").upper() in text
    sizes = (layout.HEADER.size, layout.ENTRY.size, layout.FOOTER.size)
    assert sizes == (32, 72, 96)
    assert all(f"{size} bytes" in text for size in sizes)


def test_the_registry_gives_the_severity_that_codes_are_told_with() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `([a-z-]+)` \| (note|warn|error) \|", text, re.M))
    told: dict[str, set[str]] = {}
    for folder in ("pack", "spool", "session"):
        for path in (ROOT / "foundry" / folder).rglob("*.py"):
            for name, severity in re.findall(r"\b([A-Z_]{6,}), Severity\.([A-Z]+)", path.read_text(encoding="utf-8")):
                told.setdefault(getattr(findings, name), set()).add(severity.lower())
    assert len(told) > 10
    # The hook's own findings are warnings; that the spool could not hold this one is worse.
    assert told.pop("disarmed") == {"error"}
    assert {code: severities for code, severities in told.items() if {said.get(code)} != severities} == {}
    assert set(said.values()) <= {severity.name.lower() for severity in Severity}


def test_the_registry_tells_every_number_of_the_model() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    table = text[text.index("## Arenas") : text.index("## Other numbers")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    for kinds, column in ((Arena, 0), (Format, 3), (RangeKind, 6)):
        numbers = {row[column] for row in rows} - {"", "number"}
        assert numbers == {str(int(kind)) for kind in kinds}  # type: ignore[attr-defined]
    for kind in HOST_RANGES:
        assert re.search(rf"\| {int(kind)} \| [^|]*\(address not kept\)", table)
    for kinds, field in (
        (DeviceFlag, "a device's `flags`"),
        (Api, "an image's `api`"),
        (Origin, "an allocation's `origin`"),
        (PhaseKind, "a phase's `kind`"),
        (Severity, "a finding's `severity`"),
    ):
        line = next(line for line in text.splitlines() if line.startswith(f"| {field}"))
        numbers = {int(number) for number in re.findall(r"(?:\| |· )(\d+) ", line)}
        assert numbers == {int(kind) for kind in kinds}, field  # type: ignore[attr-defined]


def test_the_spec_gives_the_limits_of_the_code() -> None:
    text = (ROOT / "format_spec" / "archive.md").read_text(encoding="utf-8")

    def power(number: int) -> str:
        exponent = number.bit_length() - 1
        assert number == 1 << exponent
        return f"2^{exponent}"

    for words, number in (
        ("raw must not be above the limit of its kind (`archive-limit`): {} for `summary`", layout.LARGEST_TEXT),
        ("{} for `blobs`, ", layout.BLOB_CUT),
        ("cut into sections of exactly {} raw bytes", layout.BLOB_CUT),
        ("{} for all others", layout.LARGEST_SECTION),
        ("Its window must not be above {} or raw", layout.LARGEST_WINDOW),
        ("At most {} bodies", checks.MOST_BODIES),
        ("at most {} nodes over all bodies", checks.MOST_NODES),
        ("offset + size at most {} |", file_checks.LARGEST_OFFSET),
        ("wide, 1 to {} | of the container", file_checks.LARGEST_CONTAINER),
        ("The blob has 1 to {} bytes", file_checks.LARGEST_CONTAINER),
    ):
        assert words.format(power(number)) in text
    for words, number in (
        ("number of table entries, at most {:,} |", layout.MOST_SECTIONS),
        ("`u32 parameter_size` (at most {:,})", checks.LARGEST_BLOCK),
        ("integer, 0 to {:,} | 0: the blob is the container", file_checks.LARGEST_ARCHITECTURE),
        ("parameter_size, at most {:,};", LARGEST_PARAMETERS),
    ):
        assert words.format(number) in text
