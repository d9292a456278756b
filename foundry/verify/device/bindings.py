"""The driver through cuda-python, of version 12 and of 13, which name some functions differently."""

from __future__ import annotations

import ctypes
from typing import Any

PACKAGE = "cuda-bindings"
NOT_READY = "CUDA_ERROR_NOT_READY"
OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
INVALID_VALUE = "CUDA_ERROR_INVALID_VALUE"


class BindingsError(Exception):
    """cuda-python, or a driver, is not there."""


class DriverError(Exception):
    """A driver function failed. `name` is the driver's name of the error."""

    def __init__(self, function: str, name: str) -> None:
        super().__init__(f"{function} says {name}")
        self.function = function
        self.name = name


class Driver:
    """Calls driver functions by name; all but success is a DriverError."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise BindingsError(f"`{PACKAGE}` cannot be imported: {error}") from None
        self.module: Any = driver

    def __getattr__(self, name: str) -> Any:
        """Give a function that returns what the driver's does, without its result."""
        function = getattr(self.module, name)

        def call(*arguments: Any) -> Any:
            result, *values = function(*arguments)
            if int(result):
                raise DriverError(name, getattr(result, "name", str(int(result))))
            return values[0] if len(values) == 1 else tuple(values)

        setattr(self, name, call)
        return call

    def newest(self, name: str) -> Any:
        """Give the function with edge data: version 12 has it under a name of its own."""
        return getattr(self, f"{name}_v2" if hasattr(self.module, f"{name}_v2") else name)

    def member(self, kind: str, number: int) -> Any:
        """Give a value of one of the driver's enumerations. DriverError if these bindings do not know it."""
        try:
            return getattr(self.module, kind)(number)
        except ValueError:
            raise DriverError(f"this {PACKAGE}", f"that it knows no {kind} {number}") from None


def write_bytes(target: Any, data: bytes) -> None:
    """Write a driver structure byte by byte."""
    ctypes.memmove(target.getPtr(), data, len(data))


def read_bytes(source: Any, size: int) -> bytes:
    """Read a driver structure byte by byte."""
    return ctypes.string_at(source.getPtr(), size)


def simulated() -> bool:
    """Whether the driver of this process is Foundry's simulator. BindingsError if there is no driver."""
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "foundry_sim_version")
    except OSError as error:
        raise BindingsError(f"there is no driver: {error}") from None
