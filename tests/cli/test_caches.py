"""JIT caches from a capture to a restore, each in its own layout, with a program that uses them as their owners do."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from helpers import caching_program
from helpers.commandline import CommandLine, program, read_until, wait_until

PROGRAM = Path(caching_program.__file__)
WARM = "".join(f"{name} warm\n" for name in caching_program.CACHES)
COLD = WARM.replace("warm", "cold")
MOVED = {
    "TRITON_CACHE_DIR": "moved/triton",
    "TORCHINDUCTOR_CACHE_DIR": "moved/inductor",
    "VLLM_CACHE_ROOT": "moved/vllm",
    "SGLANG_CACHE_DIR": "moved/sglang",
    "FLASHINFER_WORKSPACE_BASE": "moved/workspace",
    "TVM_FFI_CACHE_DIR": "moved/tvm",
    "CUDA_CACHE_PATH": "moved/cuda",
}


def command(*arguments: object) -> list[str]:
    return [sys.executable, str(PROGRAM), *map(str, arguments)]


def clear(foundry_command: CommandLine) -> None:
    """Empty every cache, but leave foundry's own store."""
    for folder in ("home/.triton", "home/.cache", "home/.nv", "cache/vllm", "work/moved"):
        shutil.rmtree(foundry_command.folder / folder, ignore_errors=True)
    for folder in (foundry_command.folder / "tmp").glob("torchinductor_*"):
        shutil.rmtree(folder)


def caches(result: object) -> dict[str, object]:
    found = json.loads(result.stderr.splitlines()[-1])["caches"]  # type: ignore[attr-defined]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def archive(foundry_command: CommandLine) -> Path:
    result = foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *command())
    assert (result.returncode, result.stdout, result.stderr) == (0, COLD, "")
    return foundry_command.work / "a.fdry"


KERNELS = {"K6QM4ZPDTRNXQ2ZL7VQ5UXQ5": "add_kernel", "AB34CD": "fused_0", "QQ11": "rms_norm"}
"""In Triton's own cache, and in inductor's and vLLM's: it is to have them all."""


def listed(foundry_command: CommandLine, archive: Path) -> dict[tuple[str, str], dict[str, object]]:
    result = foundry_command.run("inspect", "--files", "--json", archive)
    return {(file["cache"], file["path"]): file for file in json.loads(result.stdout)["files"]}


