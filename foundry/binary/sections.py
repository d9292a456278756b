"""The sections of cubins that are known, by name and type."""

from __future__ import annotations

TEXT = ".text."
INFORMATION = ".nv.info"
CALLS = ".nv.callgraph"
DEBUG = (".debug_", ".nv_debug_", ".rel.debug_", ".rela.debug_", ".rel.nv_debug_", ".rela.nv_debug_")
FRAMES = ".debug_frame"
ALLOCATED = 2
NULL, _PROGRAM, SYMBOLS, _STRINGS, _WITH_ADDEND, _NOTE, EMPTY, _RELOCATION = 0, 1, 2, 3, 4, 7, 8, 9
_INFORMATION, _CALLS, _ACTIONS, _COMPATIBLE = 0x70000000, 0x70000001, 0x7000000B, 0x70000086
_CONSTANTS = 0x70000064
"""Type of constant bank 0 in cubins that give each bank its own."""

OF_ALL = {
    "": {NULL},
    ".shstrtab": {_STRINGS},
    ".strtab": {_STRINGS},
    ".symtab": {SYMBOLS},
    ".note.nv.tkinfo": {_NOTE},
    ".note.nv.cuinfo": {_NOTE},
    INFORMATION: {_INFORMATION},
    CALLS: {_CALLS},
    FRAMES: {_PROGRAM},
    ".nv.compat": {_COMPATIBLE},
    ".nv.rel.action": {_ACTIONS},
    ".nv.global": {EMPTY},
    ".nv.global.init": {_PROGRAM},
    ".nv.shared.reserved.0": {EMPTY},
    ".nv.constant3": {_PROGRAM, _CONSTANTS + 3},
    ".nv.constant4": {_PROGRAM, _CONSTANTS + 4},
    ".rel.nv.global.init": {_RELOCATION},
    ".rela.nv.global.init": {_WITH_ADDEND},
    ".rel" + FRAMES: {_RELOCATION},
    ".rela" + FRAMES: {_WITH_ADDEND},
    ".rel.nv.constant3": {_RELOCATION},
    ".rela.nv.constant3": {_WITH_ADDEND},
    ".rel.nv.constant4": {_RELOCATION},
    ".rela.nv.constant4": {_WITH_ADDEND},
}
OF_ONE = {
    TEXT: {_PROGRAM},
    ".nv.info.": {_INFORMATION},
    ".nv.constant0.": {_PROGRAM, _CONSTANTS},
    ".nv.constant2.": {_PROGRAM, _CONSTANTS + 2},
    ".nv.shared.": {EMPTY},
    ".nv.local.": {EMPTY},
    ".rel.text.": {_RELOCATION},
    ".rela.text.": {_WITH_ADDEND},
    ".rel.nv.constant0.": {_RELOCATION},
    ".rela.nv.constant0.": {_WITH_ADDEND},
    ".rel.nv.constant2.": {_RELOCATION},
    ".rela.nv.constant2.": {_WITH_ADDEND},
}
"""What sections are called and their types: those that stay, and those of one function, by what its name follows."""


def is_frames(name: str) -> bool:
    """Whether a section holds call frames or their relocations."""
    return name in (FRAMES, ".rel" + FRAMES, ".rela" + FRAMES)
