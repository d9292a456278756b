from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.fake_hook import FakeHook
from helpers.source import NATIVE

from foundry import capi
from foundry.capi import AbsentHook, DriverError, MisuseError, Mode, ProcessHook, UnavailableError

HEADER = NATIVE / "capi" / "foundry_capi.h"

# A stand-in for the hook with the real header, so that names and signatures are checked by a compiler.
SOURCE = """
#include "foundry_capi.h"
#include <string.h>
static int state, depth, labelled; static char last[4096]; static uint64_t total; static int graph;
static const char *why = "";
int foundry_capi_version(void) { return VERSION; }
int foundry_mode(void) { return 2; }
const char *foundry_reason(void) { return why; }
int foundry_scratch_begin(const char *n) { strcpy(last, n); depth++; return 0; }
int foundry_scratch_end(void) { if (!depth) { why = "none open"; return FOUNDRY_MISUSE; } depth--; return 0; }
int foundry_graph_begin(const char *s, const char *k) { strcpy(last, s); strcat(last, k); labelled = 1; return 0; }
int foundry_graph_end(const char *m) { labelled = 0; strcpy(last, m ? m : "<null>"); return 0; }
foundry_graph *foundry_graph_find(const char *s, const char *k) {
    if (strcmp(k, "8")) { why = "no such graph \\xc3\\xa4"; return 0; }
    return (foundry_graph *)&graph; }
const char *foundry_graph_metadata(const foundry_graph *g) { return g == (void *)&graph ? "{\\"a\\": 1}" : 0; }
int foundry_graph_wait(foundry_graph *g) { why = "not built"; return state; }
int foundry_graph_launch(foundry_graph *g, void *stream) { graph = (int)(long)stream; return state; }
void foundry_graph_give_up(foundry_graph *g, const char *reason) { strcpy(last, reason); }
void *foundry_graph_exec(foundry_graph *g) { return state ? 0 : (void *)0x7fff00001000; }
int foundry_commit(void) { return 0; }
void foundry_count(const char *n, uint64_t add) { total += add; }
uint64_t foundry_counter(const char *n) { return total; }
void test_state(int value) { state = value; }
const char *test_last(void) { return last; }
"""


def build(folder: Path, version: int = capi.VERSION) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed"
    source, library = folder / "stand_in.c", folder / f"stand_in_{version}.so"
    source.write_text(SOURCE)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-I", HEADER.parent, f"-DVERSION={version}", source, "-o", library], check=True
    )
    loaded = ctypes.CDLL(str(library))
    loaded.test_last.restype = ctypes.c_char_p
    return loaded


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("capi"))


@pytest.fixture
def hook(library: ctypes.CDLL) -> ProcessHook:
    library.test_state(0)
    return ProcessHook(library)


def test_without_a_hook_everything_is_off() -> None:
    hook = capi.load()
    assert isinstance(hook, AbsentHook)
    assert hook.mode() is Mode.OFF
    assert hook.counter("anything") == 0
    hook.count("anything", 3)
    hook.scratch_begin("a")
    hook.scratch_end()
    hook.graph_begin("a", "b")
    hook.graph_end(None)
    hook.commit()
    for refused in (hook.metadata, hook.wait, hook.exec):
        with pytest.raises(UnavailableError, match="no foundry hook"):
            refused(1)
    with pytest.raises(UnavailableError):
        hook.find("a", "b")
    with pytest.raises(UnavailableError):
        hook.launch(1, 0)


def test_the_header_and_the_binding_are_of_one_version() -> None:
    assert f"#define FOUNDRY_CAPI_VERSION {capi.VERSION}\n" in HEADER.read_text()


def test_another_version_counts_as_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = build(tmp_path, capi.VERSION + 1)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: other)
    hook = capi.load.__wrapped__()
    assert isinstance(hook, AbsentHook)
    assert "version 2" in hook.reason()


def test_the_hook_of_the_process_is_found(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library if name is None else pytest.fail("loads a library"))
    assert isinstance(capi.load.__wrapped__(), ProcessHook)


def test_a_graph_is_found_with_its_metadata(hook: ProcessHook) -> None:
    graph = hook.find("decode", "8")
    assert hook.metadata(graph) == '{"a": 1}'
    assert hook.exec(graph) == 0x7FFF00001000
    hook.wait(graph)
    hook.launch(graph, 77)
    hook.launch(graph, 0)


def test_what_the_archive_lacks_is_said_with_its_reason(hook: ProcessHook) -> None:
    with pytest.raises(UnavailableError, match="no such graph ä"):
        hook.find("decode", "9")


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [(-1, UnavailableError, "not built"), (-2, MisuseError, "not built"), (700, DriverError, "CUresult 700")],
)
def test_results_are_checked(
    hook: ProcessHook, library: ctypes.CDLL, result: int, error: type[Exception], text: str
) -> None:
    graph = hook.find("decode", "8")
    library.test_state(result)
    with pytest.raises(error, match=text):
        hook.wait(graph)
    with pytest.raises(error):
        hook.launch(graph, 0)
    with pytest.raises(UnavailableError):
        hook.exec(graph)


def test_a_driver_error_keeps_its_number(hook: ProcessHook, library: ctypes.CDLL) -> None:
    graph = hook.find("decode", "8")
    library.test_state(719)
    with pytest.raises(DriverError) as caught:
        hook.launch(graph, 0)
    assert caught.value.result == 719


def test_phases_labels_and_totals_reach_the_hook(hook: ProcessHook, library: ctypes.CDLL) -> None:
    with capi.scratch(hook, "wärm-up"):
        assert library.test_last().decode() == "wärm-up"
    with pytest.raises(MisuseError, match="none open"):
        hook.scratch_end()
    with capi.labelled(hook, "set", "key") as label:
        assert library.test_last() == b"setkey"
        label.metadata = "{}"
    assert library.test_last() == b"{}"
    before = hook.counter("x")
    hook.count("x", 5)
    hook.count("x")
    assert hook.counter("x") == before + 6
    hook.give_up(1, "other inputs")
    assert library.test_last() == b"other inputs"
    assert hook.mode() is Mode.RESTORE
    hook.commit()


def test_a_label_ends_without_metadata_when_its_block_fails(hook: ProcessHook, library: ctypes.CDLL) -> None:
    with pytest.raises(RuntimeError), capi.labelled(hook, "set", "key"):
        raise RuntimeError
    assert library.test_last() == b"<null>"


def test_a_hook_that_refuses_a_phase_or_a_label_does_not_stop_the_program() -> None:
    hook = FakeHook(Mode.CAPTURE)
    hook.unavailable = {"scratch_begin": "no", "graph_begin": "no"}
    done = []
    with capi.scratch(hook, "a"), capi.labelled(hook, "a", "b"):
        done.append(1)
    assert done == [1]
    assert hook.events == []
