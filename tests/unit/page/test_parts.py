"""The parts that a page is made of."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest
from helpers.page_archives import NAMES
from hypothesis import given
from hypothesis import strategies as st

from foundry.model import Group
from foundry.model.tables import EDGE, NODE
from foundry.page import markup, picture, quantities
from foundry.page.chain import is_chain
from foundry.page.markup import escape, join, tag
from foundry.page.names import family
from foundry.page.palette import HUES, Palette, pixel_colours
from foundry.page.repeats import longest_repeat
from foundry.page.sizes import sizes
from foundry.page.timeline import Lane, restored, timeline

SECOND = 1_000_000_000


def test_text_is_escaped_and_markup_is_not() -> None:
    assert (
        tag("p", "<b>", tag("i", "&"), None, 3, class_='"x"') == '<p class="&quot;x&quot;">&lt;b&gt;<i>&amp;</i>3</p>'
    )
    assert join(["a", ["<"]]) == "a&lt;"


@pytest.mark.parametrize("hidden", ["\0", "\x1b", "\x85", "\u202e", "\u200b", "\ud800", "\ufeff"])
def test_what_nobody_sees_is_replaced(hidden: str) -> None:
    assert escape(f"a{hidden}b") == "a\ufffdb"


def test_a_long_text_is_cut() -> None:
    assert len(escape("x" * 10_000)) == markup.LONGEST_TEXT


def test_a_style_cannot_end_itself() -> None:
    with pytest.raises(ValueError):
        markup.raw("style", "a</STYLE >")


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(0, "0 B"), (999, "999 B"), (1023, "1.00 KiB"), (1536, "1.50 KiB"), (10 << 20, "10.0 MiB"), (1 << 63, "8.00 EiB")],
)
def test_sizes(bytes_: int, text: str) -> None:
    assert quantities.size(bytes_) == text


def test_other_quantities() -> None:
    assert quantities.whole_size(3 << 30) == "3 GiB"
    assert quantities.place(3 << 29) == "1.5 GiB"
    assert quantities.duration(125_280_165) == "125 ms"
    assert quantities.duration(4.94e9) == "4.94 s"
    assert quantities.whole_duration(2_000_000_000) == "2 s"
    assert quantities.share(1, 100_000) == "<0.1%"
    assert quantities.share(1, 0) == "0%"
    assert quantities.count(1, "topology", "topologies") == "1 topology"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_TNT", "nvjet_sm90_tst"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add"),
        ("rms_norm", "rms_norm"),
        ("_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb", "vectorized_gather_kernel"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_kinds_of_kernels(name: str, text: str) -> None:
    assert family(name) == text


def test_a_kind_tells_what_a_template_is_made_of() -> None:
    assert family(NAMES[0]) == "vectorized_elementwise_kernel · CUDAFunctor_add"


@given(
    st.lists(st.integers(0, 3), max_size=6),
    st.lists(st.integers(0, 9), min_size=1, max_size=7),
    st.integers(3, 9),
    st.lists(st.integers(0, 3), max_size=6),
)
def test_a_repeat_is_found_and_true(before: list[int], piece: list[int], times: int, after: list[int]) -> None:
    sequence = np.array([*before, *(piece * times), *after], np.int64)
    found = longest_repeat(sequence)
    if found is None:
        assert len(piece) * times < 8
        return
    part = sequence[found.start : found.end].reshape(found.times, found.piece)
    assert (part == part[0]).all()
    assert found.times * found.piece > len(piece) * times - found.piece


def test_no_repeat_is_found_where_there_is_none() -> None:
    assert longest_repeat(np.arange(100)) is None
    assert longest_repeat(np.zeros(0, np.int64)) is None


def test_chains_are_told_from_the_rest() -> None:
    def group(count: int, *edges: tuple[int, int]) -> Group:
        return Group(np.zeros(count, NODE), np.array([(*edge, 0) for edge in edges], EDGE))

    assert is_chain(group(1))
    assert is_chain(group(3, (0, 1), (1, 2)))
    assert not is_chain(group(3, (0, 1), (0, 2)))
    assert not is_chain(group(3, (0, 1)))
    assert not is_chain(group(0))


def test_a_picture_holds_its_pixels() -> None:
    pixels = np.array([[0, 1, 2], [2, 1, 0]], np.uint8)
    data = picture.png(pixels, [(255, 0, 0), (0, 255, 0), (0, 0, 0)])
    chunks, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + length : at + 12 + length], "big")
        chunks[kind] = body
        at += 12 + length
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (3, 2, 8, 3, 0, 0, 0)
    assert zlib.decompress(chunks[b"IDAT"]) == b"\0\0\1\2\0\2\1\0"
    assert chunks[b"PLTE"] == b"\xff\0\0\0\xff\0\0\0\0"
    assert chunks[b"tRNS"] == b"\xff\xff\0"


def test_the_most_used_kinds_have_colours() -> None:
    palette = Palette({f"kind {number}": number for number in range(20)})
    assert palette.named[0] == "kind 19"
    assert len(palette.named) == len(HUES)
    assert palette.index("kind 0") == len(HUES)
    assert max(palette.pixel("kind 0", variant) for variant in range(99)) == len(pixel_colours()) - 2


def test_the_axis_has_both_lanes_on_one_scale() -> None:
    capture = Lane(
        "Capture", {"driver_end": 2_000_000_000, "commit": 10_000_000_000}, {"graphs_blocked_ns": 5_000_000_000}
    )
    restore = Lane("Restore", {"driver_end": 1_000_000_000, "commit": 4_000_000_000}, {"graphs_blocked_ns": 50_000_000})
    html = timeline([capture, restore])
    assert "100\u00d7 less" in html
    assert "left:0%;width:20%" in html
    assert "left:20%;width:80%" in html
    assert "left:0%;width:10%" in html
    assert "left:10%;width:30%" in html


def test_without_times_none_are_made_up() -> None:
    assert timeline([Lane("Capture")]) == '<p class="note">This archive holds no times.</p>'


def test_totals_are_told_by_their_names() -> None:
    lane = Lane("Capture")
    lane.take("at_first_graph_ns", 7)
    lane.take("graphs_blocked_ns", 9)
    assert (lane.moments, lane.spans) == ({"first_graph": 7}, {"graphs_blocked_ns": 9})


def test_a_restore_tells_its_moments_in_seconds() -> None:
    report = {"processes": [{"role": "rank-0", "moments": {"first_asked": 3.05, "commit": 3.3, "odd": "x"}}]}
    lane = restored(report, "rank-0")
    assert lane is not None and lane.moments == {"first_asked": 3_050_000_000, "commit": 3_300_000_000}


def colours(scheme: str) -> dict[str, str]:
    style = (files("foundry.page") / "style.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.S)[0], re.findall(r":root \{(.*?)\}", style, re.S)[1]
    found = dict(re.findall(r"--(\w+): (#\w{6});", light))
    return found | (dict(re.findall(r"--(\w+): (#\w{6});", dark)) if scheme == "dark" else {})


def brightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [("ink", "sheet"), ("ink", "paper"), ("soft", "sheet"), ("soft", "paper"), ("soft", "faint"), ("ember", "sheet"),
     ("on", "graph"), ("on", "kept"), ("ink", "freed"), ("good", "paper"), ("good", "sheet"), ("warn", "paper"),
     ("warn", "sheet"), ("bad", "sheet")],
)  # fmt: skip
def test_text_stands_out(scheme: str, front: str, back: str) -> None:
    palette = colours(scheme)
    high, low = sorted((brightness(palette[front]), brightness(palette[back])), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_stand_out(scheme: str) -> None:
    palette = colours(scheme)
    for front in ("graph", "kept"):
        high, low = sorted((brightness(palette[front]), brightness(palette["faint"])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3


def test_a_thin_archive_says_what_it_leaves_out() -> None:
    html = sizes([("blobs", 10, 40)], 200, Counter({"Kernel images": 40}), outside=2)
    assert "2 images of them are not in this file" in html
    assert "not in this file" not in sizes([("blobs", 10, 40)], 200, Counter(), outside=0)


def test_unknown_sections_are_put_together() -> None:
    html = sizes([(f"#{number}", 1, 1) for number in range(100)], 200, Counter(), outside=0)
    assert html.count("<tr>") == 16 + 4
    assert "Other sections" in html
