"""Makes a `libcuda.so.1` around the simulator: a shell that opens it under another name and hands every call on.

Drivers come like that where the real one lies elsewhere. `own_entries` tells whether the shell answers cuGetProcAddress
with its own functions, or passes on what the one behind it answers; `eager` whether it opens that at load or at the
first call. It also exports names that nobody knows. `overrides` are functions that it has of its own, as C code; in it
`real_NAME` is what they stand before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from helpers.native_build import compile_program, run_tool

from foundry import native

SONAME, OTHER_NAME = b"libcuda.so.1\0", b"libcuda.so.9\0"
HEAD = """
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
int cuFutureThing(int value) { return value + 1000; }
int cuMemAlloc_v9(int value) { return value + 2000; }
static struct { const char *name; void *own, *real; } table[];
void shell_open(void);
__attribute__((naked, used)) static void slow(void) {
    __asm__("push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; sub $8, %rsp\\n"
            "call shell_open@PLT\\n"
            "add $8, %rsp; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi; ret");
}
"""
FUNCTION = """void *real_{name} __attribute__((visibility("hidden")));
__attribute__((naked)) void {name}(void) {{
    __asm__("cmpq $0, real_{name}(%rip); jne 1f; sub $8, %rsp; call slow; add $8, %rsp\\n1: jmp *real_{name}(%rip)");
}}
"""
TAIL = """
void shell_open(void) {{
    void *driver = dlopen("{real}", RTLD_NOW | RTLD_LOCAL);
    if (!driver) abort();
    for (size_t index = 0; table[index].name; ++index)
        *(void **)table[index].real = dlsym(driver, table[index].name);
}}
static int answer(int result, const char *name, void **found) {{
    if (name && found && !strcmp(name, "cuFutureThing")) {{
        *found = (void *)cuFutureThing;
        return 0;
    }}
    if (result || !{own} || !found) return result;
    for (size_t index = 0; table[index].name; ++index)
        if (*(void **)table[index].real == *found) *found = table[index].own;
    return 0;
}}
int cuGetProcAddress(const char *name, void **found, int version, unsigned long long flags) {{
    if (!real_cuInit) shell_open();
    return answer(((int (*)(const char *, void **, int, unsigned long long))real_cuGetProcAddress)(
        name, found, version, flags), name, found);
}}
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status) {{
    if (!real_cuInit) shell_open();
    return answer(((int (*)(const char *, void **, int, unsigned long long, int *))real_cuGetProcAddress_v2)(
        name, found, version, flags, status), name, found);
}}
"""
WRITTEN = ("cuGetProcAddress", "cuGetProcAddress_v2")


def make_shell(
    folder: Path, *, own_entries: bool = True, eager: bool = False, overrides: Mapping[str, str] | None = None
) -> Path:
    """Make the folder to name in LD_LIBRARY_PATH."""
    folder.mkdir(exist_ok=True)
    overrides = overrides or {}
    real = folder / "driver-behind.so"
    bytes_of_it = (native.simulator_directory() / "libcuda.so.1").read_bytes()
    assert bytes_of_it.count(SONAME) >= 1
    real.write_bytes(bytes_of_it.replace(SONAME, OTHER_NAME))
    listed = run_tool("nm", "-D", "--defined-only", "--format=posix", real).splitlines()
    names = sorted({line.split()[0].partition("@")[0] for line in listed if line.startswith("cu")})
    lines = [HEAD]
    for name in names:
        if name in WRITTEN or name in overrides:
            lines.append(f'void *real_{name} __attribute__((visibility("hidden")));')
        else:
            lines.append(FUNCTION.format(name=name))
    lines.extend(overrides.values())
    lines.append(TAIL.format(real=real, own=int(own_entries)))
    rows = "".join(f'{{"{name}", (void *){name}, &real_{name}}},' for name in names)
    body = "\n".join(lines).replace("table[];", f"table[{len(names) + 1}];", 1)
    source = folder / "shell.c"
    source.write_text(
        f"{body}\nstatic __typeof__(table) table = {{{rows} {{0, 0, 0}}}};\n"
        + ("__attribute__((constructor)) static void at_load(void) { shell_open(); }\n" if eager else "")
    )
    return compile_program(folder / "libcuda.so.1", [source], "-shared", "-fPIC", "-Wl,-Bsymbolic,-soname,libcuda.so.1")
