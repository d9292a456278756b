"""One start of continuous batching, and its graphs: of each shape a step, captured when it first comes up.

A shape that comes up while serving is captured with a batch that waits for its tokens. The engine's warm-up gives them;
where the graph is the archive's, its first replay does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from foundry import capi
from foundry.capi import Hook, Mode
from foundry.engines import notes, starting, torch_seam
from foundry.engines.passes import Pass
from foundry.engines.protocol import tell
from foundry.engines.starting import line
from foundry.engines.transformers import settings
from foundry.torch import commit
from foundry.torch.tensors import CONSTANTS

ENGINE = "transformers"
SIZES = "cache_sizes"


class Start(starting.Start):
    """Made when the first manager of the process asks how large its KV cache may be."""

    def __init__(self, hook: Hook, handler: Any) -> None:
        super().__init__(hook, ENGINE, ENGINE, settings.pins(handler))
        refusal = self.objection(settings.objection(handler))
        if refusal is not None:
            self.refuse(refusal)


_starts: list[Start | None] = []
"""The first manager of this process; None where a fault left it alone."""
_runners: list[Any] = []
"""The model runner whose graphs the start's pass is over."""


def _current() -> Start | None:
    start = _starts[0] if _starts else None
    return start if start is not None and start.active else None


def _begin(handler: Any) -> Start | None:
    hook = capi.load()
    if hook.mode() is Mode.OFF or not any(handler.cb_config.cuda_graph_booleans):
        return None
    if _starts:
        if len(_starts) == 1:
            tell(ENGINE, "graphs are captured as always: a second manager in one process is not done yet")
        _starts.append(None)
        return None
    _starts.append(None)
    try:
        _starts[0] = Start(hook, handler)
    except Exception as error:
        tell(ENGINE, f"graphs are captured as always: {line(error)}")
    return _current()


def cache_size(plain: Callable[..., Any], handler: Any) -> Any:
    """Stand in for `infer_max_batch_tokens_and_num_blocks`: a restore takes the capture's, if it fits."""
    start = _begin(handler)
    found = plain(handler)
    if start is None:
        return found
    try:
        if start.restores and start.note is not None:
            tokens, blocks = start.note[SIZES]
            needed = handler.compute_memory_footprint(tokens, blocks)
            free = torch.cuda.mem_get_info(start.device)[0]
            if needed > free:
                start.refuse(f"{free} bytes of GPU memory are free, the capture's batches and KV cache take {needed}")
            else:
                found = tokens, blocks
        settled = start.settle()
        if start.captures:
            notes.keep(start.hook, start.begin_note, {"pins": start.pins, SIZES: list(found), **settled})
    except Exception as error:
        start.refuse(line(error))
    return found


def warmup(plain: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for `ModelRunner.warmup`: when it is done, the program is ready."""
    result = plain(runner, *args, **kwargs)
    if _starts:
        commit()
    return result


def _pass_of(runner: Any, model: Any) -> Pass | None:
    """Return the pass over the graphs of a runner, begun at its first; None if this adapter leaves it alone."""
    start = _current()
    if start is None or (_runners and _runners[0] is not runner):
        return None
    if start.current is None:
        _runners.append(runner)
        try:
            own = start.lay(settings.ground(runner, model), random_numbers=True)
            if own is not None and start.captures:
                notes.keep(start.hook, start.end_note, {"begun": True})
        except Exception as error:
            start.refuse(line(error))
    return start.current if start.active else None


def capture_graph(plain: Callable[..., Any], runner: Any, forward_fn: Any, compute_stream: Any, *args: Any) -> None:
    """Stand in for `ModelRunner._capture_graph`, and do as it does: warm up, capture, store.

    Not by it: it warms up in the graphs' own pool, whose memory a restore would not have.
    """
    own = _pass_of(runner, args[0])
    if own is None:
        plain(runner, forward_fn, compute_stream, *args)
        return
    name, key = _named(runner.inputs_and_outputs)

    def warm_up() -> None:
        with torch.cuda.stream(compute_stream), own.warm_up(f"{name}/{key}"):
            forward_fn(*args)

    if own.holds(name, key):
        own.skip_warm_up()
    else:
        warm_up()
    claim = own.claim(name, key, _inputs(args[1:]))
    if claim.found is None and not own.warmed:
        warm_up()
    graph = torch.cuda.CUDAGraph()
    with (
        torch_seam.expecting(claim),
        torch.cuda.graph(graph, stream=compute_stream, pool=runner.graph_pool_id, capture_error_mode="thread_local"),
    ):
        claim.run(forward_fn, *args)
    runner.inputs_and_outputs.set_graph(graph)
    if claim.found is not None:
        with torch.cuda.stream(compute_stream):
            graph.replay()


def _named(own: Any) -> tuple[str, str]:
    """Name a step: what tells it from others within a start."""
    device_io, prefix = own, ""
    if hasattr(own, "io_pairs"):
        device_io, prefix = own.io_pairs[own.current_pair].device_io, f"io {own.current_pair} "
    kind = "decode" if own.use_block_table else "varlen"
    return kind, prefix + "x".join(str(part) for part in device_io._get_graph_key())


def _inputs(value: Any) -> Any:
    """Leave tensors on the GPU and constants of a nesting of arguments."""
    if isinstance(value, dict):
        return {str(name): _inputs(item) for name, item in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, (tuple, list)):
        return [_inputs(item) for item in value]
    if isinstance(value, torch.Tensor):
        return value if value.device.type == "cuda" else None
    return value if type(value) in CONSTANTS else type(value).__name__
