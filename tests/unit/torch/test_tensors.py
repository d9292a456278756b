"""Descriptions of inputs and outputs, on the stand-in; `test_tensors_real.py` tries them on torch where it is."""

from __future__ import annotations

import json
from collections import namedtuple
from typing import Any

import pytest

from foundry.capi import Mode


@pytest.fixture
def world(start: Any) -> Any:
    return start(Mode.OFF)


@pytest.fixture
def tensors(world: Any) -> Any:
    import foundry.torch.tensors

    return foundry.torch.tensors


def there_and_back(tensors: Any, world: Any, value: Any, inputs: Any = ()) -> Any:
    device = world.torch.device("cuda")
    return tensors.rebuild(json.loads(json.dumps(tensors.describe(value, device, inputs))), device, inputs)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -2.5, float("inf"), "text", (), [], {}, (1, [2, {"a": (None,), 4: "b", None: True}]), 0.1 + 0.2],
)
def test_constants_keep_value_and_type(tensors: Any, world: Any, value: Any) -> None:
    back = there_and_back(tensors, world, value)
    assert back == value
    assert repr(back) == repr(value)


def test_tensors_that_share_memory_share_it_again(tensors: Any, world: Any) -> None:
    one, other = world.torch.empty(4, 2), world.torch.empty(3)
    part = world.torch.Tensor(world.torch.float32, (2, 2)).set_(one.storage, 4, (2, 2), (2, 1))
    back = there_and_back(tensors, world, {"one": one, "part": (part, other)})
    assert back["one"].storage is back["part"][0].storage
    assert back["part"][1].storage is not back["one"].storage
    for given, found in ((one, back["one"]), (part, back["part"][0]), (other, back["part"][1])):
        assert found.data_ptr() == given.data_ptr()
        assert (found.shape, found.stride(), str(found.dtype)) == (given.shape, given.stride(), str(given.dtype))


def test_an_output_in_the_memory_of_an_input_uses_the_input_s_own_storage(tensors: Any, world: Any) -> None:
    x, y = world.torch.empty(4), world.torch.empty(2)
    back = there_and_back(tensors, world, [y, x], inputs=(([x],), (y,)))
    assert (back[0].storage, back[1].storage) == (y.storage, x.storage)


def test_an_empty_tensor_needs_no_memory(tensors: Any, world: Any) -> None:
    back = there_and_back(tensors, world, world.torch.empty(0, 3))
    assert back.shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda torch: {1}, "output is a set"),
        (lambda torch: [1, {"a": object()}], r"output\[1\]\['a'\] is a object"),
        (lambda torch: {(1, 2): 3}, "output has a key of type tuple"),
        (lambda torch: namedtuple("Point", "x y")(1, 2), "output is a Point"),
        (lambda torch: [with_(torch, requires_grad=True)], r"output\[0\] requires grad"),
        (lambda torch: with_(torch, layout="sparse"), "output is not a plain strided tensor"),
        (lambda torch: with_(torch, device=torch.device("cpu")), "output is on cpu:0, the graph on cuda:0"),
        (lambda torch: type("Fancy", (torch.Tensor,), {})(torch.float32, (1,)), "output is a Fancy"),
    ],
)
def test_what_cannot_be_given_back_is_refused_by_place(tensors: Any, world: Any, make: Any, text: str) -> None:
    with pytest.raises(tensors.UnstorableError, match=text):
        tensors.describe(make(world.torch), world.torch.device("cuda"), ())


def with_(torch: Any, **attributes: Any) -> Any:
    tensor = torch.empty(2)
    for name, value in attributes.items():
        setattr(tensor, name, value)
    return tensor


def test_a_signature_tells_apart_what_a_graph_was_built_for(tensors: Any, world: Any) -> None:
    torch, device = world.torch, world.torch.device("cuda")
    x = torch.empty(4, 2)
    same = tensors.signature({"x": [x, 1]}, device, "input")
    assert same == tensors.signature({"x": [x, 1]}, device, "input")
    turned = torch.Tensor(torch.float32, (4, 2)).set_(x.storage, 0, (4, 2), (1, 4))
    whole = torch.Tensor(torch.int64, (4, 2)).set_(x.storage, 0, (4, 2), (2, 1))
    later = torch.Tensor(torch.float32, (2, 2)).set_(x.storage, 4, (2, 2), (2, 1))
    for other in ({"x": [torch.empty(4, 2), 1]}, {"x": [x, 2]}, {"x": (x, 1)}, {"y": [x, 1]},
                  {"x": [turned, 1]}, {"x": [whole, 1]}, {"x": [later, 1]}):  # fmt: skip
        assert tensors.signature(other, device, "input") != same


def test_a_type_that_this_torch_lacks_is_named(tensors: Any) -> None:
    with pytest.raises(tensors.UnstorableError, match=r"no type torch\.float3"):
        tensors.dtype_of("torch.float3")


def test_memory_is_reached_without_the_newer_function_too(tensors: Any, world: Any) -> None:
    made: list[Any] = []

    def as_tensor(span: Any, device: Any) -> Any:
        made.append(span.__cuda_array_interface__)
        return world.torch.empty(1)

    del world.torch._C._construct_storage_from_data_pointer
    world.torch.as_tensor = as_tensor
    tensors.storage_at(0x400000000000, 12, world.torch.device("cuda"))
    assert made == [{"data": (0x400000000000, False), "shape": (12,), "typestr": "|u1", "version": 2}]
