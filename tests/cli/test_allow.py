"""What `verify --host` says beforehand is what a restore does: the same codes with the same values, allowed or not."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from helpers.commandline import CommandLine

from foundry import archive, native
from foundry.compat import codes
from foundry.model import Capture

SELF_TEST = (sys.executable, "-m", "foundry.selftest")
ITEM = re.compile(
    r"((?:mismatch|host)-[a-z-]+|library-missing): (?:GPU \d+: )?(.*?): archive (.*?), here (.*?)(?=; |$)"
)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    made = CommandLine(tmp_path_factory.mktemp("allow"), native.library_directory())
    (made.folder / "other").mkdir()
    ranks = {"RANK": "0", "WORLD_SIZE": "2"}
    captured = made.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *SELF_TEST)
    assert captured.returncode == 0, captured.stderr
    captured = made.run("capture", "-q", "--sim", "-o", "rank.fdry", "--", *SELF_TEST, environment=ranks)
    assert captured.returncode == 0, captured.stderr
    return made


def packaged(**versions: str) -> Callable[[Capture], Capture]:
    return lambda capture: replace(capture, packages={name.replace("_", "-"): text for name, text in versions.items()})


def on_device(**values: object) -> Callable[[Capture], Capture]:
    def change(capture: Capture) -> Capture:
        (process,) = capture.processes
        (device,) = process.devices
        return replace(capture, processes=(replace(process, devices=(replace(device, **values),)),))  # type: ignore[arg-type]

    return change


def on_two_devices(capture: Capture) -> Capture:
    (process,) = capture.processes
    (device,) = process.devices
    second = replace(device, ordinal=1, base=device.base + (1 << 40))
    return replace(capture, processes=(replace(process, devices=(device, second)),))


def emptied(capture: Capture) -> Capture:
    """Leave no graph that can be restored."""
    (process,) = capture.processes
    graphs = tuple(replace(graph, reason_code="host-copy", reason="a copy to the host") for graph in process.graphs)
    return replace(capture, processes=(replace(process, graphs=graphs),))


class Case(NamedTuple):
    """Something that differs, the codes by which it is refused, and the ones that only warn or note."""

    refused: tuple[str, ...] = ()
    lesser: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    words: tuple[str, ...] = SELF_TEST
    change: Callable[[Capture], Capture] | None = None
    path: str = "a.fdry"


CASES = {
    "the same": Case(),
    "another architecture in the archive": Case((codes.COMPUTE,), change=on_device(compute_major=8, compute_minor=6)),
    "another architecture here": Case(
        (codes.GPU_MODEL, codes.COMPUTE, codes.MULTIPROCESSORS),
        environment={"FOUNDRY_SIM_GPU": "NVIDIA Simulated A100:8.0:108"},
    ),
    "another model": Case((codes.GPU_MODEL,), environment={"FOUNDRY_SIM_GPU": "NVIDIA Simulated H100"}),
    "another model with fewer multiprocessors": Case(
        (codes.GPU_MODEL, codes.MULTIPROCESSORS), environment={"FOUNDRY_SIM_GPU": "NVIDIA Simulated H100 PCIe:9.0:114"}
    ),
    "a part of the multiprocessors": Case(
        (codes.MULTIPROCESSORS,), environment={"FOUNDRY_SIM_GPU": "NVIDIA Simulated H200:9.0:66"}
    ),
    "a slice": Case(
        (codes.GPU_MODEL, codes.MULTIPROCESSORS, codes.MIG),
        environment={"FOUNDRY_SIM_GPU": "NVIDIA Simulated H200 MIG 1g.18gb:9.0:16"},
    ),
    "an older driver": Case((codes.DRIVER,), environment={"FOUNDRY_SIM_VERSION": "12080"}),
    "a newer driver": Case((), (codes.DRIVER,), {"FOUNDRY_SIM_VERSION": "13020"}),
    "more memory": Case((), (codes.ARENAS,), {"FOUNDRY_SIM_MEMORY": str(400 << 30)}),
    "no GPU": Case((codes.NO_DRIVER,), environment={"FOUNDRY_SIM_DEVICES": "0"}),
    "a GPU too few": Case((codes.DEVICES,), change=on_two_devices),
    "nothing to restore": Case((codes.NO_GRAPHS,), change=emptied),
    "another argument": Case((codes.ARGUMENTS,), words=(*SELF_TEST, "--max-num-seqs", "8")),
    "another port": Case((), (codes.ARGUMENTS,), words=(*SELF_TEST, "--port", "8001")),
    "another engine": Case((codes.ENGINE,), change=packaged(vllm="0.27.0", pytest=pytest.__version__)),
    "another cuBLAS": Case((), (codes.PACKAGE,), change=packaged(nvidia_cublas="13.0.0.19")),
    "another loading": Case((), (codes.VARIABLE,), {"CUDA_MODULE_LOADING": "EAGER"}),
    "another workspace": Case((codes.VARIABLE,), environment={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    "another group": Case(
        (codes.RANKS,), environment={"RANK": "0", "WORLD_SIZE": "4"}, path="rank.fdry"
    ),
    "several things": Case(
        (codes.ARGUMENTS, codes.DRIVER, codes.MULTIPROCESSORS),
        environment={"FOUNDRY_SIM_VERSION": "12080", "FOUNDRY_SIM_GPU": "NVIDIA Simulated H200:9.0:66"},
        words=(*SELF_TEST, "-v"),
    ),
}  # fmt: skip


TESTED_ELSEWHERE = {
    codes.SIMULATED: "cli/test_restore.py::test_a_simulated_archive_is_not_used_for_a_real_start",
    codes.LIBRARY_NEEDED: "unit/compat/test_host.py::test_libraries_by_their_build_ids",
    codes.LIBRARY: "unit/compat/test_compare.py::test_libraries",
    codes.NO_HOOK: "unit/compat/test_host.py::test_an_archive_without_graphs_and_an_installation_without_a_hook",
    codes.VIRTUAL_MEMORY: "cases/test_gate.py::test_whatever_is_otherwise_is_refused_by_its_own_code_with_both_values",
    codes.COMPUTE_MODE: "cases/test_gate.py::test_whatever_is_otherwise_is_refused_by_its_own_code_with_both_values",
    codes.MEMORY: "unit/compat/test_host.py::test_too_little_free_memory_is_a_warning",
    codes.RELEASE: "unit/compat/test_host.py::test_arguments_variables_packages_and_releases",
    codes.VERSION: "unit/compat/test_host.py::test_arguments_variables_packages_and_releases",
}
"""What cannot be made otherwise on the simulator, or has no place in the loop below."""


def test_every_code_has_its_case() -> None:
    of_cases = {code for case in CASES.values() for code in (*case.refused, *case.lesser)}
    assert of_cases | set(TESTED_ELSEWHERE) == set(codes.RULES)
    assert of_cases & set(TESTED_ELSEWHERE) == set()
    for code, where in TESTED_ELSEWHERE.items():
        path, _, name = where.partition("::")
        text = (Path(__file__).parents[1] / path).read_text()
        assert f"def {name}(" in text, code


class Said(NamedTuple):
    """What both commands say: items by code as (what, archive, here), and whether graphs are restored."""

    items: dict[str, set[tuple[str, str, str]]]
    levels: dict[str, str]
    usable: bool


def verified(command: CommandLine, path: str, case: Case, allowed: list[str]) -> Said:
    words = ("verify", "--host", "--json", "--sim", *allowed, path, "--", *case.words)
    result = command.run(*words, environment=case.environment)
    assert result.stdout, result.stderr
    host = json.loads(result.stdout)["host"]
    assert result.returncode == (0 if host["usable"] else 5)
    items: dict[str, set[tuple[str, str, str]]] = {}
    levels: dict[str, str] = {}
    for item in reversed(host["items"]):
        if item["severity"] not in ("same", "unknown"):
            items.setdefault(item["code"], set()).add((item["what"], item["archive"], item["here"]))
            levels[item["code"]] = item["severity"]
            assert item["allowable"] == codes.allowable(item["code"])
    return Said(items, levels, host["usable"])


def restored(command: CommandLine, path: str, case: Case, allowed: list[str]) -> tuple[dict[str, Any], set[str]]:
    """The report, and the codes that it gives for why there was no restore, checked against its texts."""
    words = ("restore", "--json", "--sim", *allowed, path, "--", *case.words)
    result = command.run(*words, environment=case.environment)
    report = json.loads(result.stderr.splitlines()[-1])
    reasons = [report["started_without_restore"] or "", *report["disarmed"].values()]
    told = {found[1] for reason in reasons for found in ITEM.finditer(reason)}
    assert report["code"] in (told or {None}), report
    return report, told


@pytest.mark.parametrize("name", CASES)
def test_a_restore_does_what_verify_says(command: CommandLine, name: str) -> None:
    case, path = CASES[name], CASES[name].path
    if case.change is not None:
        path = str(command.folder / "other" / f"{name.replace(' ', '-')}.fdry")
        archive.write(case.change(archive.read(command.work / "a.fdry")), Path(path))
    flags: list[str] = []
    never = [code for code in case.refused if not codes.allowable(code)]
    may = [code for code in case.refused if codes.allowable(code)]
    parts = range(len(may) + 1) if name == "several things" else {0, len(may)}
    for count in parts:
        allowed = may[:count]
        flags = [word for code in allowed for word in ("--allow", code)]
        said = verified(command, path, case, flags)
        refused = set(case.refused) - set(allowed)
        assert {code for code, level in said.levels.items() if level == "refuse"} == refused
        assert {code for code, level in said.levels.items() if level == "allowed"} == set(allowed)
        assert set(said.levels) == {*case.refused, *case.lesser}
        assert said.usable == (not refused)

        report, told = restored(command, path, case, flags)
        assert report["restored"] == said.usable, report
        # What is refused before the start hides what the hook would find.
        assert told <= refused and bool(told) == (bool(refused) and name != "no GPU"), report
        for reason in (report["started_without_restore"] or "", *report["disarmed"].values()):
            for code, *values in ITEM.findall(reason):
                assert tuple(values) in said.items[code], "both values are those that verify shows"
        told_before = {item["code"]: item["severity"] for item in report["differences"]}
        assert told_before.items() <= said.levels.items()
    for code in never:
        for verb in (("verify", "--host"), ("restore",)):
            result = command.run(*verb, "--allow", code, path, "--", *case.words)
            assert (result.returncode, result.stdout) == (2, ""), "it cannot be allowed"


def test_what_the_hook_let_pass_is_reported(command: CommandLine) -> None:
    case = CASES["a slice"]
    flags = [word for code in case.refused for word in ("--allow", code)]
    report, _ = restored(command, "a.fdry", case, flags)
    (process,) = report["processes"]
    (finding,) = [item for item in process["findings"] if item["code"] == "mismatch-allowed"]
    assert {found[1] for found in ITEM.finditer(finding["text"])} == set(case.refused)


def test_failing_names_what_may_be_allowed(command: CommandLine) -> None:
    words = ("restore", "--sim", "--on-mismatch", "fail", "a.fdry", "--", *SELF_TEST)
    result = command.run(*words, environment=CASES["an older driver"].environment)
    assert result.returncode == 5
    told = re.sub(r"(ended: )[\w.]+-0", r"\1python-0", result.stderr)
    assert told.endswith(
        "foundry: error: the restore was given up, so the command was ended: "
        "python-0: mismatch-driver: CUDA of the driver: archive 13.0, here 12.8\n\n"
        "hint: capture again: `foundry capture -- CMD`; `--allow mismatch-driver` restores all the same; "
        "or let it start without restore: `--on-mismatch fallback`\n"
    )


def test_allow_goes_with_host(command: CommandLine) -> None:
    result = command.run("verify", "--allow", codes.DRIVER, "a.fdry")
    assert (result.returncode, result.stdout) == (2, "")
    assert "`--allow` goes with `--host`" in result.stderr


def test_a_variable_of_an_outer_session_allows_nothing(command: CommandLine) -> None:
    case = CASES["an older driver"]
    case = case._replace(environment={**case.environment, "FOUNDRY_ALLOW": codes.DRIVER})
    assert verified(command, "a.fdry", case, []).usable is False
    assert restored(command, "a.fdry", case, [])[1] == {codes.DRIVER}
