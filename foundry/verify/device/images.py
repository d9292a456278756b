"""Loads the images of an archive and gets the kernels out of them, each once."""

from __future__ import annotations

from typing import Any

from foundry.binary.ptx import looks_like_ptx
from foundry.findings import (
    VERIFY_DEVICE_ATTRIBUTE,
    VERIFY_DEVICE_IMAGE,
    VERIFY_DEVICE_KERNEL,
    VERIFY_DEVICE_LAYOUT,
)
from foundry.model import Api, Image, Kernel, Process
from foundry.verify.device.bindings import INVALID_VALUE, Driver, DriverError


class KernelError(Exception):
    """A kernel cannot be had as the archive describes it."""

    def __init__(self, code: str, text: str, parameter: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.parameter = parameter


class Images:
    """The images and kernels of a process; what failed once is not tried again."""

    def __init__(self, driver: Driver, process: Process, devices: dict[int, Any]) -> None:
        self._driver = driver
        self._process = process
        self._devices = devices
        self._images: dict[int, Any] = {}
        self._kernels: dict[int, Any] = {}

    def load(self, number: int, data: bytes) -> None:
        """Load an image into the current context. What is wrong with it is told when a kernel of it is asked for."""
        image = self._process.images[number]
        try:
            self._images[number] = self._loaded(image, data)
        except (DriverError, TypeError, ValueError) as error:  # bindings refuse some options by the last two
            origin = f" from `{image.provenance}`" if image.provenance else ""
            text = f"image {number}{origin} is not loaded: {error}"
            self._images[number] = KernelError(VERIFY_DEVICE_IMAGE, text)

    def kernel(self, number: int) -> Any:
        """Give a kernel (or function, out of a module) whose layout and attributes are those of the archive."""
        if number not in self._kernels:
            try:
                self._kernels[number] = self._found(self._process.kernels[number])
            except KernelError as error:
                self._kernels[number] = error
        found = self._kernels[number]
        if isinstance(found, KernelError):
            raise found
        return found

    def of_library(self, number: int) -> bool:
        """Whether a kernel is one of a library, not a function of a module."""
        return self._process.images[self._process.kernels[number].image].api == Api.LIBRARY

    def _loaded(self, image: Image, data: bytes) -> Any:
        driver = self._driver
        text = looks_like_ptx(data)
        if text:
            data = data.rstrip(b"\0") + b"\0"
        options, values = [], []
        for option, value in image.options if text or not image.unpacked else ():
            options.append(driver.member("CUjit_option", option))
            values.append(value)
        if image.api == Api.LIBRARY:
            return driver.cuLibraryLoadData(data, options, values, len(options), [], [], 0)
        return driver.cuModuleLoadDataEx(data, len(options), options, values)

    def _found(self, kernel: Kernel) -> Any:
        image = self._images.get(kernel.image)
        if image is None or isinstance(image, KernelError):
            raise image or KernelError(VERIFY_DEVICE_IMAGE, f"image {kernel.image} has no bytes")
        driver, library = self._driver, self._process.images[kernel.image].api == Api.LIBRARY
        get = driver.cuLibraryGetKernel if library else driver.cuModuleGetFunction
        try:
            found = get(image, kernel.name.encode())
        except DriverError as error:
            raise KernelError(VERIFY_DEVICE_KERNEL, f"image {kernel.image} does not give it: {error}") from None
        self._require_layout(kernel, found, library=library)
        self._set_attributes(kernel, found, library=library)
        return found

    def _require_layout(self, kernel: Kernel, found: Any, *, library: bool) -> None:
        ask = self._driver.cuKernelGetParamInfo if library else self._driver.cuFuncGetParamInfo
        for number in range(len(kernel.parameters) + 1):
            here = kernel.parameters[number] if number < len(kernel.parameters) else None
            try:
                told = tuple(map(int, ask(found, number)))
            except DriverError as error:
                if error.name != INVALID_VALUE:
                    raise KernelError(VERIFY_DEVICE_LAYOUT, str(error)) from None
                told = None
            if told != here:
                text = f"the archive has {_placed(here)}, the driver {_placed(told)}"
                raise KernelError(VERIFY_DEVICE_LAYOUT, text, number)

    def _set_attributes(self, kernel: Kernel, found: Any, *, library: bool) -> None:
        driver, device = self._driver, self._devices[kernel.device]
        for number, wanted in kernel.attributes:
            try:
                name = driver.member("CUfunction_attribute", number)
                if library:
                    value = driver.cuKernelGetAttribute(name, found, device)
                else:
                    value = driver.cuFuncGetAttribute(name, found)
                if int(value) == wanted:
                    continue
                if library:
                    driver.cuKernelSetAttribute(name, wanted, found, device)
                else:
                    driver.cuFuncSetAttribute(found, name, wanted)
            except DriverError as error:
                text = f"its function attribute {number} cannot be made {wanted}: {error}"
                raise KernelError(VERIFY_DEVICE_ATTRIBUTE, text) from None


def _placed(parameter: tuple[int, ...] | None) -> str:
    return f"{parameter[1]} bytes at byte {parameter[0]}" if parameter else "no such parameter"
