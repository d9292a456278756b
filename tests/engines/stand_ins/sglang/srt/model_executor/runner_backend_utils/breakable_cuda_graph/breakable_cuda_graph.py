from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import released
import torch

_current_capture_var: ContextVar[Any] = ContextVar("current_capture", default=None)
_current_stream_var: ContextVar[Any] = ContextVar("current_stream", default=None)
_forked_streams_var: ContextVar[Any] = ContextVar("forked_streams", default=None)
_original_wait_stream = None
_is_xpu = False


def get_device_module() -> Any:
    return torch.cuda


def get_current_stream(device: Any = None) -> Any:
    return _current_stream_var.get() or torch.cuda.current_stream()


def _install_wait_stream_hook() -> None:
    pass


def _uninstall_wait_stream_hook() -> None:
    pass


def _weak_ref_if_tensor(x: Any) -> Any:
    if not torch.is_tensor(x):
        return x
    storage = x.untyped_storage()
    return torch.Tensor(x.shape, x.dtype, torch.Storage(storage.data_ptr(), storage.nbytes()), x.offset)


def eager_on_graph(enable: bool, capture_stub: Callable[..., Any] | None = None) -> Any:
    def decorator(inner: Callable[..., Any]) -> Any:
        if not enable:
            return inner

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            capture = _current_capture_var.get()
            if capture is None:
                return inner(*args, **kwargs)
            capture._end_current_segment()
            if capture._barrier_fn is not None:
                capture._barrier_fn()
            output = inner(*args, **kwargs)
            captured_inner = inner
            captured_args = tuple(_weak_ref_if_tensor(a) for a in args)
            captured_kwargs = {k: _weak_ref_if_tensor(v) for k, v in kwargs.items()}
            captured_output = output

            def replay_fn() -> Any:
                new_out = captured_inner(*captured_args, **captured_kwargs)
                return _copy_output(captured_output, new_out)

            capture.cuda_graph._break_fns.append(replay_fn)
            capture._begin_new_segment()
            return output

        return wrapper

    return decorator


def _copy_output(dst: Any, src: Any) -> Any:
    if torch.is_tensor(dst) and torch.is_tensor(src):
        dst.copy_(src)
        return dst
    return src


class BreakableCUDAGraph:
    def __init__(self, deduped_cuda_graph: Any = None) -> None:
        self._segments: list[Any] = []
        self._break_fns: list[Callable[[], Any]] = []
        self._deduped_cuda_graph = deduped_cuda_graph

    def replay(self) -> None:
        for i, seg in enumerate(self._segments):
            seg.replay()
            if i < len(self._break_fns):
                self._break_fns[i]()

    def _append_segment(self, graph: Any, needs_instantiate: bool) -> None:
        self._segments.append(graph)


class BreakableCUDAGraphCapture:
    def __init__(
        self,
        cuda_graph: Any,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        barrier_fn: Callable[[], None] | None = None,
    ) -> None:
        self.cuda_graph, self._pool, self._stream = cuda_graph, pool, stream
        self._capture_error_mode, self._barrier_fn = capture_error_mode, barrier_fn
        self._stream_ctx: Any = None
        self._current_graph: Any = None
        self._current_graph_needs_instantiate = False

    def __enter__(self) -> Any:
        self._stream_ctx = get_device_module().stream(self._stream)
        self._stream_ctx.__enter__()
        self._capture_token = _current_capture_var.set(self)
        self._stream_token = _current_stream_var.set(self._stream)
        self._forked_token = _forked_streams_var.set(set())
        self._begin_new_segment()
        return self

    def __exit__(self, *args: object) -> bool:
        try:
            self._end_current_segment()
        finally:
            _forked_streams_var.reset(self._forked_token)
            _current_stream_var.reset(self._stream_token)
            _current_capture_var.reset(self._capture_token)
            self._stream_ctx.__exit__(*args)
        return False

    def _begin_new_segment(self) -> None:
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=self._pool, capture_error_mode=self._capture_error_mode)
        self._current_graph = graph

    def _end_current_segment(self) -> None:
        graph = self._current_graph
        graph.capture_end()
        self.cuda_graph._append_segment(graph, self._current_graph_needs_instantiate)
        self._current_graph = None


released.take_over(
    globals(),
    "BreakableCUDAGraphCapture",
    *("__enter__", "__exit__", "_begin_new_segment", "_end_current_segment"),
    missing=dict,
)
released.take_over(globals(), "BreakableCUDAGraph", "replay", "_append_segment", missing=dict)
