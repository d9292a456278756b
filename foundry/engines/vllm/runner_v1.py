"""The V1 runner's capture loop: each size warms up and captures by dummy runs, whose graphs its wrappers make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foundry.engines.vllm import keys
from foundry.engines.vllm.pieces import answering
from foundry.engines.vllm.start import of


def capture_model(plain: Callable[..., int], runner: Any) -> int:
    """Stand in for `GPUModelRunner.capture_model`: lay the ground, and answer for all wrappers while it runs."""
    start = of(runner)
    if start is None or runner.compilation_config.cudagraph_mode.name == "NONE":
        return plain(runner)
    own = start.lay_ground(runner)
    if own is None:
        return plain(runner)
    with answering(start, own):
        return plain(runner)


def warm_up_and_capture(
    plain: Callable[..., Any],
    runner: Any,
    desc: Any,
    cudagraph_runtime_mode: Any,
    profile_seq_lens: int | None = None,
    allow_microbatching: bool = False,
    num_warmups: int | None = None,
    profiler: Any = None,
) -> Any:
    """Stand in for `GPUModelRunner._warmup_and_capture`: dummy runs without graphs are warm-ups."""
    start = of(runner)
    own = start.current if start is not None else None
    rest = (profile_seq_lens, allow_microbatching)
    if own is None:
        return plain(runner, desc, cudagraph_runtime_mode, *rest, num_warmups, profiler)
    if num_warmups is None:
        num_warmups = runner.compilation_config.cudagraph_num_of_warmups
    name, key = keys.name_of(cudagraph_runtime_mode), keys.of_batch(desc)
    skipped = own.holds(name, key if name == keys.FULL else f"0/{key}")
    pieces = start.pieces if start is not None and name == keys.PIECES else None
    dummy_run = runner._dummy_run

    def run(*args: Any, **kwargs: Any) -> Any:
        mode = kwargs.get("cudagraph_runtime_mode")
        if mode is None or mode.name != "NONE":
            asked = pieces.like_first(desc.num_tokens) if pieces is not None else None
            if pieces is not None and asked == desc and pieces.give(asked):
                return None
            return dummy_run(*args, **kwargs)
        if skipped:
            own.skip_warm_up()
            return None
        with own.warm_up(f"{name}/{key}"):
            return dummy_run(*args, **kwargs)

    runner._dummy_run = run
    try:
        # Without a warm-up nothing would tell whether a graph takes random numbers.
        return plain(runner, desc, cudagraph_runtime_mode, *rest, max(1, num_warmups), profiler)
    finally:
        del runner._dummy_run
