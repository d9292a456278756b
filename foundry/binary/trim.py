"""Makes of an image one with fewer kernels: loading takes as long as there are kernels in an image.

Whatever is not a kernel's own stays: constants, device functions and all their names. What only debuggers read goes. An
image that holds anything whose meaning is not known is left alone, and so is one with variables: a program would set
them in its own load and not in this one.
"""

from __future__ import annotations

from collections.abc import Collection

from foundry.binary import simulated
from foundry.binary.cubin import ELF_MAGIC, Cubin
from foundry.binary.errors import ImageError
from foundry.binary.likeness import compare
from foundry.binary.parts import Parts, UnsureError
from foundry.binary.rebuild import rebuilt


def trimmed(image: bytes, kernels: Collection[str]) -> bytes | None:
    """Leave out all kernels but these and those that they need.

    None if nothing would go, or if it isn't certain that these kernels would then run as they do in the whole image.
    """
    try:
        return without_others(image, kernels)
    except ImageError:
        return None


def without_others(image: bytes, kernels: Collection[str]) -> bytes:
    """Do the same, or raise an ImageError that says what is in the way."""
    if image.startswith(simulated.MAGIC):
        return simulated.without_others(image, kernels)
    if not image.startswith(ELF_MAGIC):
        raise UnsureError("it is no cubin")
    if Cubin(image).kernels.keys() <= set(kernels):
        raise UnsureError("all its kernels are needed")
    whole = Parts(image)
    if whole.variables:
        raise UnsureError(f"it has variables: `{whole.variables[0]}`")
    less = rebuilt(whole, whole.unneeded(kernels))
    compare(whole, Parts(less))
    return less
