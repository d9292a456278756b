"""`capture --thin` and its restore, with kernels that lie in a shared library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.native_build import PROGRAMS, compile_program, embed_kernels, link_simulator, make_kernels

from foundry import archive, native

BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
OTHER_BUILD_ID = "ff" * 20


class Scene:
    """A program whose kernels lie in a library, and the command line in a folder of its own."""

    def __init__(self, folder: Path, built: Path) -> None:
        self.command = CommandLine(folder, native.library_directory())
        self.built = built
        self.libraries = folder / "libraries"
        self.libraries.mkdir()
        self.library = self.libraries / "libkernels.so"
        self.library.write_bytes((built / "libkernels.so").read_bytes())
        self.words = [str(built / "program" / "labelled"), str(self.library)]

    def run(self, *words: str, seed: str = "1") -> tuple[int, str, str]:
        environment = {"FOUNDRY_SIM_SEED": seed, "LD_LIBRARY_PATH": str(self.libraries)}
        # The program's argument is the library, which lies elsewhere at times.
        allowed = ["--allow", "mismatch-arguments"] if words[0] == "restore" else []
        done = self.command.run(*words, *allowed, "--", *self.words, environment=environment)
        return done.returncode, done.stdout, done.stderr

    def capture(self, *words: str) -> str:
        code, output, errors = self.run("capture", "--sim", "-o", "a.fdry", *words)
        assert code == 0, errors
        self.output = output
        return errors

    @property
    def path(self) -> Path:
        return self.command.work / "a.fdry"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("thin")
    make_kernels(folder / "kernels.image", PROGRAMS / "sim_kernels.c", "--fatbin")
    embed_kernels(folder / "libkernels.so", folder / "kernels.image", BUILD_ID)
    embed_kernels(folder / "libother.so", folder / "kernels.image", OTHER_BUILD_ID)
    (folder / "program").mkdir()
    compile_program(folder / "program" / "labelled", [PROGRAMS / "hook_programs" / "labelled.c"], *link_simulator())
    return folder


@pytest.fixture
def scene(tmp_path: Path, built: Path) -> Iterator[Scene]:
    yield Scene(tmp_path, built)


def test_a_thin_archive_leaves_out_what_the_library_holds_and_says_so(scene: Scene) -> None:
    whole_errors = scene.capture()
    whole = archive.read(scene.path)
    assert "left out" not in whole_errors
    errors = scene.capture("--thin", "--force")
    brief = archive.summary(scene.path)
    size = len((scene.built / "kernels.image").read_bytes())
    assert "thin: 1 kernel image of" in errors
    assert "left out, which must be in `libkernels.so` on a restore" in errors
    assert (brief.thin, brief.outside) == (True, 1)
    report = json.loads(scene.run("capture", "--sim", "--json", "--thin", "-f", "-o", "a.fdry")[2].splitlines()[-1])
    assert report["left_out"] == 1
    with archive.open_archive(scene.path) as opened:
        (place,) = [entry.library for entry in opened.head.blobs if entry.library]
        assert (place.name, place.build_id, place.size, place.architecture) == ("libkernels.so", BUILD_ID, size, 0)
        process = replace(opened.process(0), spent=whole.processes[0].spent)
        assert process == whole.processes[0]
    found = scene.library.read_bytes()[place.offset : place.offset + place.size]
    again = archive.read(scene.path, lambda _: found)
    assert again.blobs == whole.blobs


def test_a_thin_archive_is_restored_from_the_library(scene: Scene) -> None:
    scene.capture("--thin")
    code, output, errors = scene.run("restore", "--sim", "--json", "a.fdry", seed="2")
    report = json.loads(errors.splitlines()[-1])
    assert (code, output) == (0, scene.output)
    assert report["restored"] is True
    assert report["graphs_restored"] > 0
    # The images that were made for this start hold the kernels.
    scene.words[1] = str(scene.built / "libkernels.so")
    scene.library.unlink()
    assert "graphs restored" in scene.run("restore", "--sim", "a.fdry", seed="3")[2]


@pytest.mark.parametrize("fault", ["gone", "another build", "other bytes"])
def test_without_its_library_a_restore_is_a_plain_start_that_says_why(scene: Scene, fault: str) -> None:
    scene.capture("--thin")
    scene.words[1] = str(scene.built / "libkernels.so")
    if fault == "gone":
        scene.library.unlink()
        expected = f"needs the library `libkernels.so` with the build id {BUILD_ID}, which is not found here;"
    elif fault == "another build":
        scene.library.write_bytes((scene.built / "libother.so").read_bytes())
        expected = f"with the build id {BUILD_ID}, which is not found here; there is one with {OTHER_BUILD_ID};"
    else:
        data, image = scene.library.read_bytes(), (scene.built / "kernels.image").read_bytes()
        at = data.index(image) + len(image) // 2
        scene.library.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        expected = f"library `libkernels.so`, build id {BUILD_ID};"
    code, output, errors = scene.run("restore", "--sim", "a.fdry", seed="2")
    assert (code, output) == (0, scene.output), errors
    assert expected in errors
    assert "starting without restore" in errors
    report = json.loads(scene.run("restore", "--sim", "--json", "a.fdry")[2].splitlines()[-1])
    assert report["code"] == ("blob-outside" if fault == "other bytes" else "library-missing")
    assert scene.run("restore", "--sim", "--on-mismatch", "fail", "a.fdry")[0] == (1 if fault == "other bytes" else 5)


def test_nothing_is_left_out_where_no_library_holds_it(scene: Scene) -> None:
    scene.words[1] = str(scene.built / "kernels.image")
    errors = scene.capture("--thin")
    assert "nothing is left out" in errors
    assert not archive.summary(scene.path).thin


def test_a_whole_archive_is_not_restored_beside_another_build_of_its_library(scene: Scene) -> None:
    """The program would run its new kernels, and its graphs the old ones."""
    scene.capture()
    scene.library.write_bytes((scene.built / "libother.so").read_bytes())
    told = f"mismatch-library: libkernels.so: archive build {BUILD_ID[:16]}, here build {OTHER_BUILD_ID[:16]}"
    for _ in ("when its images are made", "when they are there"):
        code, output, errors = scene.run("restore", "--sim", "--json", "a.fdry")
        report = json.loads(errors.splitlines()[-1])
        assert (code, output) == (0, scene.output)
        assert (report["restored"], report["code"]) == (False, "mismatch-library")
        assert told in report["started_without_restore"]
    words = ("verify", "--host", "--sim", "--allow", "mismatch-arguments")
    assert f"refuse: {told}\n" in scene.run(*words, "a.fdry")[1]
    code, output, errors = scene.run("restore", "--sim", "--json", "--allow", "mismatch-library", "a.fdry")
    assert (code, output, json.loads(errors.splitlines()[-1])["restored"]) == (0, scene.output, True)
    scene.library.unlink()
    scene.words[1] = str(scene.built / "libkernels.so")
    report = json.loads(scene.run("restore", "--sim", "--json", "a.fdry")[2].splitlines()[-1])
    assert report["restored"] is True, "one that is not found may lie where only the program looks"
