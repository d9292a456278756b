"""Reads a report page strictly: every element is closed in order, and what matters to a reader is collected."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "input", "link", "col"}


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """A parsed page. `problems` says what is not well formed."""

    elements: list[Element] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        if len(element.attributes) != len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].name != tag:
            self.problems.append(f"</{tag}> at {self.getpos()} closes nothing")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data
        if self._open and self._open[-1].name not in ("style", "script"):
            self.text += data

    def close(self) -> None:
        super().close()
        self.problems += [f"<{element.name}> is not closed" for element in self._open]

    def all(self, *names: str) -> list[Element]:
        return [element for element in self.elements if element.name in names]


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page
