"""Puts the page together, one process at a time."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from foundry.page import (
    facts,
    findings,
    kernels,
    memory_growth,
    memory_map,
    outcome,
    overview,
    sizes,
    timeline,
    topologies,
)
from foundry.page.blobs import Holdings
from foundry.page.budget import Budget
from foundry.page.markup import Markup, join, raw, tag
from foundry.page.nodes import Nodes
from foundry.page.palette import HUES, REST, pixel_colours
from foundry.page.quantities import count

if TYPE_CHECKING:
    from foundry.archive.opened import Opened
    from foundry.model import Process

MOST_PROCESSES = 8
SIMULATED = "Captured on the simulated GPU: these times say nothing about a real one."


def render(opened: Opened, restore_report: Mapping[str, Any] | None = None) -> str:
    """Write the report of an open archive. A restore report, as `foundry restore --report` keeps it, adds its times."""
    summary, head = opened.summary(), opened.head
    holdings, budget = Holdings(head), Budget()
    chapters: list[Markup] = []
    starts: list[Markup] = []
    several = head.processes > 1
    report, note = _report(restore_report, opened.capture_id)
    for index in range(head.processes):
        process = opened.process(index)
        holdings.take(process)
        if index < MOST_PROCESSES:
            lanes = [timeline.captured(process)]
            back = timeline.restored(report, process.role) if report is not None else None
            lanes += [back] if back else []
            starts.append(
                join(
                    tag("h3", process.role, class_="role") if several else None,
                    tag("p", SIMULATED, class_="note") if process.simulated else None,
                    timeline.timeline(lanes),
                )
            )
            chapters.append(_chapter(process, budget, several=several))
    left = head.processes - len(chapters)
    more = (
        tag("p", f"{count(left, 'further process', 'further processes')} not shown.", class_="note")
        if left > 0
        else None
    )
    sections = [(section.kind, section.stored, section.raw) for section in summary.sections]
    told = [findings.findings(head.findings)]
    body = [
        _part("start", "Start-up", "How long the program waited, when this was captured and when it was restored.",
              note, starts),
        chapters,
        more,
        _part("sizes", "Where the bytes are", "What is stored, and what it is when unpacked.",
              sizes.sizes(sections, summary.file_size, holdings.bytes(), holdings.outside())),
        _part("findings", "Findings", "What the packer thought worth telling.", told),
        _part("origin", "Where it comes from", "The program and machine that were recorded.",
              facts.origin(summary, head)),
    ]  # fmt: skip
    roles = [process.role for process in summary.processes[:MOST_PROCESSES]] if several else []
    return _document(facts.headline(summary, opened.path.name), facts.title(summary), body, roles)


def _report(report: Mapping[str, Any] | None, capture_id: str) -> tuple[Mapping[str, Any] | None, Markup | None]:
    """Take a restore report if it is of this archive; say so if it is not."""
    if report is None:
        return None, tag(
            "p",
            "No restore stands beside it: ",
            tag("code", "foundry restore --report FILE"),
            " keeps the report of one.",
            class_="note",
        )
    if report.get("capture_id") != capture_id:
        return None, tag("p", "The restore report is of another archive, so it is not shown.", class_="note")
    return report, outcome.outcome(report)


def _chapter(process: Process, budget: Budget, *, several: bool) -> Markup:
    nodes = Nodes(process)
    suffix = f"-{process.role}" if several else ""
    picture_of_all = budget.fit(overview.overview(process, nodes), "The picture of all nodes")
    heading = tag("h2", tag("small", "process"), " ", process.role, class_="process", id=f"process{suffix}")
    return join(
        heading if several else None,
        _part(f"graphs{suffix}", "Graphs",
              "Each row is a graph, each cell one of its nodes in recorded order, each colour a kind of kernel.",
              picture_of_all or tag("p", "There is no graph.", class_="note"), findings.refused(process)),
        _part(f"shapes{suffix}", "Topologies",
              "What the graphs are built like. A stretch that repeats, as the layers of a model do, is drawn once.",
              topologies.topologies(process, nodes, budget)),
        _part(f"memory{suffix}", "Memory", "Where the program's GPU memory lay, and what the graphs need of it.",
              memory_map.memory_map(process, budget), memory_growth.growth(process)),
        _part(f"kernels{suffix}", "Kernels", "The kernels that the graphs run, the most used first.",
              kernels.kernels(process, nodes)),
    )  # fmt: skip


def _part(name: str, title: str, lede: str, *content: Any) -> Markup:
    return tag("section", tag("h2", title), tag("p", lede, class_="lede"), content, id=name, class_="part")


def _document(top: Markup, title: str, body: list[Any], roles: list[str]) -> str:
    style = (files(__package__) / "style.css").read_text(encoding="utf-8") + _hues()
    script = (files(__package__) / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    links = [("start", "Start-up"), ("graphs", "Graphs"), ("shapes", "Topologies"), ("memory", "Memory"),
             ("kernels", "Kernels"), ("sizes", "Sizes"), ("findings", "Findings"), ("origin", "Origin")]  # fmt: skip
    if roles:
        chapters = [(f"process-{role}", role) for role in roles]
        links = [links[0], *chapters, *links[5:]]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · Foundry"),
        raw("style", style),
    )
    content = tag("main", body)
    there = [tag("a", text, href=f"#{name}") for name, text in links if f' id="{name}"' in content]
    nav = tag("nav", there, aria_label="Parts of this page")
    page = tag("body", top, nav, content, _foot(), raw("script", script))
    return "<!doctype html>\n" + tag("html", head, page, lang="en") + "\n"


def _foot() -> Markup:
    return tag("footer", tag("p", "Made by foundry inspect. This file needs nothing beside it and loads nothing."))


def _hues() -> str:
    plain = "".join(f".c{index}{{background:{hue}}}" for index, hue in enumerate((*HUES, REST)))
    shades = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in pixel_colours()[:-1]]
    return plain + "".join(f".k{index}{{background:{shade}}}" for index, shade in enumerate(shades))
