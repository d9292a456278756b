"""Whole outputs of each view of `inspect` at 80 columns, as they were last agreed on, and what it refuses.

`UPDATE_SNAPSHOTS=1` writes them anew; read the difference before you keep it.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.showcase import showcase

from foundry import archive
from foundry.cli.main import run
from foundry.model import StartFile

SNAPSHOTS = Path(__file__).with_name("snapshots")
NODE = ["--graph", "decode/8", "--process", "rank-0", "--node"]
VIEWS: dict[str, list[str]] = {
    "summary": [],
    "graphs": ["--graphs"],
    "graph": ["--graph", "decode/8"],
    "graph-refused": ["--graph", "prefill/8"],
    "node-kernel": [*NODE, "2"],
    "node-copy": [*NODE, "9"],
    "node-memset": [*NODE, "0"],
    "node-child": [*NODE, "1/1"],
    "kernels": ["--kernels"],
    "memory": ["--memory"],
    "files": ["--files"],
    "timeline": ["--timeline"],
    "findings": ["--findings"],
    "sections": ["--sections"],
    "dot": ["--graph", "prefill/8", "--dot"],
    "svg": ["--graph", "prefill/8", "--svg"],
}
DOCUMENTS = ("summary", "graphs", "graph-refused", "kernels", "memory", "files", "timeline", "findings", "sections")

START_FILES = (
    StartFile("/usr/lib/libtorch_cuda.so", 1_300_000_000, ((0, 65536), (1 << 20, 300_000_000))),
    *(
        StartFile(f"~/venv/lib/python3.12/site-packages/a/__pycache__/m{n}.cpython-312.pyc", 9000 + n)
        for n in range(12)
    ),
    StartFile("~/models/small/model.safetensors", 1_192_135_096),
)

PARTS = (
    *("summary", "capture", "process", "allocations", "groups", "bodies", "parameters", "blobs", "timeline"),
    "container",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    archive.write(showcase(), folder / "one.fdry")
    archive.write(showcase(2), folder / "two.fdry")
    archive.write(replace(showcase(), start_files=START_FILES), folder / "start.fdry")
    return folder


@pytest.fixture(autouse=True)
def terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, no colour, and the archives at hand."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FOUNDRY_TRACEBACK", "1")


def inspected(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    code = run(["inspect", *words])
    captured = capfd.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(["inspect", *words])
    captured = capfd.readouterr()
    assert captured.out == ""
    return code, captured.err.removeprefix("foundry: error: ")


def without_the_format(text: str) -> str:
    """Without digests, and without what compression and the layout of sections decide: sizes, and the order by them."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    if text.startswith("{"):
        document = json.loads(text)
        document.get("parts", []).sort(key=lambda part: part["part"])
        text = json.dumps(document, indent=2)
        return re.sub(r'"(stored|raw|offset|file_size|raw_size)": \d+', r'"\1": 0', text) + "\n"
    lines, parts = [], []
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name in PARTS and re.search(r" \d.* [\da-f]", rest):
            parts.append(f"{name} ...")
            continue
        lines += sorted(parts)
        parts = []
        line = re.sub(r" {2,}", "  ", line) if line.startswith(("part ", "section ")) else line
        lines.append(re.sub(r"[\d.]+ kB, [\d.]+ kB unpacked", "SIZES unpacked", line))
    return "\n".join(lines + sorted(parts)) + "\n"


def check(name: str, text: str) -> None:
    path = SNAPSHOTS / f"inspect-{name}"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("view", VIEWS)
def test_each_view(capfd: pytest.CaptureFixture[str], view: str) -> None:
    text = inspected(capfd, "one.fdry", *VIEWS[view])
    if view in ("summary", "sections"):
        text = without_the_format(text)
    if view not in ("dot", "svg"):
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80
        assert not re.search(r" +$", text, re.MULTILINE)
    check(f"{view}.{view if view in ('dot', 'svg') else 'txt'}", text)


@pytest.mark.parametrize("view", DOCUMENTS)
def test_each_document(capfd: pytest.CaptureFixture[str], view: str) -> None:
    text = inspected(capfd, "one.fdry", *VIEWS[view], "--json")
    if view == "graph-refused":
        text = json.dumps(json.loads(text), indent=1) + "\n"
    check(f"{view}.json", without_the_format(text) if view in ("summary", "sections") else text)


def test_the_files_that_a_start_reads(capfd: pytest.CaptureFixture[str]) -> None:
    text = inspected(capfd, "start.fdry", "--files")
    assert max(map(len, text.splitlines())) <= 80
    check("files-of-a-start.txt", text)
    found = json.loads(inspected(capfd, "start.fdry", "--files", "--json"))["start_files"]
    assert [file["path"] for file in found] == [file.path for file in START_FILES]
    assert found[0] == {
        "path": "/usr/lib/libtorch_cuda.so",
        "size": 1_300_000_000,
        "read": 300_065_536,
        "ranges": [[0, 65536], [1 << 20, 300_000_000]],
    }
    assert (found[-1]["read"], found[-1]["ranges"]) == (1_192_135_096, [])


def test_the_first_screen_of_several_processes(capfd: pytest.CaptureFixture[str]) -> None:
    check("summary-several.txt", without_the_format(inspected(capfd, "two.fdry")))


def test_the_first_screen_fits(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(inspected(capfd, "one.fdry").splitlines()) <= 40


def test_a_view_of_one_process(capfd: pytest.CaptureFixture[str]) -> None:
    assert "rank-0" not in inspected(capfd, "two.fdry", "--graphs", "--process", "rank-1")
    assert "process  rank-1\n" in inspected(capfd, "two.fdry", "--process", "rank-1")
    assert json.loads(inspected(capfd, "two.fdry", "--sections", "--process", "rank-1", "--json"))["sections"]


class TestRefused:
    def test_a_graph_that_is_not_there(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert refused(capfd, "one.fdry", "--graph", "decode/9") == (
            1, "there is no graph `decode/9` in `one.fdry`\n\nhint: near to it: `decode/8`, `decode/4`\n",
        )  # fmt: skip

    def test_a_key_of_several_graphs(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert refused(capfd, "one.fdry", "--graph", "8") == (
            2, "`8` is the key of 2 graphs: `decode/8`, `prefill/8`\n\nhint: name one as set/key\n",
        )  # fmt: skip
        code, text = refused(capfd, "two.fdry", "--graph", "decode/8")
        assert (code, "`decode/8` of `rank-0`, `decode/8` of `rank-1`" in text) == (2, True)
        assert "`--process ROLE`" in text
        inspected(capfd, "two.fdry", "--graph", "decode/8", "--process", "rank-1")

    def test_a_process_that_is_not_there(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert refused(capfd, "two.fdry", "--graphs", "--process", "rank-7") == (
            1, "there is no process `rank-7` in `two.fdry`\n\nhint: it has `rank-1`, `rank-0`\n",
        )  # fmt: skip

    def test_a_node_that_is_not_there(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert refused(capfd, "one.fdry", "--graph", "prefill/8", "--node", "2") == (
            1, "graph `prefill/8` has no node 2\n\nhint: its nodes are 0 to 1\n",
        )  # fmt: skip
        code, text = refused(capfd, "one.fdry", "--graph", "decode/8", "--node", "1/2")
        assert (code, text.partition("\n")[0]) == (1, "graph `decode/8` has no node 1/2")
        assert refused(capfd, "one.fdry", "--graph", "decode/8", "--node", "9 > 1")[0] == 1
        text = inspected(capfd, "one.fdry", "--graph", "decode/8", "--node", "10 > 1")
        assert text == inspected(capfd, "one.fdry", "--graph", "decode/8", "--node", "1/1")

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["--graphs", "--memory"], "`--graphs`, `--memory` each ask for something else"),
            (["--node", "1"], "`--node` says nothing without `--graph`"),
            (["--dot"], "`--dot` says nothing without `--graph`"),
            (["--graphs", "--svg"], "`--svg` says nothing without `--graph`"),
            (["--graph", "8", "--dot", "--svg"], "`--dot`, `--svg` do not go together"),
            (["--graph", "8", "--node", "x"], "`x` is not a node"),
            (["--graph", "8", "--node", "1/2>3"], "`1/2>3` is not a node"),
            (["--graph", "8", "--node", "1", "--dot"], "`--dot`, `--node` do not go together"),
            (["--force"], "`--force` says nothing without `--html`"),
            (["--restore-report", "r.json"], "`--restore-report` says nothing without `--timeline` or `--html`"),
            (["--timeline", "--restore-report", "no"], "cannot read the report `no`: No such file or directory"),
            (["--timeline", "--restore-report", "one.fdry"], "`one.fdry` is not the report of a restore"),
        ],
    )
    def test_what_makes_no_sense(self, capfd: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
        code, told = refused(capfd, "one.fdry", *words)
        assert (code, told.partition("\n")[0]) == (2, text)

    def test_an_error_is_a_document_too(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert run(["inspect", "one.fdry", "--graph", "decode/9", "--json"]) == 1
        captured = capfd.readouterr()
        assert captured.err == ""
        assert json.loads(captured.out)["error"]["code"] == "not-in-archive"


class TestReport:
    def test_it_is_written_whole_and_replaces_nothing(self, capfd: pytest.CaptureFixture[str], folder: Path) -> None:
        path = folder / "report.html"
        assert run(["inspect", "one.fdry", "--html", str(path)]) == 0
        assert capfd.readouterr() == ("", f"foundry: wrote `{path}`\n")
        text = path.read_text(encoding="utf-8")
        assert text.lstrip().lower().startswith("<!doctype html>")
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        assert refused(capfd, "one.fdry", "--html", str(path))[1].startswith(f"`{path}` exists already")
        assert run(["inspect", "two.fdry", "--html", str(path), "--force"]) == 0
        assert path.read_text(encoding="utf-8") != text
        assert not list(folder.glob(".foundry-*"))

    def test_nothing_is_left_where_it_cannot_be_written(self, capfd: pytest.CaptureFixture[str]) -> None:
        code, text = refused(capfd, "one.fdry", "--html", "no/such/folder.html")
        assert (code, text) == (125, "cannot write `no/such/folder.html`: No such file or directory\n")


def test_what_the_terminal_cannot_show_is_escaped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert run(["inspect", "one.fdry"]) == 0
    assert run(["inspect", "one.fdry", "--graph", "decode/8"]) == 0
    output.flush()
    assert "####" in output.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]


def test_a_terminal_obeys_nothing_that_an_archive_says(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from dataclasses import replace

    capture = showcase()
    graphs = tuple(
        replace(graph, set=f"\x1b[31m{graph.set}\n", reason="\x1b[0m\r" * bool(graph.reason))
        for graph in capture.processes[0].graphs
    )
    kernels = tuple(
        replace(kernel, name=f"\x1b]0;x\x07{index}") for index, kernel in enumerate(capture.processes[0].kernels)
    )
    process = replace(capture.processes[0], graphs=graphs, kernels=kernels)
    path = tmp_path / "a.fdry"
    archive.write(replace(capture, processes=(process,), context={"argv": '["\\u001b[1m"]'}), path)
    for words in ([], ["--graphs"], ["--kernels"], ["--graph", "4"], ["--findings"]):
        text = inspected(capfd, str(path), *words)
        assert not {"\x1b", "\x07", "\r"} & set(text)


def test_a_kernel_that_is_not_known_is_shown_without_a_name(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from dataclasses import replace

    from foundry.model import NONE

    capture = showcase()
    process = capture.processes[0]
    group = process.groups[2]
    nodes = group.nodes.copy()
    nodes["kernel"] = NONE
    groups = (*process.groups[:2], replace(group, nodes=nodes), *process.groups[3:])
    path = tmp_path / "a.fdry"
    archive.write(replace(capture, processes=(replace(process, groups=groups),)), path)
    for words in (["--kernels"], ["--graphs"], ["--graph", "prefill/8"], ["--graph", "prefill/8", "--svg"]):
        inspected(capfd, str(path), *words)
    assert "between" in inspected(capfd, str(path), "--graph", "prefill/8", "--node", "1")
