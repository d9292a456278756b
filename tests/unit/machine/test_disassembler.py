"""What is read off the bits of instructions, against what NVIDIA's disassembler writes of them.

Needs `nvdisasm`: on the path, or named by FOUNDRY_NVDISASM. FOUNDRY_CUBINS may name a folder with more cubins.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.machine_code import ARCHITECTURES, cubin

from foundry.binary.cubin import Cubin
from foundry.machine.architectures import ARCHITECTURES as KNOWN
from foundry.machine.code import accesses
from foundry.machine.flow import BEGIN_SYNC, BRANCH, BRANCH_UNIFORM, CALL, Flow
from foundry.machine.writes import table, uniform_guard

TOOL = os.environ.get("FOUNDRY_NVDISASM") or shutil.which("nvdisasm")
MORE = os.environ.get("FOUNDRY_CUBINS")
pytestmark = pytest.mark.skipif(TOOL is None, reason="there is no nvdisasm; FOUNDRY_NVDISASM may name one")

LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/")
SECOND = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/")
OPERAND = re.compile(r"(?<![a-z])c\[0x0\]\s*\[(0x[0-9a-f]+)\]")
INDEXED = re.compile(r"(?<![a-z])(c\[0x0\]\s*\[U?R\d|cx\[)")
WIDTHS = {".U8": 1, ".S8": 1, ".U16": 2, ".S16": 2, ".64": 8, ".128": 16}
LONG = re.compile(r"^(D[A-Z]+|.*\.WIDE|.*\.[FSU]64|UIADD3\.64|MOV\.64)")
NO_TARGET = ("ST", "RED", "BRA", "BAR", "EXIT", "BSYNC", "BSSY", "WARPSYNC", "BREAK", "LDGSTS", "CALL", "VOTEU")


@dataclass(frozen=True)
class Line:
    """An instruction as the disassembler writes it, its guard apart."""

    guard: str
    text: str
    low: int
    high: int

    @property
    def mnemonic(self) -> str:
        return self.text.split()[0]

    @property
    def width(self) -> int:
        """Bytes of a constant operand that the text shows at least."""
        if self.mnemonic.startswith(("LDC", "ULDC", "LDCU")):
            return next((size for suffix, size in WIDTHS.items() if suffix in self.mnemonic), 4)
        return 8 if LONG.match(self.mnemonic) else 4


def disassembled(code: bytes, architecture: int, folder: Path) -> list[Line]:
    path = folder / "code"
    path.write_bytes(code)
    command = [str(TOOL), "-b", f"SM{architecture}", "-hex", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, first = [], None
    for line in done.stdout.splitlines():
        if match := LINE.match(line):
            guard, text = re.fullmatch(r"(?:@!?(U?P\w+)\s+)?(.*)", match[1]).groups("")
            first = guard, text, int(match[2], 16)
        elif first and (match := SECOND.match(line)):
            found.append(Line(*first, int(match[1], 16)))
            first = None
    assert len(found) == len(code) // 16
    return found


def programs() -> Iterator[tuple[str, Cubin]]:
    for architecture in ARCHITECTURES:
        yield f"reads_{architecture}", Cubin(cubin(architecture))
    for path in sorted(Path(MORE).glob("*.cubin")) if MORE else []:
        program = Cubin(path.read_bytes())
        if program.architecture in KNOWN:
            yield path.name, program


PROGRAMS = list(programs()) if TOOL else []


@pytest.mark.parametrize("program", [each for _, each in PROGRAMS], ids=[name for name, _ in PROGRAMS])
def test_every_constant_that_the_disassembler_shows_is_read(program: Cubin, tmp_path: Path) -> None:
    for name in program.kernels:
        code = program.code(name)
        assert code is not None
        found = accesses(code, KNOWN[program.architecture])
        if found.everything:
            continue
        read = set()
        for begin, end in zip(found.begin.tolist(), found.end.tolist(), strict=True):
            read.update(range(begin, end))
        for line in disassembled(code, program.architecture, tmp_path):
            assert not INDEXED.search(re.sub(r"g?desc\[[^]]*\](\[[^]]*\])?", "", line.text)), (name, line)
            for operand in OPERAND.findall(line.text):
                begin = int(operand, 16)
                assert read.issuperset(range(begin, begin + line.width)), (name, line)


@pytest.mark.parametrize(
    "program",
    [each for _, each in PROGRAMS if each.architecture <= 90],
    ids=[name for name, each in PROGRAMS if each.architecture <= 90],
)
def test_branches_go_where_the_disassembler_says_and_writes_are_forgotten(program: Cubin, tmp_path: Path) -> None:
    for name in program.kernels:
        code = program.code(name)
        assert code is not None
        flow = Flow(code, KNOWN[program.architecture], calls_away=True)
        for at, line in enumerate(disassembled(code, program.architecture, tmp_path)):
            target = re.search(r"0x([0-9a-f]+)$", line.text)
            if line.low & 0xFFF in (BRANCH, BRANCH_UNIFORM, BEGIN_SYNC, CALL) and target:
                assert flow._target(at) * 16 == int(target[1], 16), (name, line)
            assert _written(line) <= _forgotten(line), (name, line)


@pytest.mark.parametrize(
    "program",
    [each for _, each in PROGRAMS if each.architecture <= 90],
    ids=[name for name, each in PROGRAMS if each.architecture <= 90],
)
def test_the_opcode_tells_which_kind_of_predicate_guards(program: Cubin, tmp_path: Path) -> None:
    for name in program.kernels:
        code = program.code(name)
        assert code is not None
        for line in disassembled(code, program.architecture, tmp_path):
            uniform = uniform_guard().get(line.low & 0xFFF)
            if line.guard and uniform is not None:
                assert line.guard.startswith("U") == uniform, (name, line)


def _written(line: Line) -> set[str]:
    """The registers and predicates that the text names where targets stand."""
    if line.mnemonic.startswith(NO_TARGET) or table().get(line.low & 0xFFF) is None:
        return set()
    operands = [part.strip() for part in line.text[len(line.mnemonic) :].split(",")]
    found = {operands[0]} if re.fullmatch(r"U?[RP]\d+", operands[0]) else set()
    for operand in operands[1:3] if found and "P" not in operands[0] else operands[1:2]:
        if not found or not re.fullmatch(r"U?P\d", operand):
            break
        found.add(operand)
    return found


def _forgotten(line: Line) -> set[str]:
    kind = table().get(line.low & 0xFFF)
    if kind is None:
        return set()
    letter, first = "U" if kind.uniform else "", line.low >> 16 & 0xFF
    found = {f"{letter}R{number}" for number in range(first, first + kind.registers)}
    return found | {f"{letter}P{line.high >> shift & 7}" for shift in (17, 20)[: kind.predicates]}
