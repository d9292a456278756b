"""Images without the kernels that no graph uses: for graphs alone, and the program never has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.native_build import PROGRAMS, make_kernels
from native.restore_build import Outcome
from native.restore_image_file import NONE
from native.restore_scene import LIBRARY, MODULE, START, Scene, read_back

from foundry.binary.trim import without_others

Run = Callable[..., Outcome]
NO_IMAGE = b"no image of any kind" * 2
APIS = pytest.mark.parametrize(("word", "api"), [("library", LIBRARY), ("module", MODULE)])


class TrimmedScene(Scene):
    """A scene whose graphs take their kernels from an image without `spare`."""

    def __init__(
        self,
        whole: bytes,
        less: bytes | None = None,
        *,
        loaded: bytes | None = None,
        api: int = LIBRARY,
        context: int = NONE,
    ):
        super().__init__(whole, api=api, context=context)
        if loaded is not None:
            self.file.parts["images"][32:36] = self.file.blob(loaded).to_bytes(4, "little")
        self.file.parts["kernels"].clear()
        blob = self.file.blob(less or without_others(whole, ["fill", "add"]))
        self.trimmed = self.file.image(self.key, blob, api=api, whole=self.image)
        self.fill = self.file.kernel(self.trimmed, "fill", [(0, 8), (8, 4), (12, 4)])
        self.add = self.file.kernel(self.trimmed, "add", [(0, 8), (8, 8), (16, 4)])
        self.add_pair("1", 5)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.image"
    make_kernels(path, PROGRAMS / "trimmed_kernels.c")
    return path


@pytest.fixture
def run(run: Run) -> Run:
    """Ask for trimmed images, unless told otherwise."""
    return lambda scene, *commands, **asked: run(scene, *commands, **{"FOUNDRY_TRIM": "1", **asked})


@APIS
def test_graphs_run_on_the_trimmed_image(run: Run, file: Path, api: int, word: str) -> None:
    scene = TrimmedScene(file.read_bytes(), loaded=NO_IMAGE, api=api)
    outcome = run(scene, *START, "alloc:4096", *read_back("1"))
    assert outcome.last("read") == "read 105 105 105 105"


@APIS
def test_the_program_gets_all_kernels_of_its_image(run: Run, file: Path, api: int, word: str) -> None:
    """Before the graphs are built and after, and the graphs do not mind what it does with its own."""
    load = [f"{word}:{file}", "attribute:0:spare:8", "attribute:0:fill:8"]
    more = [f"{word}:{file}", "attribute:1:spare:8", "unload:1", "unload:0"]
    after = ["alloc:4096", "built:1", *load, *read_back("1"), *more, *read_back("1")]
    before = [*load, "alloc:4096", *read_back("1"), *more, *read_back("1")]
    for commands in (after, before):
        outcome = run(TrimmedScene(file.read_bytes(), api=api), *START, *commands)
        found = [line for line in outcome.lines if line.startswith(("attribute", "read"))]
        read = "read 105 105 105 105"
        assert found == ["attribute 1234", "attribute 49152", read, "attribute 1234", read]


def test_the_whole_image_is_loaded_behind_the_graphs_for_the_program(run: Run, file: Path) -> None:
    load = [f"library:{file}", "attribute:0:spare:8", "counter:images_handed_over"]
    outcome = run(TrimmedScene(file.read_bytes()), *START, "alloc:4096", "built:1", "sleep:100", *load)
    assert outcome.last("attribute") == "attribute 1234"
    assert outcome.last("images_handed_over") == "images_handed_over 1"


def test_a_module_of_a_created_context_is_loaded_there(run: Run, file: Path) -> None:
    scene = TrimmedScene(file.read_bytes(), api=MODULE, context=0)
    load = [f"module:{file}", "attribute:0:spare:8", "counter:images_handed_over"]
    outcome = run(scene, "init", "context", "create", "alloc:4096", *read_back("1"), "sleep:100", *load)
    assert outcome.last("read") == "read 105 105 105 105"
    assert outcome.last("attribute") == "attribute 1234"
    assert outcome.last("images_handed_over") == "images_handed_over 1"


def test_attributes_of_the_programs_function_are_its_own(run: Run, file: Path) -> None:
    scene = TrimmedScene(file.read_bytes())
    scene.file.parts["kernels"].clear()
    scene.file.kernel(scene.trimmed, "fill", [(0, 8), (8, 4), (12, 4)], attributes=((8, 65536),))
    scene.file.kernel(scene.trimmed, "add", [(0, 8), (8, 8), (16, 4)])
    load = [f"library:{file}", "attribute:0:fill:8"]
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), *load)
    assert outcome.last("read") == "read 105 105 105 105"
    assert outcome.last("attribute") == "attribute 49152"


@pytest.mark.parametrize("asked", [{"FOUNDRY_TRIM": ""}, {"FOUNDRY_TRIM": "0"}, {"FOUNDRY_RESPOOL": "1"}])
def test_whole_images_where_they_are_asked_for(run: Run, file: Path, asked: dict[str, str]) -> None:
    whole = file.read_bytes()
    outcome = run(TrimmedScene(whole, less=NO_IMAGE), *START, "alloc:4096", *read_back("1"), **asked)
    assert outcome.last("read") == "read 105 105 105 105"
    outcome = run(TrimmedScene(whole, loaded=NO_IMAGE), *START, "alloc:4096", "wait:decode:1", **asked)
    assert outcome.last("wait") == (
        "wait -1 kernel `fill`: image `a test image`: cuLibraryLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU"
    )


@APIS
def test_a_driver_that_refuses_the_trimmed_image_gets_the_whole_one(run: Run, file: Path, api: int, word: str) -> None:
    scene = TrimmedScene(file.read_bytes(), less=NO_IMAGE, api=api)
    load = [f"{word}:{file}", "attribute:0:spare:8"]
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), *load)
    assert outcome.last("read") == "read 105 105 105 105"
    assert outcome.last("attribute") == "attribute 1234"
