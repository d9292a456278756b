"""What a drawing says of a node."""

from __future__ import annotations

import re
from html import escape

from foundry.describe.documents import CopySide, Node

_PLAIN_ARGUMENT = re.compile(
    r"(?<=[<\s])"
    r"(?:-?\d+[ul]*|true|false|u?(?:int|long|short|char)\*?|float|double|bool|half|BFloat16|Half|__\w+)"
    r"(?:, |(?=[>\s]))"
)
"""A template argument that tells little of a kernel."""


def label(node: Node) -> str:
    """Name a node in a few words."""
    if node["kernel"]:
        return node["kernel"]["short"]
    if node["child"] is not None:
        return f"child graph {node['child']}"
    return node["type"].replace("_", " ")


def explained(node: Node) -> str:
    """Tell of a node what a tooltip holds."""
    if node["reason"]:
        return f"{node['type']}: cannot be built again: {node['reason']}"
    if node["kernel"]:
        shape = f"grid {triple(node['grid'])}, block {triple(node['block'])}, {node['shared_bytes']} bytes shared"
        return f"{node['kernel']['readable']}\n{shape}"
    if node["memset"]:
        memset = node["memset"]
        size = f"{memset['width']} x {memset['height']} elements of {memset['element_size']} bytes"
        return f"memset of {size}\n{memset['target']['text']}"
    if node["copy"]:
        copy = node["copy"]
        size = f"{copy['width']} x {copy['height']} x {copy['depth']} bytes"
        return f"copy of {size}\n{side(copy['source'])} → {side(copy['destination'])}"
    return label(node)


def side(end: CopySide) -> str:
    """Tell where one side of a copy lies."""
    return end["target"]["text"] if end["target"] else f"{end['memory']} memory"


def triple(values: list[int] | None) -> str:
    """Write a grid or block."""
    return "x".join(map(str, values or ()))


def shortened(text: str, most: int) -> str:
    """Bring a name to that length: first without numbers and plain types in its template arguments, then cut."""
    if len(text) > most and "<" in text:
        text = text.replace("::lambda", "").replace("unsigned ", "u")
        before = ""
        while len(text) > most and text != before:
            before = text
            text = _PLAIN_ARGUMENT.sub("", text, count=1)
            text = text.replace(", >", ">").replace(" >", ">").replace("<>", "")
    if len(text) <= most:
        return text
    tail = most // 2
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


def clean(text: str) -> str:
    """Escape a text for XML, without the characters that XML does not allow."""
    return escape("".join(letter if _allowed(letter) else "\ufffd" for letter in text))


def _allowed(letter: str) -> bool:
    surrogate = "\ud800" <= letter <= "\udfff"
    return letter in "\n\t" or (letter >= " " and not surrogate and letter not in "\ufffe\uffff")
