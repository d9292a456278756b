"""A program that uses every JIT cache as its owner does, in real folder layouts, and else is the fake program.

It prints `NAME cold` where it had to build, and `NAME warm` where it found all that it needs.
"""

from __future__ import annotations

import ast
import getpass
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HOME = Path.home()


def place(variable: str, default: Path) -> Path:
    return Path(os.environ.get(variable) or default)


def put(path: Path, data: bytes) -> None:
    """Write as the engines do: under another name first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"tmp.{os.getpid()}.{path.name}")
    temporary.write_bytes(data)
    temporary.replace(path)


def triton_kernel(folder: Path, name: str) -> bool:
    """Triton: a folder for each kernel, its files named by absolute paths in a group file, which comes last."""
    group = folder / f"__grp__{name}.json"
    if group.exists():
        paths = json.loads(group.read_text())["child_paths"]
        found = {file: path for file, path in paths.items() if Path(path).exists()}
        if f"{name}.json" in found:
            return all(len(Path(path).read_bytes()) > 1 for path in found.values()) and len(found) == 3
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lock").write_bytes(b"")
    children = {f"{name}.cubin": b"\x7fELF" + name.encode() * 50, f"{name}.json": b"{}", f"{name}.ptx": b".version"}
    for file, data in children.items():
        put(folder / file, data)
    put(folder / f"{name}.source", b"looked at by nobody")
    put(group, json.dumps({"child_paths": {file: str(folder / file) for file in children}}).encode())
    return False


def triton() -> bool:
    root = place("TRITON_CACHE_DIR", place("TRITON_HOME", HOME) / ".triton" / "cache")
    return triton_kernel(root / "K6QM4ZPDTRNXQ2ZL7VQ5UXQ5", "add_kernel")


def inductor() -> bool:
    """Inductor: sources spread by two letters, pickles by their keys, and Triton's kernels inside."""
    user = getpass.getuser()
    root = place("TORCHINDUCTOR_CACHE_DIR", Path(tempfile.gettempdir()) / f"torchinductor_{user}")
    warm = triton_kernel(root / "triton" / "0" / "AB34CD", "fused_0")
    source, pickle = root / "c7" / "cc7abc.py", root / "fxgraph" / "xy" / "fxyz" / "hash"
    if source.exists() and pickle.exists():
        return bool(source.read_bytes() and pickle.read_bytes()) and warm
    put(root / "c7" / "cunused.py", b"of another program, perhaps")
    put(source, b"def call(args): pass\n")
    put(pickle, b"pickled")
    put(root / "locks" / "cc7abc.lock", b"")
    return False


def compile_cache(root: Path, name: str) -> bool:
    """vLLM's and SGLang's: a folder for each configuration, with inductor's and Triton's inside."""
    folder = root / "torch_compile_cache" / "0a1b2c3d4e" / "rank_0_0" / "backbone"
    index = folder / f"{name}_compile_cache.py"
    warm = triton_kernel(folder / "triton_cache" / "QQ11", "rms_norm")
    if index.exists():
        key, source = ast.literal_eval(index.read_text())[0]
        return bool(key) and (folder / "inductor_cache" / source).exists() and warm
    put(folder / "inductor_cache" / "ab" / "cabx.py", b"source")
    index.write_text(repr([("fkey", "ab/cabx.py")]))
    return False


def vllm() -> bool:
    root = place("VLLM_CACHE_ROOT", place("XDG_CACHE_HOME", HOME / ".cache") / "vllm")
    put(root / "assets" / "cat.jpg", b"a download, and no cache of what was compiled")
    info = root / "modelinfos" / "Model-1.json"
    warm = info.exists() and info.read_bytes() == b"{}"
    put(info, b"{}") if not warm else None
    return compile_cache(root, "vllm") and warm


def sglang() -> bool:
    return compile_cache(place("SGLANG_CACHE_DIR", HOME / ".cache" / "sglang"), "sglang")


def ninja(folder: Path, source: Path, log: Path) -> bool:
    """Build with ninja's rules: an output is good if its log says so, and no input is newer than that."""
    library = folder / "op.so"
    if not source.exists() or source.read_bytes() != b"kernel":
        put(source, b"kernel")
    (folder / "build.ninja").exists() and (folder / "build.ninja").read_bytes()
    if log.exists() and library.exists():
        built, output = map(int, log.read_text().split())
        status = library.stat()
        if source.stat().st_mtime_ns <= built and status.st_mtime_ns == output and status.st_mode & 0o100:
            return (folder / "op.o").exists()
    put(folder / "build.ninja", b"rule nvcc")
    built = source.stat().st_mtime_ns + 5
    (folder / "op.o").write_bytes(b"object")
    library.write_bytes(b"\x7fELF shared")
    library.chmod(0o755)
    log.write_text(f"{built} {library.stat().st_mtime_ns}")
    return False


def flashinfer() -> bool:
    root = place("FLASHINFER_WORKSPACE_BASE", HOME) / ".cache" / "flashinfer" / "0.6.1" / "90a"
    (root / "cached_ops" / "tmp").mkdir(parents=True, exist_ok=True)
    (root / "cached_ops" / "tmp" / "op.lock").write_bytes(b"")
    (root / "flashinfer_jit.log").write_text("a line of a log\n")
    ops, sources = root / "cached_ops", root / "generated"
    return ninja(ops / "batch_decode", sources / "batch_decode" / "kernel.cu", ops / ".ninja_log")


def tvm_ffi() -> bool:
    root = place("TVM_FFI_CACHE_DIR", HOME / ".cache" / "tvm-ffi") / "sgl_kernel_jit_0123"
    return ninja(root, root / "cuda.cu", root / ".ninja_log")


def cuda() -> bool:
    """CUDA: an index, which each program changes, and files by its hashes."""
    root = place("CUDA_CACHE_PATH", HOME / ".nv" / "ComputeCache")
    index, entry = root / "index", root / "3" / "a" / "b0c1d2"
    if index.exists() and b"b0c1d2" in index.read_bytes() and entry.exists():
        with index.open("ab") as file:
            file.write(b".")
        return entry.read_bytes() == b"machine code"
    put(entry, b"machine code")
    with index.open("ab") as file:
        file.write(b"b0c1d2")
    return False


CACHES: dict[str, Callable[[], bool]] = {
    use.__name__: use for use in (triton, inductor, vllm, sglang, flashinfer, tvm_ffi, cuda)
}


def main() -> None:
    for name, use in CACHES.items():
        print(name, "warm" if use() else "cold", flush=True)
    from helpers import fake_program

    fake_program.main()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
