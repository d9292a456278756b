"""The one way in which tests compile programs against the native part, find its libraries, and build it sanitized.

The libraries are those of `foundry.native`. `FOUNDRY_SANITIZE=1` makes them anew, with sanitizers, for this run of the
tests; a folder of sanitized ones may be named by `FOUNDRY_LIBRARY_DIR` as any other.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers import emulation
from helpers.source import NATIVE, ROOT

from foundry import native

PROGRAMS = ROOT / "tests" / "native"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")


def build_sanitized(folder: Path, sanitizer: str = "ON") -> Path:
    """Build hook and simulator with sanitizers and return the folder to name in FOUNDRY_LIBRARY_DIR.

    `sanitizer` is what `FOUNDRY_SANITIZE` is set to. The build stays in the folder.
    """
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which("cmake", path=tools)
    assert found, "a sanitized build needs cmake: `make sanitize` or `make tsan` installs it, or `pip install cmake`"
    options = [f"-DPython3_EXECUTABLE={sys.executable}", f"-DFOUNDRY_SANITIZE={sanitizer}"]
    if shutil.which("ninja", path=tools):
        options.append("-GNinja")
    for words in (
        [found, "-S", NATIVE, "-B", folder / "build", *options],
        [found, "--build", folder / "build", "--parallel", str(os.cpu_count() or 1)],
        [found, "--install", folder / "build", "--prefix", folder],
    ):
        run_tool(*words, PATH=tools)
    return folder / "_lib"


def sanitized() -> bool:
    """Tell whether the libraries were built with sanitizers."""
    path = native.library_directory() / native.HOOK_NAME
    return _needs_runtime(path) if path.is_file() else False


@functools.cache
def _needs_runtime(path: Path) -> bool:
    return b"__asan_init" in path.read_bytes()


def preloads() -> list[str]:
    """List the libraries to preload for the hook; a sanitized one must have its runtimes before it."""
    return [*(_runtimes() if sanitized() else ()), _preloadable(native.hook_library())]


@functools.cache
def _preloadable(library: Path) -> str:
    """Give a path that LD_PRELOAD can name: blanks and colons end a name there."""
    if not set(" :\t\n") & set(str(library)):
        return str(library)
    folder = Path(tempfile.mkdtemp(prefix="foundry-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = folder / library.name
    link.symlink_to(library)
    return str(link)


@functools.cache
def _runtimes() -> tuple[str, ...]:
    names = ("libasan.so", "libubsan.so")
    return tuple(run_tool(cxx(), f"-print-file-name={name}").strip() for name in names)


def base_environment() -> dict[str, str]:
    """Make the environment of a program on the simulator: little of ours, the same addresses and handles each time."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment["LD_LIBRARY_PATH"] = str(native.simulator_directory())
    environment["FOUNDRY_SIM_SEED"] = "7"
    # A sanitizer must not turn the program's own crash into an exit code; what a driver keeps to the end is no leak; a
    # preloaded library may come before the runtime.
    environment["ASAN_OPTIONS"] = "handle_segv=0:handle_abort=0:detect_leaks=0:verify_asan_link_order=0"
    environment["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    return environment


def command_environment() -> dict[str, str]:
    """Give what `foundry` needs in its environment where the libraries are sanitized: the runtimes before all else."""
    options = {"ASAN_OPTIONS": base_environment()["ASAN_OPTIONS"]}
    return {**options, "LD_PRELOAD": " ".join(_runtimes())} if sanitized() else options


def hooked_environment(mode: str | None, session: Path) -> dict[str, str]:
    """Make the environment of a program under the hook. None = without it, "" = with it, but without a mode."""
    environment = base_environment()
    if mode is None:
        return environment
    environment["LD_PRELOAD"] = " ".join(preloads())
    if mode:
        environment["FOUNDRY_MODE"] = mode
        environment["FOUNDRY_SPOOL"] = str(session)
        environment["FOUNDRY_STATUS"] = str(session / "status")
    return environment


def link_simulator() -> tuple[str, ...]:
    """Flags that link a program with the simulated driver, as -lcuda does with the real one."""
    return (f"-L{native.simulator_directory()}", "-l:libcuda.so.1")


def cuda_include() -> Path:
    """Find the folder of cuda.h: of the wheel that has it, else of a toolkit."""
    try:
        import nvidia
    except ImportError:
        roots: list[str] = []
    else:
        roots = list(nvidia.__path__)
    for root in roots:
        for header in sorted(Path(root).glob("*/include/cuda.h"), reverse=True):
            return header.parent
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return Path(toolkit) / "include"


def cc() -> str:
    """Name the C compiler."""
    return os.environ.get("CC") or shutil.which("gcc") or "cc"


def cxx() -> str:
    """Name the C++ compiler."""
    return os.environ.get("CXX") or shutil.which("g++") or "c++"


def compile_program(output: Path, sources: list[Path], *flags: str) -> Path:
    """Compile C or C++ sources, told by the first one's name. Flags that begin with -l, or with no -, come last."""
    plain = sources[0].suffix == ".c"
    before = [flag for flag in flags if flag.startswith("-") and not flag.startswith("-l")]
    after = [flag for flag in flags if flag not in before]
    made = emulation.place(output) if "-shared" not in flags else output
    run_tool(
        *(cc() if plain else cxx(), *(() if plain else ("-std=c++20", "-O1")), "-g", "-Wall", "-Wextra", "-Werror"),
        *(*before, "-isystem", cuda_include(), "-I", NATIVE, *sources, "-o", made, *after, "-ldl", "-pthread"),
    )
    return output


def make_kernels(output: Path, source: Path, *flags: str) -> bytes:
    """Compile kernels for the simulator."""
    run_tool(sys.executable, NATIVE / "sim" / "make_image.py", output, source, *flags)
    return output.read_bytes()


def run_tool(*command: str | Path, **environment: str) -> str:
    """Run a compiler or the like, and return what it printed, or show it if it failed."""
    done = subprocess.run(
        [str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-4000:]}{done.stderr[-8000:]}"
    return done.stdout


def embed_kernels(output: Path, image: Path, build_id: str) -> Path:
    """Make a shared library that holds an image under the name `kernels`, with a build id of hexadecimal digits."""
    source = output.with_suffix(".c")
    lines = (".section .rodata", ".balign 16", ".globl kernels", "kernels:", f'.incbin \\"{image}\\"', ".text")
    source.write_text(f'__asm__("{"".join(line + chr(92) + "n" for line in lines)}");\n')
    return compile_program(output, [source], "-shared", "-fPIC", f"-Wl,--build-id=0x{build_id}")
