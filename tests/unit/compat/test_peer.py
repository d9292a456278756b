from __future__ import annotations

from pathlib import Path

from foundry.compat import peer


def distribution(folder: Path, name: str, record: str) -> None:
    (folder / f"{name}.dist-info").mkdir(parents=True)
    (folder / f"{name}.dist-info" / "RECORD").write_text(record)


def test_only_owners_of_the_import_name_count(tmp_path: Path) -> None:
    distribution(tmp_path, "foundry_graphs-0.1.0", "foundry/__init__.py,,\n")
    distribution(tmp_path, "foundry_core-0.1rc3", "x,,\nfoundry/__init__.py,sha256=a,3\n")
    distribution(tmp_path, "foundry_other-1", "foundry_other/__init__.py,,\n")
    distribution(tmp_path, "palantir-2", "foundry/__init__.py,,\n")
    (tmp_path / "foundry_broken-1.dist-info").mkdir()
    assert peer.quick(tmp_path / "foundry") == ["foundry-core 0.1rc3"]
    assert peer.thorough([str(tmp_path), "/not/there"]) == ["foundry-core 0.1rc3", "palantir 2"]
    assert "`foundry-core 0.1rc3, palantir 2` is installed too" in peer.warning(peer.thorough([str(tmp_path)]))


def test_alone_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert peer.quick(tmp_path / "foundry") == []
    assert peer.warning([]) == ""
