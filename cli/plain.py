"""Reads the arguments of a command that waits to start, without typer, whose import takes longer than all the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


class Plain:
    """Arguments taken apart: flags and values by long name, values of names that may repeat, and words without one."""

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.repeated: dict[str, list[str]] = {}
        self.others: list[str] = []


def read(
    words: Sequence[str],
    *,
    flags: Collection[str],
    values: Collection[str],
    repeated: Collection[str] = (),
    short: Mapping[str, str],
    most_others: int = 0,
) -> Plain | None:
    """Take plain, whole and correct arguments apart. None for all else: then typer reads them, and says what is wrong.

    `short` gives the long name of a short one. Of a flag and its `--no-` the last one counts, which typer knows.
    """
    found = Plain()
    given = iter(words)
    for word in given:
        name, equals, value = word.partition("=") if word.startswith("--") else (short.get(word, word), "", "")
        if name in flags and not equals:
            found.flags.add(name)
        elif name in values or name in repeated:
            text = value if equals else next(given, "")
            if not text or (text.startswith("-") and not equals):
                return None
            if name in values:
                found.values[name] = text
            else:
                found.repeated.setdefault(name, []).append(text)
        elif name.startswith("-") or not word or len(found.others) == most_others:
            return None
        else:
            found.others.append(word)
    if any(f"--no-{flag.removeprefix('--')}" in found.flags for flag in found.flags):
        return None
    return found
