"""Holds documents against the tables of `cli/JSON.md`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

Schema = dict[str, dict[str, str]]


def read_schema(path: Path) -> Schema:
    """The keys and types below each heading; a key that may be missing ends in `?`."""
    found: Schema = {}
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"#{2,3} (.+)", line):
            heading = match[1]
            found[heading] = {}
        elif match := re.match(r"\| (`.+?`) \| ([^|]+) \|", line):
            for key in re.findall(r"`([^`]+)`", match[1]):
                found[heading][key] = match[2].strip()
        elif match := re.match(r"All keys of (\w+)", line):
            found[heading] |= found[match[1]]
    return found


def problems(schema: Schema, kind: str, value: Any, where: str = "") -> list[str]:
    """What in a value is not as the schema says."""
    if kind.endswith(" or null"):
        return [] if value is None else problems(schema, kind.removesuffix(" or null"), value, where)
    if kind.startswith("list of "):
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        inner = kind.removeprefix("list of ")
        return [told for at, item in enumerate(value) for told in problems(schema, inner, item, f"{where}[{at}]")]
    if kind.startswith("object of "):
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no object"]
        inner = kind.removeprefix("object of ")
        return [told for key, item in value.items() for told in problems(schema, inner, item, f"{where}.{key}")]
    if kind in schema:
        return of_object(schema, schema[kind], value, where)
    return [] if _plain(kind, value) else [f"{where}: {value!r} is no {kind}"]


def of_object(schema: Schema, keys: dict[str, str], value: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    named = {key.removesuffix("?"): kind for key, kind in keys.items()}
    required = {key for key in keys if not key.endswith("?")}
    found = [f"{where}: `{key}` is not documented" for key in value.keys() - named.keys()]
    found += [f"{where}: `{key}` is missing" for key in required - value.keys()]
    for key in value.keys() & named.keys():
        found += problems(schema, named[key], value[key], f"{where}.{key}")
    return found


def _plain(kind: str, value: Any) -> bool:
    checks = {
        "any": lambda: True,
        "string": lambda: isinstance(value, str),
        "boolean": lambda: isinstance(value, bool),
        "integer": lambda: isinstance(value, int) and not isinstance(value, bool),
        "number": lambda: isinstance(value, (int, float)) and not isinstance(value, bool),
        "hex": lambda: isinstance(value, str) and not set(value) - set("0123456789abcdef"),
        "address": lambda: isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value) is not None,
    }
    return checks[kind]()
