"""`CUDAGraph` and `graph` as in torch 2.11, on the driver API."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

import torch

FREES_ON_LAUNCH, USES_PRIORITIES = 1, 8


class CUDAGraph:
    def __init__(self) -> None:
        self.exec: Any = None

    def register_generator_state(self, generator: Any) -> None:
        if not generator.pair:
            generator.pair = tuple(torch.empty(1, dtype=torch.int64) for _ in range(2))

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        self.register_generator_state(torch.cuda.default_generators[0])
        self.stream = torch.cuda.current_stream()
        torch.capturing.append(pool or torch.cuda.graph_pool_handle())
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        torch.check(driver.cuStreamBeginCapture(self.stream.cuda_stream, relaxed))

    def capture_end(self) -> None:
        torch.capturing.pop()
        made = torch.check(driver.cuStreamEndCapture(self.stream.cuda_stream))
        self.exec = torch.check(driver.cuGraphInstantiate(made, FREES_ON_LAUNCH | USES_PRIORITIES))
        torch.check(driver.cuGraphDestroy(made))

    def replay(self) -> None:
        torch.check(driver.cuGraphLaunch(self.exec, torch.cuda.current_stream().cuda_stream))


class graph:
    default_capture_stream: Any = None

    def __init__(
        self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> None:
        if stream is None and type(self).default_capture_stream is None:
            type(self).default_capture_stream = torch.cuda.Stream()
        self.pool = () if pool is None else (pool,)
        self.capture_stream = stream if stream is not None else type(self).default_capture_stream
        self.stream_ctx = torch.cuda.stream(self.capture_stream)
        self.cuda_graph, self.capture_error_mode = cuda_graph, capture_error_mode

    def __enter__(self) -> None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(*self.pool, capture_error_mode=self.capture_error_mode)

    def __exit__(self, *args: object) -> None:
        self.cuda_graph.capture_end()
        self.stream_ctx.__exit__(*args)
