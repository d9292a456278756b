"""How files of an archive come into the caches: whole or not at all, and never in place of another."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from foundry.caches import kinds, note
from foundry.caches.kinds import Folder
from foundry.caches.outcome import Placed
from foundry.caches.place import Item, place
from foundry.caches.placing import Placing

KERNEL = {"KKK/k.cubin": b"cubin", "KKK/k.json": b"json", "KKK/k.ptx": b"ptx"}


def folder_of(root: Path, cache: str = "triton") -> dict[str, Folder]:
    kind = next(kind for kind in kinds.KINDS if kind.name == cache)
    return {cache: Folder(kind, str(root))}


def item(path: str, data: bytes, cache: str = "triton", mode: int = 0o644) -> Item:
    return Item(cache, path, mode, len(data), hashlib.sha256(data).digest(), lambda: data)


def items(files: dict[str, bytes], cache: str = "triton") -> list[Item]:
    return [item(path, data, cache) for path, data in files.items()]


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "some" / "cache"


def test_into_a_folder_that_is_not_there(root: Path) -> None:
    result = place(items(KERNEL), folder_of(root))
    assert (result.placed, result.there, result.kept, result.size, result.faults) == (3, 0, 0, 12, [])
    assert content(root) == KERNEL
    for path in (root.parent, root, root / "KKK"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "KKK" / "k.cubin").stat().st_mode) == 0o600


def test_what_may_be_executed_may_be_so_by_its_owner(root: Path) -> None:
    place([item("KKK/lib.so", b"so", mode=0o755)], folder_of(root))
    assert stat.S_IMODE((root / "KKK" / "lib.so").stat().st_mode) == 0o700


def test_again(root: Path) -> None:
    place(items(KERNEL), folder_of(root))
    before = (root / "KKK" / "k.cubin").stat()
    result = place(items(KERNEL), folder_of(root))
    assert (result.placed, result.there) == (0, 3)
    assert (root / "KKK" / "k.cubin").stat() == before


def test_what_is_missing_comes_to_what_is_there(root: Path) -> None:
    (root / "KKK").mkdir(parents=True)
    (root / "KKK" / "k.json").write_bytes(b"json")
    result = place(items(KERNEL), folder_of(root))
    assert (result.placed, result.there, result.kept) == (2, 1, 0)


def test_an_entry_with_another_content_is_left_alone(root: Path) -> None:
    (root / "KKK").mkdir(parents=True)
    (root / "KKK" / "k.json").write_bytes(b"JSON")
    result = place([*items(KERNEL), item("LLL/l.cubin", b"other entry")], folder_of(root))
    assert (result.placed, result.there, result.kept, result.faults) == (1, 0, 3, [])
    assert content(root) == {"KKK/k.json": b"JSON", "LLL/l.cubin": b"other entry"}


def test_an_unknown_cache_is_nothing(root: Path) -> None:
    assert place(items(KERNEL, "newer"), folder_of(root)).as_dict() == Placed().as_dict()


def test_names_that_are_never_collected_are_never_placed(root: Path) -> None:
    place(items({"KKK/lock": b"x", "tmp.1/a": b"x", "KKK/a.py": b"x", "KKK/__pycache__/a.pyc": b"x"}), folder_of(root))
    assert content(root) == {"KKK/a.py": b"x"}


def test_odd_names(root: Path) -> None:
    files = {
        "KKK/blank and ä": b"1",
        "KKK/line\nbreak": b"2",
        "-K/-dash": b"3",
        "KKK/" + "n" * 255: b"4",
        "a/" * 50 + "b": b"5",
    }
    result = place(items(files), folder_of(root))
    assert (content(root), result.faults) == (files, [])


def test_a_name_that_is_too_long_is_a_fault(root: Path) -> None:
    result = place(items({"KKK/" + "n" * 256: b"4"}), folder_of(root))
    assert result.faults
    assert content(root) == {}


class TestLinks:
    def test_a_folder_that_is_a_link(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        root.mkdir(parents=True)
        (root / "KKK").symlink_to(tmp_path / "elsewhere")
        result = place([*items(KERNEL), item("LLL/l", b"l")], folder_of(root))
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert result.faults == [f"triton: `{root}/KKK`: a link or a file is in the way"]
        assert (root / "LLL" / "l").read_bytes() == b"l"
        assert result.marks == {}

    @pytest.mark.parametrize("there", [True, False])
    def test_a_file_that_is_a_link(self, root: Path, tmp_path: Path, there: bool) -> None:
        target = tmp_path / "target"
        if there:
            target.write_bytes(b"cubin")
        (root / "KKK").mkdir(parents=True)
        (root / "KKK" / "k.cubin").symlink_to(target)
        result = place(items(KERNEL), folder_of(root))
        assert (result.placed, result.kept) == (0, 3)
        assert target.exists() == there
        assert (root / "KKK" / "k.cubin").is_symlink()

    def test_a_file_where_a_folder_should_be(self, root: Path) -> None:
        root.mkdir(parents=True)
        (root / "KKK").write_text("a file")
        assert "in the way" in place(items(KERNEL), folder_of(root)).faults[0]
        assert (root / "KKK").read_text() == "a file"

    def test_a_folder_where_a_file_should_be(self, root: Path) -> None:
        (root / "KKK" / "k.cubin").mkdir(parents=True)
        assert place(items(KERNEL), folder_of(root)).kept == 3

    def test_a_fifo_does_not_hold_it_up(self, root: Path) -> None:
        (root / "KKK").mkdir(parents=True)
        os.mkfifo(root / "KKK" / "k.cubin")
        assert place(items(KERNEL), folder_of(root)).kept == 3

    def test_a_link_that_comes_meanwhile(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()

        def swap() -> bytes:
            (root / "KKK").symlink_to(tmp_path / "elsewhere")
            return b"cubin"

        cubin = item("KKK/k.cubin", b"cubin")._replace(read=swap)
        result = place([cubin], folder_of(root))
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert "in the way" in result.faults[0]


class TestFaults:
    def test_no_room(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.statvfs

        def full(path: str) -> os.statvfs_result:
            found = list(real(path))
            found[4] = 1
            return os.statvfs_result(found)

        monkeypatch.setattr(os, "statvfs", full)
        result = place(items(KERNEL), folder_of(root))
        assert result.faults == [f"triton: `{root}`: No space left on device"]
        assert not root.exists()

    def test_the_disk_is_full_in_the_middle(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real, calls = os.link, []

        def link(*arguments: str, **options: int) -> None:
            calls.append(arguments)
            if len(calls) == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(*arguments, **options)

        monkeypatch.setattr(os, "link", link)
        both = {**folder_of(root), **folder_of(root.parent / "other", "tvm_ffi")}
        result = place([*items(KERNEL), item("op/op.so", b"so", "tvm_ffi")], both)
        assert result.faults == [f"triton: `{root}`: No space left on device"]
        assert content(root) == {"KKK/k.cubin": b"cubin"}
        assert not (root.parent / "other").exists()
        assert result.marks == {}

    def test_a_folder_that_cannot_be_written(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root.mkdir(parents=True)
        monkeypatch.setattr(os, "access", lambda *_: False)
        read: list[bytes] = []
        unread = [one._replace(read=lambda: read.append(b"") or b"") for one in items(KERNEL)]
        assert place(unread, folder_of(root)).faults == [f"triton: `{root}`: Permission denied"]
        assert read == []

    def test_a_folder_that_cannot_be_written_and_need_not_be(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place(items(KERNEL), folder_of(root))
        monkeypatch.setattr(os, "access", lambda *_: False)
        result = place(items(KERNEL), folder_of(root))
        assert (result.there, result.faults) == (3, [])

    def test_one_cache_does_not_keep_the_others_out(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        both = {**folder_of(tmp_path / "file" / "x"), **folder_of(root, "tvm_ffi")}
        result = place([*items(KERNEL), item("op/op.so", b"so", "tvm_ffi")], both)
        assert [fault.split(":")[0] for fault in result.faults] == ["triton"]
        assert content(root) == {"op/op.so": b"so"}

    @pytest.mark.parametrize("below", ["", "KKK"])
    def test_another_users_folder(self, root: Path, below: str, monkeypatch: pytest.MonkeyPatch) -> None:
        (root / "KKK").mkdir(parents=True)
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        if root.stat().st_uid == 0:
            os.chown(root / below, 4243, -1)
        result = place(items(KERNEL), folder_of(root))
        assert "belongs to another user" in result.faults[0]
        assert content(root) == {}

    def test_a_folder_that_is_no_cache(self, root: Path) -> None:
        bad = {"triton": Folder(kinds.KINDS[0], str(root), fault="it holds more than a cache")}
        assert place(items(KERNEL), bad).faults == ["triton: it holds more than a cache"]


class TestBesideOthers:
    def test_many_starts_at_once(self, root: Path) -> None:
        files = {f"KEY{number}/{name}": os.urandom(2000) for number in range(20) for name in ("a", "b", "__grp__c")}
        wrong: list[object] = []
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                for path, data in files.items():
                    try:
                        seen = (root / path).read_bytes()
                    except FileNotFoundError:
                        continue
                    if seen != data:
                        wrong.append(path)

        results: list[Placed] = []
        watcher = threading.Thread(target=watch)
        starts = [
            threading.Thread(target=lambda: results.append(place(items(files), folder_of(root)))) for _ in range(6)
        ]
        watcher.start()
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        done.set()
        watcher.join()
        assert wrong == []
        assert content(root) == files
        assert [result.faults for result in results] == [[]] * 6
        assert sum(result.placed for result in results) == len(files)
        assert all(result.placed + result.there == len(files) for result in results)

    def test_a_server_writes_the_same_entry_meanwhile(self, root: Path) -> None:
        """It replaces all of it, as Triton does: whoever is later, what stands there in the end is one of the two."""
        ours = {f"KKK/{name}": b"ours" for name in ("a", "b", "c")} | {"KKK/__grp__k": b"ours"}

        def serve() -> bytes:
            (root / "KKK").mkdir(parents=True, exist_ok=True)
            for name in ("a", "b", "c", "__grp__k"):
                (root / "x").write_bytes(b"theirs")
                (root / "x").replace(root / "KKK" / name)
            return b"ours"

        for at in range(4):
            for path in root.glob("KKK/*"):
                path.unlink()
            mixed = items(ours)
            mixed[at] = mixed[at]._replace(read=serve)
            place(mixed, folder_of(root))
            assert set(content(root).values()) == {b"theirs"}

    def test_a_head_is_placed_last(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        order: list[str] = []
        real = Placing._link

        def link(self: Placing, below: object, wanted: Item, data: bytes) -> bool:
            order.append(wanted.path)
            return real(self, below, wanted, data)  # type: ignore[arg-type]

        monkeypatch.setattr(Placing, "_link", link)
        place(
            items({"KKK/.ninja_log": b"1", "KKK/__grp__k.json": b"2", "KKK/z": b"3", "KKK/index": b"4"}),
            folder_of(root),
        )
        assert order[0] == "KKK/z"

    def test_a_folder_that_somebody_removes_as_empty(self, root: Path) -> None:
        left = [2]

        real = Placing._clean

        def clean(self: Placing, path: str, folder: int) -> None:
            real(self, path, folder)
            if left[0]:
                left[0] -= 1
                (root / "KKK").rmdir()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Placing, "_clean", clean)
            result = place(items({"KKK/k.cubin": b"cubin"}), folder_of(root))
        assert (result.faults, content(root)) == ([], {"KKK/k.cubin": b"cubin"})

    def test_what_a_killed_start_left_is_removed_after_a_while(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (root / "KKK").mkdir(parents=True)
        (root / "KKK" / ".foundry-1.abc").write_text("half")
        place(items({"KKK/a": b"a"}), folder_of(root))
        assert (root / "KKK" / ".foundry-1.abc").exists()
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 7200)
        place(items({"KKK/b": b"b"}), folder_of(root))
        assert content(root) == {"KKK/a": b"a", "KKK/b": b"b"}

    def test_nothing_is_left_behind(self, root: Path) -> None:
        place(items(KERNEL), folder_of(root))
        assert not [path for path in root.rglob("*") if path.name.startswith(".foundry")]


class TestKinds:
    def test_triton_files_are_named_where_they_are(self, root: Path) -> None:
        old = json.dumps({"child_paths": {"k.cubin": "/old/cache/KKK/k.cubin"}}).encode()
        group = item("KKK/__grp__k.json", old)
        assert place([group], folder_of(root)).placed == 1
        named = json.loads((root / "KKK" / "__grp__k.json").read_text())
        assert named == {"child_paths": {"k.cubin": f"{root}/KKK/k.cubin"}}
        assert place([group], folder_of(root)).there == 1

    @pytest.mark.parametrize(
        "data",
        [b"", b"[]", b"{", b'{"child_paths": ["k"]}', b'{"child_paths": {"k": "relative"}}', b"[" * 100_000,
         b'{"child_paths": {"k": "/etc/passwd"}}', b'{"child_paths": {"k": 1}}',
         b'{"child_paths": {}, "more": 1}', b"\xff"],
    )  # fmt: skip
    def test_other_group_files_stay_as_they_are(self, root: Path, data: bytes) -> None:
        place([item("KKK/__grp__k.json", data)], folder_of(root))
        assert content(root) == {"KKK/__grp__k.json": data}

    def test_times_come_back(self, root: Path) -> None:
        times = item(
            "tvm_ffi.json", json.dumps({"op/a": 1234567890123456789, "op/b": "x", "op/c": -1}).encode(), "times"
        )
        place([times, *items({"op/a": b"a", "op/b": b"b", "op/c": b"c"}, "tvm_ffi")], folder_of(root, "tvm_ffi"))
        assert (root / "op" / "a").stat().st_mtime_ns == 1234567890123456789
        assert (root / "op" / "b").stat().st_mtime > time.time() - 100
        assert (root / "op" / "c").stat().st_mtime > time.time() - 100

    @pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff"])
    def test_times_that_are_none(self, root: Path, data: bytes) -> None:
        result = place([item("tvm_ffi.json", data, "times"), item("op/a", b"a", "tvm_ffi")], folder_of(root, "tvm_ffi"))
        assert (result.placed, result.faults) == (1, [])

    def test_cudas_cache_comes_whole_or_not_at_all(self, root: Path) -> None:
        files = {"index": b"ours", "3/a/one": b"1"}
        assert place(items(files, "cuda"), folder_of(root, "cuda")).placed == 2
        (root / "3" / "a" / "one").unlink()
        (root / "index").write_bytes(b"changed by another program")
        result = place(items(files, "cuda"), folder_of(root, "cuda"))
        assert (result.placed, result.kept) == (0, 2)
        assert content(root) == {"index": b"changed by another program"}


class TestNote:
    def noted(self, beside: Path, root: Path, files: list[Item]) -> Placed:
        beside.mkdir(exist_ok=True)
        folders = folder_of(root)
        seen = note.read(beside, folders)
        result = place(files, folders, seen)
        note.write(beside, result.marks, folders, complete=not result.faults)
        return result

    def test_what_is_noted_is_known(self, root: Path, tmp_path: Path) -> None:
        self.noted(tmp_path / "images", root, items(KERNEL))
        seen = note.read(tmp_path / "images", folder_of(root))
        assert (seen.complete, seen.files) == (True, 3)

    @pytest.mark.parametrize("how", ["gone", "changed", "touched", "link"])
    def test_what_is_not_as_it_was_is_looked_at(self, root: Path, tmp_path: Path, how: str) -> None:
        files = [*items(KERNEL), item("LLL/l", b"l")]
        self.noted(tmp_path / "images", root, files)
        path = root / "KKK" / "k.json"
        if how == "gone":
            path.unlink()
        elif how == "changed":
            path.write_bytes(b"J")
        elif how == "touched":
            os.utime(path, (1, 1))
        else:
            path.rename(tmp_path / "away")
            path.symlink_to(tmp_path / "away")
        seen = note.read(tmp_path / "images", folder_of(root))
        assert not seen.complete
        assert seen.changed == {"triton": {"KKK/k.json"}}
        unread = partial(pytest.fail, "read")
        result = self.noted(
            tmp_path / "images", root, [one._replace(read=unread) if one.path == "LLL/l" else one for one in files]
        )
        assert (result.placed, result.kept) == {"gone": (1, 0), "touched": (0, 0)}.get(how, (0, 3))
        assert result.placed + result.there + result.kept == 4
        assert note.read(tmp_path / "images", folder_of(root)).complete

    def test_what_was_left_to_others_is_not_looked_at_again(self, root: Path, tmp_path: Path) -> None:
        (root / "KKK").mkdir(parents=True)
        (root / "KKK" / "k.json").write_bytes(b"JSON")
        assert self.noted(tmp_path / "images", root, items(KERNEL)).kept == 3
        assert note.read(tmp_path / "images", folder_of(root)).complete

    def test_another_folder_is_another_cache(self, root: Path, tmp_path: Path) -> None:
        self.noted(tmp_path / "images", root, items(KERNEL))
        assert not note.read(tmp_path / "images", folder_of(tmp_path / "other")).complete
        assert not note.read(tmp_path / "images", {}).complete

    def test_cudas_index_may_change(self, root: Path, tmp_path: Path) -> None:
        folders = folder_of(root, "cuda")
        result = place(items({"index": b"ours", "3/a/one": b"1"}, "cuda"), folders)
        note.write(tmp_path, result.marks, folders, complete=True)
        (root / "index").write_bytes(b"changed by another program")
        (root / "3" / "a" / "one").unlink()
        assert note.read(tmp_path, folders).complete

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '{"format": 1}',
            '{"format": 2, "caches": 3}',
            '{"format": 2, "caches": {"triton": 1}}',
        ],
    )
    def test_a_note_that_is_none(self, root: Path, tmp_path: Path, text: str) -> None:
        (tmp_path / note.NAME).write_text(text)
        assert note.read(tmp_path, folder_of(root)) == note.Noted()

    def test_a_note_that_cannot_be_written(self, root: Path, tmp_path: Path) -> None:
        note.write(tmp_path / "nowhere", {}, folder_of(root), complete=True)
        assert not note.read(tmp_path / "nowhere", folder_of(root)).complete
