"""Spans on torch itself, on the CPU. Torch is an optional extra of foundry, so it may be missing."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

CPU = torch.device("cpu")
FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")


def spans() -> Any:
    import foundry.torch.spans

    return foundry.torch.spans


def only(tensor: Any) -> Any:
    (span,) = spans().spans_of([("x", tensor)])
    return span


def test_tensors_are_covered_once() -> None:
    x = torch.zeros(10, 10)
    apart = torch.zeros(3, dtype=torch.int64)
    found = spans().spans_of([("rows", x[2:4]), ("column", x[:, 3]), ("apart", apart), ("empty", x[:0]), ("row", x[9])])
    assert {span.name: (span.pointer, span.size, span.dtype) for span in found} == {
        "column": (x.data_ptr() + 12, 388, "torch.float32"),
        "apart": (apart.data_ptr(), 24, ""),
    }


@pytest.mark.parametrize("other", [torch.int32, torch.float16])
def test_memory_of_two_types_is_not_filled(other: Any) -> None:
    x = torch.zeros(8)
    assert [span.dtype for span in spans().spans_of([("x", x), ("y", x.view(other)[4:])])] == [""]


def test_a_view_that_repeats_itself_covers_its_memory_once() -> None:
    x = torch.zeros(4)
    assert only(x.expand(100, 4)).size == 16


def test_what_lies_outside_others_is_found() -> None:
    Span = spans().Span
    whole = Span("x", 100, 50, "")
    taken = [Span("a", 90, 20, ""), Span("b", 120, 5, ""), Span("c", 149, 9, "")]
    assert [(part.pointer, part.size) for part in spans().outside(whole, taken)] == [(110, 10), (125, 24)]
    assert spans().outside(whole, [Span("d", 0, 1000, "")]) == []
    assert spans().outside(whole, []) == [whole]


@pytest.mark.parametrize("name", FLOATS)
def test_numbers_are_the_same_for_a_seed_lie_in_the_range_and_leave_no_trace(name: str) -> None:
    module = spans()
    if not hasattr(torch, name):
        pytest.skip("this torch has no such type")
    x = torch.arange(1000.0).to(getattr(torch, name))
    before, version, state = x.clone(), x._version, torch.get_rng_state()
    span = only(x)
    saved = module.save(span, CPU)
    module.fill(span, CPU, module.Fill(7, -0.5, 2.0))
    first = x.clone()
    assert (first.float() >= -0.5).all() and (first.float() <= 2.0).all()
    assert len(first.float().unique()) > 20
    module.fill(span, CPU, module.Fill(8, -0.5, 2.0))
    assert not torch.equal(x.float(), first.float())
    module.fill(span, CPU, module.Fill(7, -0.5, 2.0))
    assert torch.equal(x.float(), first.float())
    module.put(span, CPU, saved)
    assert torch.equal(x.float(), before.float())
    assert x._version == version
    assert torch.equal(torch.get_rng_state(), state)


def test_a_change_is_found_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    module = spans()
    monkeypatch.setattr(module, "CHUNK", 64)
    x = torch.zeros(100)
    span, fill = only(x), module.Fill(3, 0.0, 1.0)
    digests = set()
    for place in (0, 15, 16, 63, 99):
        module.fill(span, CPU, fill)
        assert module.changes(span, CPU, fill) is None
        x[place] = 7.0
        change = module.changes(span, CPU, fill)
        assert 1 <= change.count <= 4
        digests.add(change.digest)
    assert len(digests) == 5
    kept = module.save(span, CPU)
    assert module.changes(span, CPU, kept) is None
    x[50] = 9.0
    assert module.changes(span, CPU, kept).count <= 4


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.0], (0.0, 1.0)),
        ([0.1, 0.9], (0.0, 1.0)),
        ([-0.3, 0.1], (-0.5, 0.5)),
        ([3.0, -1.0], (-4.0, 4.0)),
        ([1e-30, 0.0], (0.0, 2.0**-8)),
        ([1e30], (0.0, 256.0)),
        ([float("inf"), 1.0], (0.0, 1.0)),
        ([float("nan"), 1.0], (0.0, 1.0)),
    ],
)
def test_the_range_follows_what_stands_there(values: list[float], expected: tuple[float, float]) -> None:
    assert spans().bounds(only(torch.tensor(values)), CPU) == expected


def test_bytes_of_a_view_are_those_of_its_elements_in_order() -> None:
    x = torch.arange(6, dtype=torch.int32).view(2, 3)
    expected = b"".join(value.to_bytes(4, "little") for value in (0, 3, 1, 4, 2, 5))
    assert spans().host_bytes(x.t()) == expected
    assert spans().host_bytes(torch.empty(0)) == b""
    assert spans().host_bytes(torch.ones(2, requires_grad=True)) == spans().host_bytes(torch.ones(2))
    x.fill_(1)
    assert hashlib.sha256(spans().sample(only(x), CPU)).digest() == hashlib.sha256(b"\1\0\0\0" * 6).digest()


def test_poison_and_writing() -> None:
    x = torch.zeros(2, 2, dtype=torch.uint8)
    spans().poison(only(x), CPU)
    assert x.tolist() == [[0xA5, 0xA5], [0xA5, 0xA5]]
    assert spans().write(x, torch.ones(2, 2))
    assert not spans().write(x, torch.ones(2, 2))
    assert x.tolist() == [[1, 1], [1, 1]]


def test_tensors_of_inference_mode_can_be_filled_too() -> None:
    module = spans()
    with torch.inference_mode():
        x = torch.zeros(4)
    module.fill(only(x), CPU, module.Fill(1, 1.0, 2.0))
    assert (x >= 1).all()


def test_leaves_are_named_by_their_place() -> None:
    x = torch.zeros(1)
    found = dict(spans().leaves(({"a": [x, 3]}, None), "input"))
    assert found == {"input[0]['a'][0]": x, "input[0]['a'][1]": 3, "input[1]": None}
    assert [name for name, _ in spans().tensors([x, 1], "output")] == ["output[0]"]
