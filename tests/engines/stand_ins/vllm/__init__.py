"""The seams of vLLM 0.26.0 that the adapter touches, after the released sources (Apache-2.0)."""

from vllm.version import __version__ as __version__