class TestCapture:
    def test_what_was_made_is_kept_and_nothing_else(self, foundry_command: CommandLine, archive: Path) -> None:
        files = listed(foundry_command, archive)
        names = {cache for cache, _ in files}
        assert names == {*caching_program.CACHES, "times"}
        assert {path for cache, path in files if cache == "triton"} == {
            f"{kernel}/{file}"
            for kernel, name in KERNELS.items()
            for file in (f"__grp__{name}.json", *(f"{name}.{ending}" for ending in ("cubin", "json", "ptx", "source")))
        }
        assert {path for cache, path in files if cache == "times"} == {"flashinfer.json", "tvm_ffi.json"}
        paths = [path for _, path in files]
        assert not [path for path in paths if path.endswith(("lock", ".log")) or "assets" in path or "tmp" in path]

    def test_a_warm_start_is_captured_as_a_cold_one(self, foundry_command: CommandLine, archive: Path) -> None:
        result = foundry_command.run("capture", "-q", "-o", "b.fdry", "--", *command())
        assert (result.returncode, result.stdout) == (0, WARM)
        warm = {key: file["sha256"] for key, file in listed(foundry_command, foundry_command.work / "b.fdry").items()}
        cold = {key: file["sha256"] for key, file in listed(foundry_command, archive).items()}
        unopened = ("inductor", "c7/cunused.py")
        index = ("cuda", "index")  # each program changes it
        assert cold.pop(unopened)
        assert cold.pop(index)
        assert warm.pop(index)
        assert warm.keys() == cold.keys()
        times = ("times", "flashinfer.json"), ("times", "tvm_ffi.json")
        assert {key for key in cold if cold[key] != warm[key]} <= set(times)

    def test_what_others_left_in_the_caches_is_not_theirs(self, foundry_command: CommandLine) -> None:
        other = foundry_command.folder / "home" / ".triton" / "cache" / "OTHER" / "secret.cubin"
        other.parent.mkdir(parents=True)
        other.write_bytes(b"of another program")
        assert foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *command()).returncode == 0
        assert ("triton", "OTHER/secret.cubin") not in listed(foundry_command, foundry_command.work / "a.fdry")

    def test_it_says_how_much(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("capture", "--json", "-o", "a.fdry", "--", *command())
        report = json.loads(result.stderr.splitlines()[-1])
        assert report["cache_files"] == len(listed(foundry_command, foundry_command.work / "a.fdry"))
        assert report["cache_bytes"] > 500

    def test_what_is_built_for_the_first_requests_is_kept_too(self, foundry_command: CommandLine) -> None:
        server = foundry_command.start("capture", "-o", "a.fdry", "--", *command("--commit", "--serve"))
        read_until(server.stderr, "wrote")
        before = listed(foundry_command, foundry_command.work / "a.fdry")
        caching_program.triton_kernel(foundry_command.folder / "home" / ".triton" / "cache" / "LATE", "first_request")
        server.terminate()
        _, errors = server.communicate(timeout=30)
        after = listed(foundry_command, foundry_command.work / "a.fdry")
        assert {path for _, path in after.keys() - before.keys()} == {
            f"LATE/{file}"
            for file in (
                "__grp__first_request.json",
                *(f"first_request.{e}" for e in ("cubin", "json", "ptx", "source")),
            )
        }
        assert errors.count("wrote") == 1

    def test_nothing_is_written_again_where_nothing_was_built(self, foundry_command: CommandLine) -> None:
        server = foundry_command.start("capture", "-o", "a.fdry", "--", *command("--commit", "--serve"))
        read_until(server.stderr, "wrote")
        server.terminate()
        assert "wrote" not in server.communicate(timeout=30)[1]

    def test_inspect_shows_the_size_of_each(self, foundry_command: CommandLine, archive: Path) -> None:
        lines = foundry_command.run("inspect", "--files", archive).stdout.splitlines()
        sizes: dict[str, int] = {}
        for (cache, _), file in listed(foundry_command, archive).items():
            sizes[cache] = sizes.get(cache, 0) + int(str(file["size"]))
        assert lines[0] == f"{len(listed(foundry_command, archive))} files, {sum(sizes.values()) / 1000:.1f} kB"
        assert lines[2].split() == ["cache", "files", "size"]
        assert [line.split()[0] for line in lines[3:11]] == sorted(sizes)
        assert [line.split()[2] for line in lines[3:11]] == [
            f"{size / 1000:.1f}" if size >= 1000 else str(size) for _, size in sorted(sizes.items())
        ]

    def test_verify_and_diff_know_them(self, foundry_command: CommandLine, archive: Path) -> None:
        assert foundry_command.run("verify", archive).returncode == 0
        clear(foundry_command)
        assert foundry_command.run("capture", "-q", "--no-caches", "-o", "b.fdry", "--", *command()).returncode == 0
        result = foundry_command.run("diff", archive, "b.fdry")
        assert result.returncode == 0  # what was compiled before is no difference of what is captured
        assert f"capture: cache files\n      A  {len(listed(foundry_command, archive))} not in B" in result.stdout

    def test_not_if_that_is_not_wanted(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("capture", "--no-caches", "-o", "a.fdry", "--", *command())
        assert "cache file" not in result.stderr
        assert listed(foundry_command, foundry_command.work / "a.fdry") == {}

    def test_of_caches_that_are_there_and_that_nobody_uses_nothing(self, foundry_command: CommandLine) -> None:
        big = foundry_command.folder / "home" / ".triton" / "cache"
        for number in range(300):
            (big / f"KERNEL{number}").mkdir(parents=True)
            (big / f"KERNEL{number}" / "k.cubin").write_bytes(bytes(1000))
        result = foundry_command.run("capture", "-o", "a.fdry", "--", *program())
        assert result.returncode == 0
        assert "cache file" not in result.stderr
        assert listed(foundry_command, foundry_command.work / "a.fdry") == {}
        foundry_command.run("capture", "-q", "--no-caches", "-o", "b.fdry", "--", *program())
        sizes = [(foundry_command.work / name).stat().st_size for name in ("a.fdry", "b.fdry")]
        assert sizes[0] == sizes[1]

    def test_asked_for_in_so_many_words(self, foundry_command: CommandLine) -> None:
        foundry_command.run("capture", "--caches", "-q", "-o", "a.fdry", "--", *command())
        clear(foundry_command)
        result = foundry_command.run("restore", "--caches", "a.fdry", "--", *command())
        assert (result.returncode, result.stdout) == (0, WARM)

    def test_while_the_command_still_runs(self, foundry_command: CommandLine) -> None:
        server = foundry_command.start("capture", "-o", "a.fdry", "--", *command("--commit", "--serve"))
        read_until(server.stdout, "serving")
        wait_until((foundry_command.work / "a.fdry").exists)
        assert ("cuda", "index") in listed(foundry_command, foundry_command.work / "a.fdry")
        server.terminate()
        server.communicate(timeout=30)

    def test_together_with_a_proof(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("capture", "--prove", "-q", "-o", "a.fdry", "--", *command())
        assert "Traceback" not in result.stderr
        assert len(listed(foundry_command, foundry_command.work / "a.fdry")) > 20


class TestRestore:
    def test_every_cache_is_warm_again(self, foundry_command: CommandLine, archive: Path) -> None:
        clear(foundry_command)
        result = foundry_command.run("restore", archive, "--", *command())
        assert (result.returncode, result.stdout, result.stderr) == (0, WARM, "")
        for folder in ("home", "cache/vllm"):
            for path in (foundry_command.folder / folder).rglob("*"):
                if "assets" not in str(path) and path.suffix not in (".log", ".lock") and path.name != "tmp":
                    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.name == "assets", path

    def test_a_second_start_unpacks_nothing(self, foundry_command: CommandLine, archive: Path) -> None:
        clear(foundry_command)
        assert (
            caches(foundry_command.run("restore", "--json", archive, "--", *command()))["placed"]
            == len(listed(foundry_command, archive)) - 2
        )
        foundry_command.run("restore", "--json", "--on-mismatch", "fail", archive, "--", *command())
        with archive.open("r+b") as file:  # the blobs lie in its middle; who reads one would find this
            file.seek(archive.stat().st_size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0xFF]))
        again = foundry_command.run("restore", "--json", archive, "--", *command())
        assert again.stdout == WARM
        assert (caches(again)["placed"], caches(again)["faults"]) == (0, [])

    def test_it_is_noted_when_the_images_that_are_made_behind_it_are_there(
        self, foundry_command: CommandLine, archive: Path
    ) -> None:
        words = ("--allow", "mismatch-arguments", archive, "--", *command("--serve"))
        server = foundry_command.start("restore", *words)
        read_until(server.stdout, "serving")
        wait_until(lambda: list(foundry_command.store.glob("images/*/caches")))
        (noted,) = foundry_command.store.glob("images/*/caches")
        assert json.loads(noted.read_text())["complete"] is True
        server.terminate()
        server.communicate(timeout=30)
        again = foundry_command.run("restore", "--json", archive, "--", *command())
        assert (caches(again)["placed"], caches(again)["there"] > 20) == (0, True)

    def test_in_folders_that_variables_name(self, foundry_command: CommandLine, archive: Path) -> None:
        moved = {name: str(foundry_command.work / folder) for name, folder in MOVED.items()}
        result = foundry_command.run(
            "restore", "--allow", "mismatch-variable", archive, "--", *command(), environment=moved
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, WARM, "")

    def test_what_was_cleared_away_comes_back(self, foundry_command: CommandLine, archive: Path) -> None:
        foundry_command.run("restore", archive, "--", *command())
        shutil.rmtree(foundry_command.folder / "home" / ".triton")
        result = foundry_command.run("restore", "--json", archive, "--", *command())
        assert (result.stdout, caches(result)["placed"]) == (WARM, 5 * len(KERNELS))

    def test_not_if_that_is_not_wanted(self, foundry_command: CommandLine, archive: Path) -> None:
        clear(foundry_command)
        result = foundry_command.run("restore", "--json", "--no-caches", archive, "--", *command())
        assert result.stdout == COLD
        assert json.loads(result.stderr.splitlines()[-1])["caches"] is None

    def test_an_archive_without_any(self, foundry_command: CommandLine) -> None:
        assert foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *program()).returncode == 0
        result = foundry_command.run("restore", "--json", "a.fdry", "--", *program())
        assert json.loads(result.stderr.splitlines()[-1])["caches"] is None

    def test_of_an_archive_without_graphs(self, foundry_command: CommandLine) -> None:
        assert foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *command("--graphs", 0)).returncode == 0
        clear(foundry_command)
        result = foundry_command.run("restore", "a.fdry", "--", *command("--graphs", 0))
        assert result.stdout == WARM
        assert "starting without restore" in result.stderr

    def test_a_folder_that_cannot_be_written_is_a_warning(self, foundry_command: CommandLine, archive: Path) -> None:
        clear(foundry_command)
        where = foundry_command.folder / "file"
        where.write_text("no folder")
        moved = {"TRITON_CACHE_DIR": str(where / "triton")}
        result = foundry_command.run(
            *("restore", "--allow", "mismatch-arguments", archive, "--"),
            *program("--say", "runs"),
            environment=moved,
        )
        assert (result.returncode, result.stdout) == (0, "runs\n")
        assert "warning: a JIT cache is not in place: triton: " in result.stderr

    def test_a_damaged_blob_is_a_warning(self, foundry_command: CommandLine, archive: Path) -> None:
        assert foundry_command.run("restore", "--no-caches", archive, "--", *command()).returncode == 0
        clear(foundry_command)
        sections = json.loads(foundry_command.run("inspect", "--sections", "--json", archive).stdout)["sections"]
        blobs = next(section for section in sections if section["kind"] == "blobs")
        with archive.open("r+b") as file:
            file.seek(blobs["offset"] + blobs["stored"] - 3)
            file.write(b"\xff\xff")
        result = foundry_command.run("restore", archive, "--", *command())
        assert (result.returncode, result.stdout) == (0, COLD)
        assert "warning: a JIT cache is not in place: " in result.stderr
