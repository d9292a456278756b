"""The seams of SGLang 0.5.17 that the adapter touches, after the released sources (Apache-2.0)."""

from sglang.version import __version__ as __version__
