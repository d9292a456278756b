"""The report as a file: well formed, alone, the same each time, of bounded size, and right in its numbers."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.page_archives import HOSTILE, NAMES, restore_report, rich_archive
from helpers.page_checks import Page, parsed
from helpers.synthetic import Shape, make_spool
from helpers.varied import varied_capture
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry import archive
from foundry.describe.kernels import kernels
from foundry.describe.memory import memory
from foundry.model import Capture
from foundry.pack import pack
from foundry.page import render
from foundry.page.budget import Budget
from foundry.page.quantities import size


def page_of(path: Path, **report: object) -> str:
    with archive.open_archive(path) as opened:
        told = restore_report(opened.capture_id) | report if report else None
        return render(opened, told)


def written(folder: Path, capture: Capture) -> Path:
    path = folder / "x.fdry"
    archive.write(capture, path, force=True)
    return path


def check(html: str) -> Page:
    """What holds for every page."""
    page = parsed(html)
    assert page.problems == []
    assert html.startswith("<!doctype html>\n")
    assert page.all("html")[0].attributes["lang"] == "en"
    assert [len(page.all(name)) for name in ("h1", "head", "body", "script")] == [1, 1, 1, 1]
    names = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(set(names)) == len(names)
    assert {link.attributes["href"] for link in page.all("a")} <= {f"#{name}" for name in names}
    assert all((image.attributes["src"] or "").startswith("data:image/png;base64,") for image in page.all("img"))
    assert all(image.attributes["alt"] for image in page.all("img"))
    assert all(
        element.attributes.get("aria-label") for element in page.elements if element.attributes.get("role") == "group"
    )
    assert not {name for element in page.elements for name in element.attributes if name.startswith("on")}
    assert not page.all("link", "iframe", "object", "embed", "form", "base")
    assert "url(" not in html
    assert "@import" not in html
    levels = [int(element.name[1]) for element in page.elements if element.name in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert all(after <= before + 2 for before, after in pairwise(levels))
    return page


def test_a_page_is_well_formed_and_stands_alone(rich: Path) -> None:
    page = check(page_of(rich, ready_seconds=3.5))
    for words in ("14 CUDA graphs for NVIDIA H200", "8 of 14 can be restored", "simulated GPU", "python serve.py"):
        assert words in page.text


def test_the_policy_of_a_page_allows_its_own_script_and_nothing_else(rich: Path) -> None:
    page = parsed(page_of(rich))
    policy = page.all("meta")[1].attributes["content"] or ""
    digest = base64.b64encode(hashlib.sha256(page.all("script")[0].text.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy


def test_the_same_archive_gives_the_same_bytes(rich: Path) -> None:
    assert page_of(rich, ready_seconds=1) == page_of(rich, ready_seconds=1)


def test_text_from_the_archive_and_the_report_cannot_break_out(tmp_path: Path) -> None:
    html = page_of(rich_archive(tmp_path, (HOSTILE, *NAMES), HOSTILE), code=HOSTILE, processes=[
        {"role": "rank-0", "given_up": [{"reason": HOSTILE}], "counters": {f"at_{HOSTILE}_ns": 5, f"{HOSTILE}_ns": 5},
         "seconds": {HOSTILE: 1.5}, "graphs_restored": 1}])  # fmt: skip
    page = check(html)
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert page.text.count(HOSTILE) > 10
    assert all("alert(" not in (value or "") for one in page.all("img") for value in one.attributes.values())


def test_several_processes_have_a_chapter_each(tmp_path: Path) -> None:
    page = check(page_of(rich_archive(tmp_path, processes=3)))
    assert [element.text for element in page.all("a")] == [
        "Start-up", "rank-0", "rank-1", "rank-2", "Sizes", "Findings", "Origin",
    ]  # fmt: skip


def test_processes_past_the_limit_are_counted(tmp_path: Path) -> None:
    page = check(page_of(rich_archive(tmp_path, processes=10)))
    assert "2 further processes not shown." in page.text


def test_an_archive_without_processes_has_a_page(tmp_path: Path) -> None:
    page = check(page_of(written(tmp_path, Capture((), ()))))
    assert "It holds no graphs." in page.text


def test_numbers_are_those_of_describe(rich: Path) -> None:
    page = check(page_of(rich))
    with archive.open_archive(rich) as opened:
        process, summary = opened.process(0), opened.summary()
    rows = [row.text for row in page.all("tr")]
    for kernel in kernels(process):
        line = next(row for row in rows if kernel["readable"].removeprefix("void ") in row)
        assert f"{kernel['uses']:,}{kernel['graphs']:,}{size(kernel['parameter_bytes'])}" in line
    titles = [heading.text for heading in page.all("h4")]
    for arena in memory(process)["arenas"]:
        told = f"{arena['allocations']} allocations · {size(arena['bytes'])} stood at the end"
        graphs = f"graphs point to {size(arena['graph_bytes'])}"
        assert f"{arena['arena'].capitalize()} arena{told} · {graphs}" in titles
    figures = [figure.text for figure in page.all("dd")]
    told = summary.processes[0]
    assert figures[0] == f"{told.graphs}in {told.groups} topologies"
    assert figures[1] == f"{told.nodes}of {told.kernels} kernels"


def test_stored_sizes_add_up_to_the_file(rich: Path) -> None:
    page = check(page_of(rich))
    with archive.open_archive(rich) as opened:
        stored = sum(section.stored for section in opened.sections)
        total = opened.size
    rows = [row.text for row in page.all("tr")]
    assert any(row.startswith(f"Header, table of contents, footer{size(total - stored)}") for row in rows)
    assert any(row.startswith(f"All{size(total)}100%") for row in rows)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_every_capture_has_a_well_formed_page(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(page_of(written(Path(folder), varied_capture(random.Random(seed))), ready_seconds=seed))


KEYS = ["role", "counters", "seconds", "given_up", "reason", "at_commit_ns", "x"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "counters", "seconds", "given_up", "reason", "at_commit_ns", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(report=st.dictionaries(st.sampled_from(["processes", "ready_seconds", "started_without_restore"]), json_values))
def test_no_report_can_break_the_page(rich: Path, report: dict[str, object]) -> None:
    with archive.open_archive(rich) as opened:
        check(render(opened, {"capture_id": opened.capture_id} | report))


def test_a_report_of_another_archive_is_not_shown(rich: Path) -> None:
    page = check(page_of(rich, capture_id="00" * 32))
    assert "of another archive" in page.text
    assert "brought back" not in page.text


def job(folder: Path, shape: Shape) -> Path:
    capture, _ = pack(make_spool(folder / "spool", shape), context={})
    return written(folder, capture)


@pytest.mark.parametrize(
    ("graphs", "layers", "most"), [(35, 28, 500_000), (256, 4, 1_000_000)], ids=["35 graphs", "256 graphs"]
)
def test_a_page_stays_small(tmp_path: Path, graphs: int, layers: int, most: int) -> None:
    shape = Shape(graphs=graphs, layers=layers, parameter_words=16, images=8, image_bytes=2000)
    html = page_of(job(tmp_path, shape))
    assert len(html.encode()) < most
    assert f"{graphs} CUDA graphs" in check(html).text


def test_what_is_too_large_is_left_out_and_said(rich: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foundry.page.assemble.Budget", lambda: Budget(2000))
    page = check(page_of(rich))
    assert "The main arena is left out here, to keep this page small." in page.text


def test_long_texts_are_cut(tmp_path: Path) -> None:
    html = page_of(rich_archive(tmp_path, ("k" * 60_000, *NAMES)))
    check(html)
    assert "k" * 2001 not in re.sub('<div class="drawing".*?</svg>', "", html, flags=re.S)
