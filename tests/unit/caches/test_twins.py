"""Kernels that Triton wrote below another cache's folder are kept for its own folder, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from foundry.caches import collect
from foundry.caches.collect import Collector
from foundry.caches.twins import twins

ENTRY = ("__grp__k.json", "k.cubin", "k.json")


def entry(cache: str, folder: str, text: str = "") -> list[collect.CacheFile]:
    return [(cache, f"{folder}/{name}", 0o644, f"{text}{name}".encode()) for name in ENTRY]


def paths(found: list[collect.CacheFile]) -> list[str]:
    assert {file[0] for file in found} <= {"triton"}
    return [file[1] for file in found]


def test_a_kernel_in_another_cache_has_a_twin() -> None:
    found = twins(entry("vllm", "torch_compile_cache/h/inductor_cache/triton/0/KERNEL"))
    assert paths(found) == [f"KERNEL/{name}" for name in ENTRY]
    assert [file[3] for file in found] == [name.encode() for name in ENTRY]


def test_what_lies_beside_a_kernel_comes_along() -> None:
    launcher = ("inductor", "triton/0/LAUNCHER/l.so", 0o755, b"so")
    tuned = ("inductor", "triton/0/TUNED/k.autotune.json", 0o644, b"{}")
    other = ("inductor", "ab/cab.py", 0o644, b"py")
    found = twins([*entry("inductor", "triton/0/KERNEL"), launcher, tuned, other])
    assert paths(found)[len(ENTRY) :] == ["LAUNCHER/l.so", "TUNED/k.autotune.json"]


def test_what_triton_has_itself_is_not_added() -> None:
    assert twins([*entry("triton", "KERNEL", "own "), *entry("inductor", "triton/0/KERNEL")]) == []


def test_a_kernel_in_two_caches_has_one_twin() -> None:
    found = twins([*entry("vllm", "a/triton/0/KERNEL", "vllm "), *entry("inductor", "triton/1/KERNEL", "inductor ")])
    assert [file[3] for file in found] == [f"vllm {name}".encode() for name in ENTRY]


def test_a_cache_without_kernels_has_none() -> None:
    assert twins([("inductor", "ab/cab.py", 0o644, b"py"), ("cuda", "index", 0o644, b"")]) == []


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}


def collected(environment: dict[str, str]) -> collect.Collected:
    collector = Collector(environment, environment["HOME"])
    collector.listen()
    try:
        folder = Path(environment["TORCHINDUCTOR_CACHE_DIR"], "triton", "0", "KERNEL")
        folder.mkdir(parents=True)
        for name in ENTRY:
            (folder / name).write_text(name)
        return collector.collect()
    finally:
        collector.close()


def test_a_capture_keeps_both(environment: dict[str, str]) -> None:
    found = collected(environment)
    assert [file[:2] for file in found.files] == [
        *(("inductor", f"triton/0/KERNEL/{name}") for name in ENTRY),
        *(("triton", f"KERNEL/{name}") for name in ENTRY),
    ]
    assert found.size == sum(len(file[3]) for file in found.files)


def test_a_folder_that_is_none_of_tritons_gets_nothing(environment: dict[str, str]) -> None:
    environment["TRITON_CACHE_DIR"] = environment["HOME"]
    assert {file[0] for file in collected(environment).files} == {"inductor"}


def test_past_the_limit_a_finding_says_so(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "LARGEST_TOTAL", 30)
    found = collected(environment)
    assert {file[0] for file in found.files} == {"inductor"}
    assert "kernels of other caches are not kept" in found.findings[-1].text
