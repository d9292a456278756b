"""What a capture takes of the caches."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foundry.caches import below, collect, kinds, snapshot, watching
from foundry.caches.collect import Collected, Collector, together


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    names = ("TRITON_CACHE_DIR", "TVM_FFI_CACHE_DIR", "CUDA_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR")
    return {"HOME": str(tmp_path / "home"), **{name: str(tmp_path / name) for name in names}}


@pytest.fixture
def triton(environment: dict[str, str]) -> Path:
    root = Path(environment["TRITON_CACHE_DIR"])
    for kernel in ("ONE", "TWO"):
        (root / kernel).mkdir(parents=True)
        for name in ("k.cubin", "k.json", "k.source", "__grp__k.json"):
            (root / kernel / name).write_text(f"{kernel} {name}")
    return root


@contextmanager
def collecting(environment: dict[str, str]) -> Iterator[Collector]:
    collector = Collector(environment, environment["HOME"])
    collector.listen()
    try:
        yield collector
    finally:
        collector.close()


def names(found: Collected) -> set[str]:
    return {f"{cache}/{path}" for cache, path, _, _ in found.files}


def test_nothing_of_a_cache_that_was_not_touched(environment: dict[str, str], triton: Path) -> None:
    with collecting(environment) as collector:
        assert collector.collect() == Collected()


def test_a_file_that_is_opened_brings_its_entry(environment: dict[str, str], triton: Path) -> None:
    with collecting(environment) as collector:
        (triton / "TWO" / "k.json").read_text()
        found = collector.collect()
    expected = {f"triton/TWO/{name}" for name in ("k.cubin", "k.json", "k.source", "__grp__k.json")}
    assert names(found) == expected
    assert found.files[0][1] == "TWO/__grp__k.json"  # read first: what it names was whole before it
    assert found.size == sum(len(file[3]) for file in found.files)


def test_looking_is_not_opening(environment: dict[str, str], triton: Path) -> None:
    with collecting(environment) as collector:
        assert list(triton.iterdir())
        assert (triton / "ONE" / "k.json").exists()
        assert collector.collect().files == []


def test_what_is_read_here_is_not_what_the_command_opened(environment: dict[str, str], triton: Path) -> None:
    with collecting(environment) as collector:
        (triton / "ONE" / "k.json").read_text()
        assert names(collector.collect()) == names(collector.collect())


@pytest.mark.parametrize("how", ["made", "replaced", "changed"])
def test_a_file_that_is_written(environment: dict[str, str], triton: Path, how: str) -> None:
    path = triton / "ONE" / ("new.cubin" if how == "made" else "k.cubin")
    with collecting(environment) as collector:
        if how == "replaced":
            (triton / "x").write_text("other")
            (triton / "x").rename(path)
        else:
            path.write_text("other")
        assert f"triton/ONE/{path.name}" in names(collector.collect())


def test_a_cache_that_was_not_there(environment: dict[str, str], tmp_path: Path) -> None:
    with collecting(environment) as collector:
        folder = tmp_path / "TRITON_CACHE_DIR" / "NEW"
        folder.mkdir(parents=True)
        (folder / "k.cubin").write_text("new")
        assert names(collector.collect()) == {"triton/NEW/k.cubin"}


def test_a_compiled_source_that_is_opened_brings_its_source(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "TORCHINDUCTOR_CACHE_DIR" / "ab"
    (folder / "__pycache__").mkdir(parents=True)
    for name in ("cab.py", "other.py", "__pycache__/cab.cpython-312.pyc"):
        (folder / name).write_text(name)
    with collecting(environment) as collector:
        (folder / "__pycache__" / "cab.cpython-312.pyc").read_text()
        assert names(collector.collect()) == {"inductor/ab/cab.py"}


def test_cudas_cache_is_whole(environment: dict[str, str], tmp_path: Path) -> None:
    root = tmp_path / "CUDA_CACHE_PATH"
    (root / "3" / "a").mkdir(parents=True)
    for name in ("index", "3/a/one", "3/a/two"):
        (root / name).write_text(name)
    with collecting(environment) as collector:
        (root / "index").read_text()
        assert names(collector.collect()) == {"cuda/index", "cuda/3/a/one", "cuda/3/a/two"}


def test_a_whole_cache_that_is_mostly_of_others(
    environment: dict[str, str], tmp_path: Path, triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "LARGEST_WHOLE", 20)
    root = tmp_path / "CUDA_CACHE_PATH"
    root.mkdir()
    for name in ("index", "one", "two"):
        (root / name).write_text("ten bytes.")
    with collecting(environment) as collector:
        (root / "index").read_text()
        (triton / "ONE" / "k.json").read_text()
        found = collector.collect()
    assert {name.split("/")[0] for name in names(found)} == {"triton"}, "it holds for caches that are kept whole"
    assert [(finding.where, finding.text) for finding in found.findings] == [
        ("cuda", "the cache is not kept: past the limit of 20 bytes for one of its kind")
    ]


def test_times_are_kept_where_ninja_builds(environment: dict[str, str], tmp_path: Path) -> None:
    with collecting(environment) as collector:
        folder = tmp_path / "TVM_FFI_CACHE_DIR" / "op"
        folder.mkdir(parents=True)
        (folder / "op.so").write_text("so")
        os.utime(folder / "op.so", ns=(5, 1234567890123456789))
        found = collector.collect()
    assert ("times", "tvm_ffi.json", 0o600, b'{"op/op.so": 1234567890123456789}') in found.files


def test_no_link_is_followed(environment: dict[str, str], triton: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    with collecting(environment) as collector:
        (triton / "ONE" / "key").symlink_to(secret / "key")
        (triton / "THREE").symlink_to(secret)
        (triton / "ONE" / "new").write_text("new")
        os.mkfifo(triton / "ONE" / "fifo")
        found = collector.collect()
    assert "triton/ONE/new" in names(found)
    assert not names(found) & {"triton/ONE/key", "triton/THREE/key", "triton/ONE/fifo"}


def test_a_folder_that_becomes_a_link_meanwhile(triton: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "k.json").write_text("secret")
    with below.Below(str(triton)) as opened:
        (triton / "ONE").rename(tmp_path / "away")
        (triton / "ONE").symlink_to(tmp_path / "secret")
        with pytest.raises(OSError, match="directory"):
            opened.read("ONE/k.json", 100)


def test_odd_names(environment: dict[str, str], triton: Path) -> None:
    with collecting(environment) as collector:
        for name in (b"blank and \xc3\xa4", b"line\nbreak", b"back\\slash", b"no utf-8 \xff", b"-dash"):
            Path(os.fsdecode(os.fsencode(triton / "ONE") + b"/" + name)).write_text("x")
        found = collector.collect()
    assert {"triton/ONE/blank and ä", "triton/ONE/line\nbreak", "triton/ONE/-dash"} < names(found)
    assert len(found.files) == 7
    assert [finding.text for finding in found.findings] == ["2 files have names that an archive cannot hold"]


def test_limits(environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "LARGEST_TOTAL", 70)
    with collecting(environment) as collector:
        for kernel in ("ONE", "TWO"):
            (triton / kernel / "k.json").read_text()
        found = collector.collect()
    assert {name.split("/")[1] for name in names(found)} == {"ONE"}
    assert [(finding.code, finding.where) for finding in found.findings] == [("cache-left-out", "triton")]
    assert "`TWO`: past the limit of 70 bytes" in found.findings[0].text


def test_a_file_that_is_too_large(environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "LARGEST_FILE", 14)
    with collecting(environment) as collector:
        (triton / "ONE" / "k.json").read_text()
        found = collector.collect()
    assert found.files == []
    assert "larger than 14 bytes" in found.findings[0].text


def test_a_cache_of_too_many_files(environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_FILES", 3)
    with collecting(environment) as collector:
        found = collector.collect()
    assert found.files == []
    assert "more than 3 files" in found.findings[0].text


def test_looking_that_takes_too_long(
    environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "LONGEST_LOOK", -1.0)
    with collecting(environment) as collector:
        (triton / "ONE" / "new.cubin").write_text("new")
        found = collector.collect()
    assert found.files == []
    assert f"looking at `{triton}` takes too long" in found.findings[0].text


@pytest.fixture(params=["no watch at all", "a share of the watches only"])
def blind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no watch at all":
        monkeypatch.setattr(watching, "_ONLY_FOLDERS", 0x80000000 | 0x40000000 | 0xFFFFF000)  # no such flags
        monkeypatch.setattr(watching, "_OPEN", 0)
    else:
        monkeypatch.setattr(watching, "_most", lambda: 1)  # the top folder


def test_where_the_kernel_does_not_watch_all_of_a_cache_that_was_used_is_taken(
    environment: dict[str, str], triton: Path, blind: None
) -> None:
    with collecting(environment) as collector:
        (triton / "NEW").mkdir()
        (triton / "NEW" / "k.cubin").write_text("new")
        assert len(collector.collect().files) == 9


def test_where_the_kernel_does_not_watch_nothing_of_a_cache_that_may_not_have_been_used_is_taken(
    environment: dict[str, str], triton: Path, tmp_path: Path, blind: None
) -> None:
    with collecting(environment) as collector:
        other = tmp_path / "TORCHINDUCTOR_CACHE_DIR" / "ab"
        other.mkdir(parents=True)
        (other / "cab.py").write_text("new")
        found = collector.collect()
    assert names(found) == {"inductor/ab/cab.py"}
    assert [(finding.where, finding.text) for finding in found.findings] == [
        ("triton", "the cache is not kept: nobody tells what is opened there, and nothing was made")
    ]


def test_names_that_are_too_long_together(
    environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "LONGEST_NAMES", 40)
    with collecting(environment) as collector:
        (triton / "ONE" / "k.json").read_text()
        assert collector.collect().files == []


def test_more_opening_than_the_kernel_keeps(
    environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching.Watch, "_listen", lambda self: None)
    with collecting(environment) as collector:
        (triton / "ONE" / "k.json").read_text()
        collector._watch.opened()
        monkeypatch.setattr(watching, "_OVERFLOW", watching._OPEN)  # each event is taken for one
        (triton / "ONE" / "k.cubin").read_text()
        assert len(collector.collect().files) == 8


def test_what_a_later_run_needed_goes_with_what_an_archive_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = [
        ("triton", "ONE/k", 0o600, b"old"),
        ("triton", "TWO/k", 0o600, b"two"),
        (kinds.TIMES, "tvm_ffi.json", 0o600, b'{"a": 1, "b": 2}'),
    ]
    later = [("triton", "ONE/k", 0o600, b"new"), (kinds.TIMES, "tvm_ffi.json", 0o600, b'{"b": 3}')]
    found = Collected(files=later)
    assert sorted(together(earlier, found)) == [
        (kinds.TIMES, "tvm_ffi.json", 0o600, b'{"a": 1, "b": 3}'),
        ("triton", "ONE/k", 0o600, b"new"),
        ("triton", "TWO/k", 0o600, b"two"),
    ]
    assert found.findings == []
    monkeypatch.setattr(collect, "MOST_FILES", 2)
    assert together(earlier, found) == earlier
    assert "is not added: past the limit of 2 files" in found.findings[0].text


def test_many_events(environment: dict[str, str], triton: Path) -> None:
    """More than the kernel's queue holds, in all: it is emptied meanwhile."""
    with collecting(environment) as collector:
        for _ in range(12_000):
            for name in ("k.json", "k.cubin"):
                os.close(os.open(triton / "ONE" / name, os.O_RDONLY))
        assert {name.split("/")[1] for name in names(collector.collect())} == {"ONE"}


