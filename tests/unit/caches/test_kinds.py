"""Where caches lie for a command, and what in them belongs together."""

from __future__ import annotations

from pathlib import Path

import pytest

from foundry.caches import kinds

HOME = "/home/someone"
BASE = {"HOME": HOME, "USER": "some:one", "TMPDIR": "/nonexistent"}


def places(**environment: str) -> dict[str, str]:
    return {name: folder.path for name, folder in kinds.folders({**BASE, **environment}, "/work/here").items()}


def test_without_variables() -> None:
    assert places() == {
        "triton": f"{HOME}/.triton/cache",
        "inductor": "/tmp/torchinductor_some_one",
        "vllm": f"{HOME}/.cache/vllm",
        "sglang": f"{HOME}/.cache/sglang",
        "sglang_jit": f"{HOME}/.cache/sglang/jit",
        "sglang_deep_gemm": f"{HOME}/.cache/deep_gemm",
        "deep_gemm": f"{HOME}/.deep_gemm",
        "flashinfer": f"{HOME}/.cache/flashinfer",
        "tvm_ffi": f"{HOME}/.cache/tvm-ffi",
        "cuda": f"{HOME}/.nv/ComputeCache",
    }


@pytest.mark.parametrize(
    ("variable", "value", "cache", "expected"),
    [
        ("TRITON_CACHE_DIR", "/a/t", "triton", "/a/t"),
        ("TRITON_CACHE_DIR", "  ", "triton", f"{HOME}/.triton/cache"),
        ("TRITON_CACHE_DIR", "relative/t", "triton", "/work/here/relative/t"),
        ("TRITON_HOME", "/a", "triton", "/a/.triton/cache"),
        ("TORCHINDUCTOR_CACHE_DIR", "/a/../b", "inductor", "/b"),
        ("LOGNAME", "me", "inductor", "/tmp/torchinductor_me"),
        ("VLLM_CACHE_ROOT", "~/v", "vllm", f"{HOME}/v"),
        ("XDG_CACHE_HOME", "/x", "vllm", "/x/vllm"),
        ("SGLANG_CACHE_DIR", "~/s", "sglang_jit", f"{HOME}/s/jit"),
        ("SGLANG_JIT_CACHE_DIR", "/j", "sglang_jit", "/j"),
        ("FLASHINFER_WORKSPACE_BASE", "/f", "flashinfer", "/f/.cache/flashinfer"),
        ("TVM_FFI_CACHE_DIR", "~/x", "tvm_ffi", f"{HOME}/x"),
        ("CUDA_CACHE_PATH", "/c", "cuda", "/c"),
    ],
)
def test_variables_move_them(variable: str, value: str, cache: str, expected: str) -> None:
    assert places(**{variable: value})[cache] == expected


def test_cudas_can_be_switched_off() -> None:
    assert "cuda" not in places(CUDA_CACHE_DISABLE="1")


@pytest.mark.parametrize(
    "path", ["/", "/tmp", "/home", HOME, f"{HOME}/", f"{HOME}/.cache", "/models", "/models/hf", "/project", "."]
)
def test_a_folder_of_everything_is_no_cache(path: str) -> None:
    environment = {**BASE, "TRITON_CACHE_DIR": path, "HF_HOME": "/models/hf"}
    found = kinds.folders(environment, "/project/run")["triton"]
    assert "holds more than a cache" in found.fault


def test_a_folder_of_two_caches_belongs_to_the_first() -> None:
    found = places(TRITON_CACHE_DIR="/a", CUDA_CACHE_PATH="/a")
    assert found["triton"] == "/a"
    assert "cuda" not in found


def test_a_cache_in_another_is_named() -> None:
    found = kinds.folders({**BASE, "TRITON_CACHE_DIR": "/v/t", "VLLM_CACHE_ROOT": "/v"}, "/")
    assert found["vllm"].others == ("/v/t",)
    assert found["sglang"].others == (f"{HOME}/.cache/sglang/jit",)


def test_a_link_that_the_user_made_is_followed(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "big")
    assert places(VLLM_CACHE_ROOT=str(tmp_path / "link"))["vllm"] == str(tmp_path / "big")


@pytest.mark.parametrize(
    ("cache", "path", "entry", "unit"),
    [
        ("triton", "HASH/k.cubin", "HASH", "HASH"),
        ("inductor", "c7/cc7.py", "c7/cc7.py", "c7/cc7.py"),
        ("inductor", "fxgraph/xy/fxyz/hash", "fxgraph/xy/fxyz", "fxgraph/xy/fxyz"),
        ("vllm", "torch_compile_cache/h/r/b/ab/c.py", "torch_compile_cache/h/r/b/ab/c.py", "torch_compile_cache/h/"),
        ("vllm", "torch_compile_cache/torch_aot_compile/hash/m", "torch_compile_cache/torch_aot_compile/hash",
         "torch_compile_cache/torch_aot_compile/hash/"),
        ("cuda", "3/a/x", "", ""),
        ("triton", "top", "top", "top"),
        ("flashinfer", "0.6/90a/cached_ops/op/op.so", "0.6/90a/cached_ops/op", "0.6/90a/cached_ops/op"),
    ],
)  # fmt: skip
def test_what_belongs_together(cache: str, path: str, entry: str, unit: str) -> None:
    kind = next(kind for kind in kinds.KINDS if kind.name == cache)
    assert (kinds.entry_of(kind, path), kinds.unit_of(kind, path)) == (entry, unit)


@pytest.mark.parametrize(
    "name",
    [
        "__pycache__",
        "lock",
        "locks",
        "a.lock",
        "a.log",
        "tmp.pid_1_2",
        "tmp",
        "x.tmp",
        "token",
        "x.safetensors",
        ".env",
        ".staging-1",
        ".foundry-1",
    ],
)
def test_unwanted_names(name: str) -> None:
    assert not kinds.wanted_name(name)


@pytest.mark.parametrize("name", [".ninja_log", ".ninja_deps", "index", "block.py", "logits.so", "tmpl.py", "clock.cu"])
def test_wanted_names(name: str) -> None:
    assert kinds.wanted_name(name)
