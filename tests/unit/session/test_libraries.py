"""Which distribution a library file belongs to, by the records of what is installed beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from foundry.session.libraries import Distributions


def install(site: Path, folder: str, *files: str) -> None:
    info = site / f"{folder}.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in (*files, f"{folder}.dist-info/RECORD")))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    install(folder, "torch-2.11.0+cu130", "torch/lib/libtorch.so", "torch/_C.so", '"torch/odd,name.so"', "torch/a.py")
    install(folder, "nvidia_cublas-13.1.0.3", "nvidia/cu13/lib/libcublas.so.13", "../../../bin/tool.so")
    install(folder, "PyYAML-6.0", "yaml/_yaml.so")
    install(folder, "transformers-5.0", "transformers/__init__.py")
    return folder


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("torch/lib/libtorch.so", ("torch", "2.11.0+cu130")),
        ("torch/odd,name.so", ("torch", "2.11.0+cu130")),
        ("torch/lib/../../nvidia/cu13/lib/libcublas.so.13", ("nvidia-cublas", "13.1.0.3")),
        ("yaml/_yaml.so", ("pyyaml", "6.0")),
        ("torch/lib/of_nobody.so", ("", "")),
        ("../../../bin/tool.so", ("", "")),
    ],
)
def test_the_record_that_lists_a_file_owns_it(site: Path, path: str, found: tuple[str, str]) -> None:
    assert Distributions().origin(f"{site}/{path}") == found


@pytest.mark.parametrize("path", ["", "libc.so.6", "./torch/_C.so", "/nowhere/at/all.so", "/\0.so"])
def test_what_lies_elsewhere_is_nobodys(path: str) -> None:
    assert Distributions().origin(path) == ("", "")


def test_versions_are_of_the_folders_that_files_lay_in(site: Path) -> None:
    distributions = Distributions()
    assert distributions.versions() == {}
    distributions.origin(str(site / "torch" / "of_nobody.so"))
    assert distributions.versions() == {"nvidia-cublas": "13.1.0.3", "torch": "2.11.0+cu130", "transformers": "5.0"}


def test_the_first_folder_asked_of_counts(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    install(other, "torch-2.12.0", "torch/_C.so")
    distributions = Distributions()
    assert distributions.origin(f"{other}/torch/_C.so") == ("torch", "2.12.0")
    assert distributions.origin(f"{site}/torch/_C.so") == ("torch", "2.11.0+cu130")
    assert distributions.versions()["torch"] == "2.12.0"


def test_records_that_cannot_be_read_own_nothing(site: Path) -> None:
    (site / "torch-2.11.0+cu130.dist-info" / "RECORD").unlink()
    (site / "PyYAML-6.0.dist-info" / "RECORD").write_bytes(b"yaml/_yaml.so\xff,,\n\x00.so,\n")
    distributions = Distributions()
    assert distributions.origin(str(site / "torch" / "_C.so")) == ("", "")
    assert distributions.origin(str(site / "yaml" / "_yaml.so")) == ("", "")
    assert distributions.versions()["torch"] == "2.11.0+cu130"
