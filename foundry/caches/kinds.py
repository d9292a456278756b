"""The caches that are known: where each lies for a command, and what in it belongs together."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TIMES = "times"
"""The cache name under which an archive keeps the times of files, one file for each cache that needs them."""
OWN_PREFIX = ".foundry-"
"""What files are called while they are being placed."""
SHORTEST_ENTRY = 3
"""A folder with a shorter name is one that spreads files by their first letters."""

_UNWANTED = (
    r"(?:stored_)?tokens?|credentials.*|\.env|\.netrc|.*\.(?:safetensors|gguf|pem|key)|"
    r"__pycache__|locks?|tmp|tmp[._].*|\.staging-.*|\.nfs.*|\.foundry-.*|.*\.(?:lock|log|tmp|pyc|swp)|.*~"
)
_CONFIGURATION = r"torch_compile_cache/(?:torch_aot_compile/)?[^/]+/"
_HEADS = r"__grp__.*|\.ninja_log|\.ninja_deps|index|(?:vllm|sglang)_compile_cache\.py"


@dataclass(frozen=True)
class Kind:
    """A cache. Without its variable it lies in `folder` below the base that `base` names.

    `below`: where in the folder that the variable names, or the base, it lies. `ninja`: built by ninja, which compares
    times. `whole`: a file in it tells which others there are, so all of it is taken and placed or nothing. `without`:
    folders at its top that hold something else.
    """

    name: str
    variable: str
    base: str
    folder: str
    below: str = ""
    ninja: bool = False
    whole: bool = False
    without: frozenset[str] = frozenset()
    expands_home: bool = False


KINDS = (
    Kind("triton", "TRITON_CACHE_DIR", "triton", ".triton/cache"),
    Kind("inductor", "TORCHINDUCTOR_CACHE_DIR", "temporary", "torchinductor_{user}"),
    Kind("vllm", "VLLM_CACHE_ROOT", "xdg", "vllm", without=frozenset({"assets", "mm_caches"}), expands_home=True),
    Kind("sglang", "SGLANG_CACHE_DIR", "home", ".cache/sglang", expands_home=True),
    Kind("sglang_jit", "SGLANG_JIT_CACHE_DIR", "sglang", "jit", ninja=True, expands_home=True),
    Kind("sglang_deep_gemm", "SGLANG_DG_CACHE_DIR", "home", ".cache/deep_gemm", expands_home=True),
    Kind("deep_gemm", "DG_JIT_CACHE_DIR", "home", ".deep_gemm"),
    Kind("flashinfer", "FLASHINFER_WORKSPACE_BASE", "home", "", below=".cache/flashinfer", ninja=True),
    Kind("tvm_ffi", "TVM_FFI_CACHE_DIR", "home", ".cache/tvm-ffi", ninja=True, expands_home=True),
    Kind("cuda", "CUDA_CACHE_PATH", "home", ".nv/ComputeCache", whole=True),
)


@dataclass(frozen=True)
class Folder:
    """Where a cache lies. `others`: folders of other caches inside it. `fault`: why it must not be used, or empty."""

    kind: Kind
    path: str
    others: tuple[str, ...] = ()
    fault: str = ""


def folders(environment: Mapping[str, str], working_folder: str) -> dict[str, Folder]:
    """Give the folder of each cache of a command with that environment, whether it is there or not.

    Links in what a user chose are followed, once and here; below these folders none is.
    """
    found: dict[str, str] = {}
    for kind in KINDS:
        path = _place(kind, environment, working_folder)
        if path and path not in found.values() and not _switched_off(kind, environment):
            found[kind.name] = path
    home = posixpath.realpath(_home(environment) or "/")
    # Whoever names the folder of all their files, caches, models or temporary ones has not named a JIT cache.
    everything = [environment.get(name, "") for name in ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE")]
    everything += ["/tmp", "/var/tmp", _temporary(environment), working_folder, f"{home}/.cache", f"{home}/.config"]
    wide = {"/", home, *(posixpath.realpath(posixpath.join(working_folder, folder)) for folder in everything if folder)}
    result = {}
    for kind in KINDS:
        path = found.get(kind.name, "")
        if not path:
            continue
        inside = tuple(other for other in found.values() if is_inside(other, path) and other != path)
        too_wide = any(is_inside(folder, path) for folder in wide)
        result[kind.name] = Folder(kind, path, inside, f"`{path}` holds more than a cache" if too_wide else "")
    return result


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is that folder, or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _switched_off(kind: Kind, environment: Mapping[str, str]) -> bool:
    return kind.name == "cuda" and environment.get("CUDA_CACHE_DISABLE", "").strip() == "1"


def _place(kind: Kind, environment: Mapping[str, str], working_folder: str) -> str:
    chosen = environment.get(kind.variable, "").strip()
    if chosen:
        chosen = _expanded(chosen, _home(environment)) if kind.expands_home else chosen
    else:
        base = _base(kind.base, environment)
        if not base:
            return ""
        chosen = posixpath.join(base, kind.folder.replace("{user}", _user(environment))) if kind.folder else base
    return posixpath.realpath(posixpath.join(working_folder, chosen, kind.below))


def _expanded(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _base(name: str, environment: Mapping[str, str]) -> str:
    home = _home(environment)
    if name == "temporary":
        return _temporary(environment)
    if name == "triton":
        return environment.get("TRITON_HOME", "") or home
    if name == "xdg":
        return environment.get("XDG_CACHE_HOME", "") or (posixpath.join(home, ".cache") if home else "")
    if name == "sglang":
        return _expanded(environment.get("SGLANG_CACHE_DIR", ""), home) or posixpath.join(home, ".cache/sglang")
    return home


def _home(environment: Mapping[str, str]) -> str:
    home = environment.get("HOME", "")
    if home:
        return home
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _temporary(environment: Mapping[str, str]) -> str:
    """Choose as Python does, but write nothing."""
    named = [environment.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    tried = [posixpath.abspath(path) for path in named if path] + ["/tmp", "/var/tmp", "/usr/tmp"]
    return next((path for path in tried if Path(path).is_dir() and os.access(path, os.W_OK | os.X_OK)), "/tmp")


def _user(environment: Mapping[str, str]) -> str:
    name = next(filter(None, (environment.get(name) for name in ("LOGNAME", "USER", "LNAME", "USERNAME"))), "")
    if not name:
        try:
            import pwd

            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = str(os.getuid())
    return re.sub(r'[\\/:*?"<>|]', "_", name)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: most starts need none."""
    return re.compile(pattern)


def wanted_name(name: str) -> bool:
    """Whether a file or folder of that name is part of a cache: no lock, log, or file that is half written."""
    return _compiled(_UNWANTED).fullmatch(name) is None


def storable(path: str) -> bool:
    """Whether an archive can name the file: UTF-8, without a backslash."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return "\\" not in path


def entry_of(kind: Kind, path: str) -> str:
    """Name what a file belongs to, of which all or nothing is of use: its folder, or itself in a spreading one."""
    if kind.whole:
        return ""
    folder = posixpath.dirname(path)
    spreads = not kind.ninja and len(posixpath.basename(folder)) < SHORTEST_ENTRY
    return path if spreads else folder


def unit_of(kind: Kind, path: str) -> str:
    """Name what a command needs all of that opened a file in it: vLLM and SGLang only look whether some are there."""
    found = _compiled(_CONFIGURATION).match(path)
    return found[0] if found else entry_of(kind, path)


def is_head(path: str) -> bool:
    """Whether the file says that others of its entry are whole. It is read before them, and placed after them."""
    return _compiled(_HEADS).fullmatch(posixpath.basename(path)) is not None
