"""Elements of an HTML page. Whatever is not Markup already is text, and is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_VOID = {"meta", "img"}


LONGEST_TEXT = 2000
"""Characters of a text that a page shows; the rest is cut."""


class Markup(str):
    """Text that is HTML. Only this module makes it out of other text."""

    __slots__ = ()


Child: TypeAlias = str | int | Iterable["Child"] | None
Value: TypeAlias = str | int | float | bool | None


def clean(text: str) -> str:
    """Replace what a page cannot hold or would not show: control characters, surrogates, marks that turn text round."""
    return _UNSEEN.sub("\ufffd", text)


def escape(text: str) -> Markup:
    """Make text safe as content and inside quotes, and cut it if it is very long."""
    short = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "\u2026"
    return Markup(html.escape(clean(short), quote=True))


def join(*children: Child) -> Markup:
    """Put children one after the other."""
    parts: list[str] = []
    _collect(children, parts)
    return Markup("".join(parts))


def _collect(child: Child, parts: list[str]) -> None:
    if child is None:
        return
    if isinstance(child, Markup):
        parts.append(child)
    elif isinstance(child, (str, int)):
        parts.append(escape(str(child)))
    else:
        for each in child:
            _collect(each, parts)


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """Make an element. `class_` is `class`, other underscores are hyphens; None and False leave an attribute out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def raw(name: str, content: str) -> Markup:
    """Make a style or script element out of text of our own, which must not end it."""
    if f"</{name}" in content.lower():
        raise ValueError(f"the text would end its <{name}>")
    return Markup(f"<{name}>{content}</{name}>")


def trusted(text: str) -> Markup:
    """Take over HTML that another part of Foundry made and escaped."""
    return Markup(text)


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = number(value) if isinstance(value, float) else value
    return f' {name}="{text if isinstance(text, Markup) else escape(str(text))}"'


def number(value: float) -> str:
    """Write a coordinate or a percentage: three decimals at most, none that are zero."""
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"
