"""What of a command and its packages may differ, and how much it matters."""

from __future__ import annotations

import json

import pytest

from foundry.compat import codes, compare
from foundry.compat.compare import Library
from foundry.compat.items import Item, Level


def level_of(captured: list[str], now: list[str]) -> Level:
    (item,) = compare.command({compare.ARGUMENTS: json.dumps(captured)}, now, {})
    assert item.code == codes.ARGUMENTS
    return item.level


@pytest.mark.parametrize(
    ("captured", "now", "level"),
    [
        ("python serve.py", "python serve.py", Level.SAME),
        ("python serve.py", "/usr/bin/python3.12 serve.py", Level.SAME),
        ("/a/venv/bin/python /a/serve.py --x 1", "/b/venv/bin/python /b/serve.py --x 1", Level.SAME),
        ("/a/serve --x", "/b/serve --x", Level.SAME),
        ("/a/serve --x", "/a/other --x", Level.REFUSE),
        ("python serve.py", "python other.py", Level.REFUSE),
        ("python -u /a/serve.py", "python -u /b/serve.py", Level.SAME),
        ("python -m a.b", "python -m a.c", Level.REFUSE),
        ("python -c a/b", "python -c c/b", Level.REFUSE),
        ("vllm serve m --port 8000", "vllm serve m --port 8001", Level.NOTE),
        ("vllm serve m --port 8000", "vllm serve m --host=0.0.0.0", Level.NOTE),
        ("vllm serve m", "vllm serve m --api-key ***", Level.NOTE),
        ("vllm serve m --max-num-seqs 64", "vllm serve m --max-num-seqs 128", Level.REFUSE),
        ("vllm serve m --revision a", "vllm serve m --revision b", Level.REFUSE),
        ("vllm serve /m/a", "vllm serve /n/a", Level.REFUSE),
        ("vllm serve m --port", "vllm serve m", Level.NOTE),
        ("python", "true", Level.REFUSE),
    ],
)
def test_arguments(captured: str, now: str, level: Level) -> None:
    assert level_of(captured.split(), now.split()) is level


@pytest.mark.parametrize("text", ["", "null", "7", "{", '["x"'])
def test_a_strange_context_is_no_failure(text: str) -> None:
    (item,) = compare.command({"argv": text}, ["python"], {"CUDA_MODULE_LOADING": "LAZY"})
    assert (item.code, item.level, item.archive) == (codes.ARGUMENTS, Level.UNKNOWN, "not recorded")


def test_arguments_are_shown_as_a_shell_takes_them() -> None:
    (item,) = compare.command({"argv": json.dumps(["/a b/python", "x.py"])}, ["python", "y z.py"], {})
    assert (item.archive, item.here) == ("'/a b/python' x.py", "python 'y z.py'")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("CUDA_VISIBLE_DEVICES", Level.NOTE),
        ("CUDA_DEVICE_ORDER", Level.NOTE),
        ("CUDA_MODULE_LOADING", Level.WARN),
        ("PYTORCH_CUDA_ALLOC_CONF", Level.WARN),
        ("CUBLAS_WORKSPACE_CONFIG", Level.REFUSE),
    ],
)
def test_variables(name: str, level: Level) -> None:
    context = {compare.ARGUMENTS: '["python"]', compare.VARIABLE + name: "1"}
    for now, wanted, shown in (("1", Level.SAME, "1"), ("2", level, "2"), (None, level, "not set")):
        (item,) = compare.command(context, None, {name: now} if now else {})
        assert (item.code, item.what, item.archive, item.here, item.level) == (codes.VARIABLE, name, "1", shown, wanted)
    assert not list(compare.command(context | {compare.VARIABLE + "OTHER": "1"}, None, {name: "1", "MORE": "1"}))[1:]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((name, codes.ENGINE) for name in ("torch", "vllm", "sglang", "transformers", "flashinfer-python")),
        *((name, codes.ENGINE) for name in ("flashinfer-cubin", "nvidia-nccl-cu13", "deep-gemm")),
        *((name, codes.PACKAGE) for name in ("triton", "torchx", "nvidia-cublas", "nvidia-cudnn-cu13")),
    ],
)
def test_packages(name: str, code: str) -> None:
    def found(here: dict[str, str]) -> Item:
        (item,) = compare.packages({name: "1.0"}, here)
        assert item.code == code
        return item

    worst = Level.REFUSE if code == codes.ENGINE else Level.WARN
    assert found({name: "1.0", "x": "1"}).level is Level.SAME
    assert found({name: "1.0.1"}).level is worst
    assert (found({"x": "1"}).level, found({"x": "1"}).here) == (worst, "not found")
    assert (found({}).level, found({}).here) == (Level.UNKNOWN, "unknown")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        *((f"{name}.so.13", Level.WARN) for name in ("libcublas", "libcublasLt", "libcudnn_graph", "libcufft")),
        *((f"{name}.so", Level.REFUSE) for name in ("libtorch_cuda", "libcublas_extra", "libmine", "libnccl")),
    ],
)
def test_libraries(name: str, level: Level) -> None:
    for found, wanted in (("cc", Level.SAME), ("dd", level), ("", level), (None, Level.UNKNOWN)):
        (item,) = compare.libraries([Library(name, "cc")], lambda _, found=found: found, needed=False)
        assert (item.code, item.level) == (codes.LIBRARY, wanted)
