"""What the driver compiles on a load: a restore loads the same bytes with the same options, and links nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases.driver_shell import make_shell
from helpers.native_build import PROGRAMS, compile_program, make_kernels
from helpers.roundtrip import Program
from native.hook_run import events
from unit.binary.test_fatbin import CUBIN, container, entry

from foundry import diff
from foundry.model import NONE

BASE = 0x403500000000
"""Where the hook places the first allocation of a program."""
OPTIONS = {0: 32, 1: 64, 14: 2}
COMPILER = """
#include <stdio.h>
/* Has a text compiled: its line `// is FILE` names the image that comes of it. Notes what it was given. */
static const void *compiled(const char *name, const void *image, unsigned count, int *options, void **values) {
    const unsigned char *bytes = image;
    const char *text = image;
    size_t size = strlen(text) + 1;
    if (bytes[0] == 0x50) {
        size = 16 + *(const size_t *)(bytes + 8);
        for (text += 16; memcmp(text, ".version", 8); ++text) {}
    }
    if (memcmp(text, ".version", 8)) return image;
    FILE *file = fopen(getenv("COMPILER_NOTES"), "a");
    fprintf(file, "%s ", name);
    for (size_t at = 0; at < size; ++at) fprintf(file, "%02x", bytes[at]);
    for (unsigned at = 0; at < count; ++at) {
        fprintf(file, " %d=%u", options[at], (unsigned)(size_t)values[at]);
        if (options[at] == 1) values[at] = (void *)1024; /* what it really did */
    }
    fprintf(file, "\\n");
    fclose(file);
    char path[4096];
    sscanf(strstr(text, "// is "), "// is %4095s", path);
    char *made = calloc(1, 1 << 20);
    file = fopen(path, "rb");
    if (!fread(made, 1, 1 << 20, file)) abort();
    fclose(file);
    return made;
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    if (!real_cuInit) shell_open();
    image = compiled("module", image, count, options, values);
    return ((int (*)(void **, const void *, unsigned, int *, void **))real_cuModuleLoadDataEx)(module, image, 0, 0, 0);
}
"""
LIBRARIES = """
int cuLibraryLoadData(void **library, const void *image, int *options, void **values, unsigned count, int *more,
                      void **more_values, unsigned more_count) {
    if (!real_cuInit) shell_open();
    image = compiled("library", image, count, options, values);
    return ((int (*)(void **, const void *, int *, void **, unsigned, int *, void **, unsigned))real_cuLibraryLoadData)(
        library, image, 0, 0, 0, more, more_values, more_count);
}
"""
LINKER = """
int cuLinkCreate_v2(void) {
    FILE *file = fopen(getenv("COMPILER_NOTES"), "a");
    fprintf(file, "link\\n");
    fclose(file);
    return 801;
}
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    compile_program(folder / "program", [PROGRAMS / "restore_program.cpp"])
    make_kernels(folder / "kernels.image", PROGRAMS / "restore_kernels.c")
    overrides = {"cuModuleLoadDataEx": COMPILER, "cuLibraryLoadData": LIBRARIES, "cuLinkCreate_v2": LINKER}
    make_shell(folder / "driver", overrides=overrides)
    return folder


@pytest.mark.parametrize("api", ["module", "library"])
@pytest.mark.parametrize("form", ["text", "fatbin"])
def test_a_restore_compiles_what_the_program_compiled(tools: Path, tmp_path: Path, api: str, form: str) -> None:
    text = b".version 8.0\n.target sm_90\n// is %s \n\0" % bytes(tools / "kernels.image")
    data = text if form == "text" else container(entry(CUBIN, 80), entry(text, 90, kind=1))
    source = tmp_path / "source"
    source.write_bytes(data)
    load = ":".join([api, str(source), *(f"{option}={value}" for option, value in OPTIONS.items())])
    start = [str(tools / "program"), "init", "context", "alloc:4096", load]
    asked = [*start, "wait:decode:1", "launch:decode:1", "sync", f"read:{BASE}:4", "commit"]
    notes = tmp_path / "notes"
    environment = (("LD_LIBRARY_PATH", str(tools / "driver")), ("COMPILER_NOTES", str(notes)))
    program = Program([*start, f"record:decode:1:{BASE}:5", "commit"], environment, asked)

    captured = program.captured(tmp_path / "captured", 7)
    given = f"{api} {data.hex()} {' '.join(f'{option}={value}' for option, value in OPTIONS.items())}"
    assert notes.read_text().splitlines() == [given]
    (process,) = captured.capture.processes
    (image,) = process.images
    assert (captured.capture.blobs[image.blob], image.original, image.unpacked) == (data, NONE, False)
    assert image.options == tuple(OPTIONS.items())
    assert not any(code.startswith(("image-not", "link")) for code in captured.findings)

    notes.unlink()
    restored = program.restored(tmp_path / "restored", 11, captured.capture)
    assert notes.read_text().splitlines() == [given]
    assert [event.state for event in events(restored.spool(), "GraphRestored")] == [1]
    assert "read 105 105 105 105" in restored.output.splitlines()
    assert diff.compare(captured.capture, restored.capture) == []
