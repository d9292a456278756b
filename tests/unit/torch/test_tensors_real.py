"""The descriptions on torch itself, on the CPU. Torch is an optional extra of foundry, so it may be missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")


def test_views_come_back_over_the_same_memory() -> None:
    from foundry.torch.tensors import describe, rebuild

    device = torch.device("cpu")
    x, given = torch.arange(24, dtype=torch.bfloat16).view(4, 6), torch.ones(3)
    value: dict[Any, Any] = {"a": (x, x.t()[1:, 2:], None), "b": [given[1:], x > 3], 4: torch.empty(0, 3)}
    back = rebuild(json.loads(json.dumps(describe(value, device, (given,)))), device, (given,))
    assert torch.equal(back["a"][1], value["a"][1])
    assert back["a"][1].stride() == value["a"][1].stride()
    back["a"][1][0, 0] = 99
    assert x[2, 1] == 99
    assert back["a"][0].untyped_storage()._cdata == back["a"][1].untyped_storage()._cdata
    assert back["b"][0].untyped_storage()._cdata == given.untyped_storage()._cdata
    assert back["b"][1].dtype is torch.bool
    assert back[4].shape == (0, 3)


def test_what_the_adapter_uses_of_torch_is_there() -> None:
    generator = torch._C.Generator
    for name in ("graphsafe_get_state", "graphsafe_set_state", "clone_state", "get_offset", "set_offset"):
        assert hasattr(generator, name)
    for name in ("MemPool", "use_mem_pool", "CUDAGraph", "graph_pool_handle", "get_allocator_backend"):
        assert hasattr(torch.cuda, name)
