"""When the run of a model at one size shows what one at another would ask for."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from foundry.capi import Mode

GRAPH = 1 << 40
"""Where the memory of graphs begins."""
GIVEN = [(GRAPH, GRAPH + 4096)]
"""What the first piece gives at the other size."""
SIZES = (512, 16)


@pytest.fixture
def following(start: Any) -> Any:
    start(Mode.CAPTURE)
    return importlib.import_module("foundry.engines.vllm.following")


def tensor(begin: int, *shape: int, dtype: str = "torch.float32", stride: list[int] | None = None) -> list[Any]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return [begin, list(shape), stride or strides, dtype, "cuda:0"]


def call(*inputs: Any, **named: Any) -> Any:
    return {"items": [{"items": list(inputs)}, {"named": named}]}


def shown(*changed: Any) -> Any:
    """Inputs of the first size: an output of a piece, the size, weights and a buffer of token numbers."""
    made = [tensor(GRAPH + 8192, 512, 64), 512, tensor(4096, 64, 64), tensor(0, 512, dtype="torch.int64")]
    return call(*(changed or made), flag=True)


def recorded(**changed: Any) -> Any:
    made = {
        "output": tensor(GRAPH, 16, 64),
        "size": 16,
        "weights": tensor(4096, 64, 64),
        "numbers": tensor(0, 16, dtype="torch.int64"),
    }
    flag = changed.pop("flag", True)
    return call(*{**made, **changed}.values(), flag=flag)


def test_the_same_at_another_size_follows(following: Any) -> None:
    assert following.follows(shown(), recorded(), GIVEN, SIZES)


@pytest.mark.parametrize(
    "changed",
    [
        {"output": tensor(GRAPH + 4096, 16, 64)},
        {"output": tensor(GRAPH + 2050, 16, 64)},
        {"output": tensor(GRAPH, 16, 32, dtype="torch.int64")},
        {"output": 16},
        {"size": 17},
        {"size": True},
        {"size": 16.5},
        {"weights": tensor(8192, 64, 64)},
        {"weights": tensor(4096, 65, 64)},
        {"weights": tensor(4096, 64, 64, 1)},
        {"weights": tensor(4096, 64, 64, stride=[64, 2])},
        {"numbers": tensor(0, 513, dtype="torch.int64")},
        {"flag": False},
        {"flag": None},
        {"more": 1},
    ],
    ids=str,
)
def test_what_a_run_could_ask_otherwise_does_not(following: Any, changed: dict[str, Any]) -> None:
    assert not following.follows(shown(), recorded(**changed), GIVEN, SIZES)


@pytest.mark.parametrize("other", [True, 1.0, None, [1]], ids=str)
def test_what_python_finds_equal_is_not_the_same_constant(following: Any, other: Any) -> None:
    weights = tensor(4096, 64, 64)
    for put in (
        lambda value: call(value, weights),
        lambda value: call(weights, named=value),
        lambda value: call({"items": [weights, value]}),
        lambda value: call({"named": {"inner": value}}),
        lambda value: call(["host", [value], "torch.int32"]),
    ):
        assert following.follows(put(1), put(1), GIVEN, SIZES)
        assert not following.follows(put(1), put(other), GIVEN, SIZES)
        assert not following.follows(put(other), put(1), GIVEN, SIZES)


def test_names_and_numbers_of_inputs_must_be_the_same(following: Any) -> None:
    weights = tensor(4096, 64, 64)
    assert not following.follows(call(weights), call(weights, weights), GIVEN, SIZES)
    assert not following.follows(call(weights, weights), call(weights), GIVEN, SIZES)
    assert not following.follows(call(one=weights), call(other=weights), GIVEN, SIZES)
    assert not following.follows(call(one=weights, other=weights), call(one=weights), GIVEN, SIZES)
    assert not following.follows(call(weights), call({"items": [weights]}), GIVEN, SIZES)


def test_an_output_of_any_earlier_piece_is_there_and_must_hold_the_whole(following: Any) -> None:
    begin, size = 2 * GRAPH, 16 * 64 * 4
    spans = [(begin + size * index, begin + size * (index + 1)) for index in (0, 1, 3)]
    for index, inside in enumerate((True, True, False, True)):
        made = recorded(output=tensor(begin + size * index, 16, 64))
        assert following.follows(shown(), made, spans, SIZES) is inside
    # It lies in two outputs that touch: what is behind both is not known.
    assert not following.follows(shown(), recorded(output=tensor(begin + 4, 16, 64)), spans, SIZES)


def test_an_output_of_a_later_piece_is_not_there_yet(following: Any) -> None:
    assert not following.follows(shown(), recorded(), [], SIZES)


def test_a_tensor_without_elements_reaches_nowhere(following: Any) -> None:
    empty = tensor(0, 0, 64)
    assert following.follows(call(tensor(0, 8, 64)), call(empty), [], SIZES)


def test_values_in_host_memory_must_be_the_same(following: Any) -> None:
    host = ["host", [1, 2], "torch.int32"]
    assert following.follows(call(host), call(list(host)), [], SIZES)
    assert not following.follows(call(host), call(["host", [1, 3], "torch.int32"]), [], SIZES)


def test_outputs_are_spans_from_the_base_unless_they_are_an_inputs(following: Any) -> None:
    storages = [{"pointer": 5000, "bytes": 100, "input": None}]
    assert following.given_by({"storages": storages}, 1000) == [(4000, 4100)]
    assert following.given_by({"storages": [*storages, {"pointer": 0, "bytes": 1, "input": 0}]}, 1000) is None


def test_addresses_are_those_of_tensors_without_a_name(following: Any) -> None:
    given = call(tensor(16, 4), 4, {"items": [tensor(32, 4)]}, tensor(48, 4), named=tensor(64, 4))
    assert following.addresses(given, 1000) == [1016, 1048]