def test_another_users_folder(environment: dict[str, str], triton: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    if triton.stat().st_uid == 0:
        os.chown(triton, 4243, -1)
    with collecting(environment) as collector:
        (triton / "ONE" / "k.json").read_text()
        found = collector.collect()
    assert found.files == []
    assert "belongs to another user" in found.findings[0].text


def test_a_file_that_is_written_without_end(environment: dict[str, str], triton: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        with (triton / "ONE" / "k.cubin").open("r+b") as file:
            while not stop.is_set():
                file.seek(0)
                file.write(os.urandom(1 << 16))
                file.flush()

    with collecting(environment) as collector:
        (triton / "TWO" / "k.json").read_text()
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.05)
        found = collector.collect()
        stop.set()
        thread.join()
    assert {name.split("/")[1] for name in names(found)} == {"TWO"}
    assert "`ONE`: `ONE/k.cubin` is being written" in found.findings[0].text


def test_closing_stops_the_thread(environment: dict[str, str], triton: Path) -> None:
    before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    with collecting(environment):
        assert threading.active_count() == before[0] + 1
    assert (threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))) == before


def test_every_cache_name_can_be_stored() -> None:
    from foundry.model.file_checks import NAME

    assert all(NAME.fullmatch(kind.name) for kind in kinds.KINDS)
