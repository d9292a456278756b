"""Passes through a cache of graphs in Python: the same as keyed_program.c, which says what and how."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from functools import partial
from pathlib import Path
from typing import Any

from foundry import graphs
from foundry.capi import Mode
from foundry.keyed import KeyedGraphs, Round, parity
from foundry.keyed.driver import CallError, Record
from foundry.witness import Span

NUMBERS = 8
CODES = {"equal": 0, "different": 1, "refused": 3}


class Engine:
    """The numbers on the device and the passes over them."""

    def __init__(self, image: bytes, blind: bool, unsafe: str, forked: bool) -> None:
        self._cuda: Any = ctypes.CDLL("libcuda.so.1")
        self.blind = blind
        self.unsafe = unsafe
        self.forked = forked
        device, context, self._kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        module, self.stream, self._numbers = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self._side, self._forks, self._joins = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self._side), 1)
        for event in (self._forks, self._joins):
            self.call("cuEventCreate", ctypes.byref(event), 2)
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        self.call("cuModuleGetFunction", ctypes.byref(self._kernel), module, b"add_constant")
        self.call("cuMemAlloc_v2", ctypes.byref(self._numbers), ctypes.c_size_t(4 * NUMBERS))
        self.clear()
        self.expected = [0] * NUMBERS

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._cuda, name)(*arguments)
        if result:
            raise CallError(name, result)

    def clear(self) -> None:
        self.call("cuCtxSynchronize")
        self.call("cuMemsetD8_v2", self._numbers, 0, ctypes.c_size_t(4 * NUMBERS))

    @property
    def span(self) -> Span:
        return Span(self._numbers.value, 4 * NUMBERS)

    def launch(self, stream: ctypes.c_void_p, rows: int, amount: int) -> None:
        values = (self._numbers, ctypes.c_uint8(amount), ctypes.c_uint32(1), ctypes.c_uint64(rows))
        parameters = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernel", self._kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, None)

    def _record_forked(self, stream: ctypes.c_void_p, rows: int, amount: int) -> None:
        self.launch(stream, 0, amount)
        self.call("cuEventRecord", self._forks, stream)
        self.call("cuStreamWaitEvent", self._side, self._forks, 0)
        self.launch(self._side, rows, amount)
        self.launch(stream, rows if rows > 4 else 0, amount)
        self.call("cuEventRecord", self._joins, self._side)
        self.call("cuStreamWaitEvent", stream, self._joins, 0)
        self.launch(stream, 0, amount)

    def pass_of(self, rows: int, amount: int) -> Record:
        added = 1 if self.blind else amount

        def record(handle: int) -> None:
            stream = ctypes.c_void_p(handle)
            if self.forked:
                self._record_forked(stream, rows, added)
                return
            for _ in range(1 + (rows > 4)):
                self.launch(stream, rows, added)
            if self.unsafe == "told":
                self.call("cuStreamSynchronize", stream)
            elif self.unsafe:
                self._cuda.cuStreamSynchronize(stream)

        return record

    def expect(self, rows: int, amount: int) -> None:
        for row in range(rows):
            self.expected[row] += (1 if self.blind else amount) * (1 + (rows > 4))
        self.call("cuCtxSynchronize")
        found = ctypes.create_string_buffer(4 * NUMBERS)
        self.call("cuMemcpyDtoH_v2", found, self._numbers, ctypes.c_size_t(4 * NUMBERS))
        assert list(struct.unpack(f"{NUMBERS}I", found.raw)) == self.expected, "wrong numbers after a pass"


def read_keys(text: str) -> list[tuple[int, int]]:
    return [(int(rows), int(amount)) for rows, amount in (pair.split(":") for pair in text.split(",") if pair)]


def main() -> int:
    image, what, keys_text, *words = sys.argv[1:]
    options = dict(word.split("=", 1) for word in words)
    keys, warm = read_keys(os.environ.get("KEYED_KEYS", keys_text)), read_keys(options.get("warm", ""))
    engine = Engine(Path(image).read_bytes(), "blind" in options, options.get("unsafe", ""), "forked" in options)
    moving: tuple[str, ...] = () if "hidden" in options else ("amount",)
    if "pointer" in options:
        moving = ("amount", "place")
    open_cache = partial(
        KeyedGraphs,
        "test",
        stream=engine.stream.value or 0,
        shape=("rows",),
        moving=moving,
        most=int(options.get("most", 64)),
        dedicated=int(options.get("dedicated", 0)),
        floor=int(options.get("floor", 0)),
        inputs={"text": options.get("inputs", "")},
    )
    cache = open_cache()

    def key_of(rows: int, amount: int) -> dict[str, int]:
        values = {"rows": rows, "amount": amount, "place": engine.span.address}
        return {name: values[name] for name in ("rows", *moving)}

    if what == "passes":
        for key in warm:
            print("warm", "yes" if cache.warm(key_of(*key), engine.pass_of(*key)) else "no")
        graphs.commit()
        engine.clear()
        ways = []
        first, other = cache, open_cache() if "two" in options else None
        for number, key in enumerate(keys):
            if str(number) == options.get("reopen"):
                del cache, first
                first = cache = open_cache()
            if other is not None:
                cache = other if number % 2 else first
            if str(number) == options.get("hog"):
                engine.call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(40 << 20))
            try:
                ways.append(cache.run(key_of(*key), engine.pass_of(*key)).value)
            except CallError as error:
                print(*ways, f"error {error.result} {error}", sep=" ")
                return 0
            engine.expect(*key)
        cache = first
        counts = cache.counts
        print(*ways)
        print(
            f"restored {counts.restored} dropped {counts.dropped} refused {counts.refused} emptied {counts.emptied} "
            f"held {len(cache)}"
        )
        assert cache.hook.mode() in (Mode.OFF, Mode.CAPTURE, Mode.RESTORE)
        return 0
    for key in warm:
        cache.warm(key_of(*key), engine.pass_of(*key))
    report = parity.compare(
        cache,
        [Round(key_of(*key), engine.pass_of(*key)) for key in keys],
        state={"numbers": engine.span},
        outputs={"numbers": engine.span},
        controls=[options["control"]] if "control" in options else None,
    )
    print(report.line())
    return CODES[report.verdict]


if __name__ == "__main__":
    sys.exit(main())
