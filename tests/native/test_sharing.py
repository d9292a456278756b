"""C38: memory that the hook placed is shared between processes by handle, as the driver's own is.

`hook_programs/sharing.c` is two ranks that do what engines' own all-reduce does. It runs without the hook, in a capture
and in a restore; what it says of the driver's answers must be the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cases.driver_shell import make_shell
from helpers.native_build import command_environment, hooked_environment, link_simulator
from helpers.roundtrip import Program, Run
from helpers.source import ROOT
from native.hook_run import Bench, counters, events, outcome

from foundry import env, image
from foundry.spool.reader import Spool, process_folders, read_spool

SCENARIOS = ("exchange", "freed", "killed", "forked", "many", "leaks", "in-capture", "storm", "context", "refused")
PEER = 6
FILE_DESCRIPTORS_SUPPORTED = 103  # CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("sharing"))


@pytest.fixture(scope="module")
def sharing(bench: Bench) -> Path:
    """The program, compiled."""
    return bench.program("sharing", *link_simulator())


@pytest.fixture(scope="module")
def plainly(bench: Bench, sharing: Path) -> dict[str, list[str]]:
    """What each scenario says without the hook, but for what is to differ."""
    runs = {what: bench.run(sharing, bench.folder / what, what, mode=None) for what in SCENARIOS}
    assert {what: run.code for what, run in runs.items()} == dict.fromkeys(SCENARIOS, 0)
    return {what: scenario_for_gpus().expected(what, said(run.lines)) for what, run in runs.items()}


@pytest.fixture(scope="module")
def exchanged(sharing: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A capture of the usual exchange."""
    return Program([str(sharing), "exchange"]).captured(tmp_path_factory.mktemp("exchanged") / "captured", 7)


def scenario_for_gpus() -> Any:
    """The module of the runs on GPUs."""
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    try:
        import two_gpus
    finally:
        sys.path.pop(0)
    return two_gpus


def said(lines: list[str]) -> list[str]:
    """What does not depend on where a graph came from, nor on which of the two ranks is faster."""
    return sorted(
        line for line in lines if line.startswith("rank") and line.split()[-1] not in ("captured", "restored")
    )


def spools_of(session: Path) -> list[Spool]:
    """All that was written, ended or not."""
    return [spool for folder in process_folders(session) if (spool := read_spool(folder)) is not None]


def refusals(session: Path) -> list[str]:
    """What was refused, each with its reason."""
    told = [finding for spool in spools_of(session) for finding in events(spool, "Told")]
    return [finding.text for finding in told if finding.code == "ipc-refused"]


@pytest.mark.parametrize("what", SCENARIOS)
def test_a_capture_answers_as_the_driver(
    bench: Bench, sharing: Path, tmp_path: Path, plainly: dict[str, list[str]], what: str
) -> None:
    done = bench.run(sharing, tmp_path / what, what)
    assert done.code == 0, done.errors
    assert said(done.lines) == plainly[what] != []


@pytest.mark.parametrize("what", SCENARIOS)
def test_a_restore_answers_as_the_driver(
    sharing: Path, tmp_path: Path, plainly: dict[str, list[str]], what: str
) -> None:
    made = Program([str(sharing), what])
    restored = made.restored(tmp_path / "restored", 11, made.captured(tmp_path / "captured", 7).capture)
    lines = restored.output.splitlines()
    assert said(lines) == plainly[what]
    assert {"rank 0 start restored", "rank 1 start restored"} <= set(lines)


def test_each_rank_has_a_device_of_its_own(bench: Bench, sharing: Path, tmp_path: Path) -> None:
    plain, hooked = (
        bench.run(sharing, tmp_path / str(mode), "exchange", "2", mode=mode, FOUNDRY_SIM_DEVICES="2")
        for mode in (None, "capture")
    )
    assert hooked.code == 0, hooked.errors
    assert said(hooked.lines) == said(plain.lines)
    assert {"rank 0 device 1", "rank 1 device 0"} < set(plain.lines)
    assert {entry.name for spool in spools_of(hooked.session) for entry in events(spool, "Range")} == {
        f"rank-{rank}/{rank}/main/{ordinal}" for rank in (0, 1) for ordinal in (1, 3)
    }


def test_the_scenario_for_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the commands, as it is run on two GPUs; here it shows that it finds what it looks for."""
    for name, value in command_environment().items():
        monkeypatch.setenv(name, value)
    scenario = scenario_for_gpus()
    found = scenario.shared_memory(tmp_path, 2, ("exchange", "forked"), simulated=True)
    assert {name: scenario.other_answers(name, found[name]) for name in found} == {"exchange": [], "forked": []}
    assert found["exchange"]["graphs"] == {"restorable": 4, "refused": 2}
    assert [len(found[name]["by_design"]) for name in ("exchange", "forked")] == [0, 1]


@pytest.mark.parametrize(
    ("name", "plain", "hooked", "problems"),
    [
        ("freed", "anew 0", "anew 1", []),
        ("freed", "anew 1", "anew 1", []),
        ("freed", "anew 0", "anew 0", ["said 'rank 1 anew 0'", "did not say 'rank 1 anew 1'"]),
        ("freed", "anew 400", "anew 1", ["said 'rank 1 anew 1'", "did not say 'rank 1 anew 400'"]),
        ("many", "anew 0", "anew 1", ["said 'rank 1 anew 1'", "did not say 'rank 1 anew 0'"]),
        ("forked", "owner-gone 0 still 3", "owner-gone 400 still 3", []),
        (
            *("forked", "owner-gone 0 still 3", "owner-gone 205 still 3"),
            ["said 'rank 1 owner-gone 205 still 3'", "did not say 'rank 1 owner-gone 400 still 3'"],
        ),
        ("killed", "owner-gone 400 still 3", "owner-gone 400 still 3", []),
    ],
)
def test_what_may_differ_on_a_gpu(name: str, plain: str, hooked: str, problems: list[str]) -> None:
    """Named lines in named scenarios, nothing else."""
    found = {"plain": ["rank 0 x", f"rank 1 {plain}"], "said": {"restored": ["rank 0 x", f"rank 1 {hooked}"]}}
    assert scenario_for_gpus().other_answers(name, found) == [f"{name} restored: {one}" for one in problems]


def test_speed_is_measured(bench: Bench, sharing: Path, tmp_path: Path) -> None:
    """For a GPU; here it runs, and no figure means anything."""
    done = bench.run(sharing, tmp_path / "session", "speed")
    assert (done.code, len([line for line in done.lines if line.startswith("speed")])) == (0, 2), done.errors


IMPORTED = """
extern void *real_cuMemAlloc_v2;
int cuMemPoolImportPointer(unsigned long long *address, void *pool, void *data) {
    if (!real_cuInit) shell_open();
    (void)pool; (void)data;
    return ((int (*)(unsigned long long *, size_t))real_cuMemAlloc_v2)(address, 4096);
}
"""


def test_memory_of_anothers_pool_is_told(bench: Bench, tmp_path: Path) -> None:
    """The simulator has no such pools: the driver's shell gives memory that looks like it."""
    make_shell(tmp_path / "driver", overrides={"cuMemPoolImportPointer": IMPORTED})
    done = bench.run(
        bench.program("imported_pool", *link_simulator()),
        tmp_path / "session",
        LD_LIBRARY_PATH=str(tmp_path / "driver"),
    )
    assert done.lines == ["import 0", "free 0"], done.errors
    assert [(entry.kind, entry.size) for entry in events(done.spool(), "Range")] == [(PEER, 4096)]
    assert [entry.kind for entry in events(done.spool(), "RangeGone")] == [PEER]


def test_a_graph_that_writes_to_the_other_is_refused_by_name(exchanged: Run, sharing: Path, tmp_path: Path) -> None:
    """The others of that process come back; of the other's memory it is told whose it is."""
    for process in exchanged.capture.processes:
        graphs = {graph.key: graph for graph in process.graphs}
        assert graphs["start"].restorable
        assert graphs["own"].restorable
        other = 1 - int(process.role[-1])
        assert graphs["peer"].reason.endswith(f"points to memory of another process `rank-{other}/0/main/1`")
    restored = Program([str(sharing), "exchange"]).restored(tmp_path / "restored", 11, exchanged.capture)
    assert {line for line in restored.output.splitlines() if " peer " in line or " own " in line} >= {
        f"rank {rank} {key} {how}" for rank in (0, 1) for key, how in (("own", "restored"), ("peer", "captured"))
    }


def test_what_is_opened_is_told_until_it_is_closed(exchanged: Run) -> None:
    for spool in spools_of(exchanged.session):
        ranges = [(entry.kind, entry.size) for entry in events(spool, "Range")]
        assert ranges == [(PEER, 5 << 20), (PEER, 4096)]
        assert [entry.kind for entry in events(spool, "RangeGone")] == [PEER, PEER]
        totals = counters(spool)
        assert (totals["allocations_shared"], totals["allocations_opened"]) == (2, 2)
        assert totals["fences"] == 4  # two frees, and two last closes
        assert events(spool, "Told") == []


def test_one_export_serves_all_handles_and_all_memory_of_a_page(sharing: Path, bench: Bench, tmp_path: Path) -> None:
    for what, exports in (("many", 2), ("exchange", 2)):
        report = tmp_path / f"{what}.report"
        done = bench.run(sharing, tmp_path / what, what, FOUNDRY_SIM_REPORT=str(report))
        assert done.code == 0, done.errors
        calls = dict(line.split()[1:] for line in report.read_text().splitlines() if line.startswith("calls"))
        assert int(calls["cuMemExportToShareableHandle"]) <= exports
        assert int(calls["cuMemImportFromShareableHandle"]) <= exports


def test_nothing_of_what_was_opened_is_left(sharing: Path, bench: Bench, tmp_path: Path) -> None:
    report = tmp_path / "report"
    done = bench.run(sharing, tmp_path / "session", "exchange", FOUNDRY_SIM_REPORT=str(report))
    assert done.code == 0, done.errors
    alive = dict(line.split()[1:] for line in report.read_text().splitlines() if line.startswith("alive"))
    assert alive["reservation"] == "1"  # the hook's own
    assert "handle" not in alive


def test_a_child_of_the_owner_keeps_none_of_its_memory(sharing: Path, bench: Bench, tmp_path: Path) -> None:
    """Else it would live as long as the child. The simulator's own files are left, as without the hook."""
    plain, hooked = (bench.run(sharing, tmp_path / str(mode), "forked", mode=mode) for mode in (None, "capture"))
    assert plain.said("files") == ["of", "the", "owner", "2"]
    kept = [line for line in hooked.lines if line.startswith("files")]
    assert kept == ["files of the owner 4", "files of its child 2"]
    assert refusals(hooked.session)


def test_an_owner_that_does_not_answer_is_not_waited_for_long(sharing: Path, bench: Bench, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = bench.run(sharing, tmp_path / "session", "stopped", FOUNDRY_PATIENCE="1")
    assert 1 <= time.monotonic() - begin < 20
    assert "rank 1 owner-gone 205 still 3" in done.lines
    (text,) = refusals(done.session)
    assert text.endswith("(CUresult 205): its process does not answer in time")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("freed", "(CUresult 1): its process has freed it"),
        ("killed", "(CUresult 400): its process is not there any more"),
        ("forked", "(CUresult 400): its process is not there any more"),
    ],
)
def test_what_cannot_be_opened_is_told_once_with_the_reason(
    sharing: Path, bench: Bench, tmp_path: Path, what: str, reason: str
) -> None:
    (text,) = refusals(bench.run(sharing, tmp_path / "session", what).session)
    assert text == f"memory of another process could not be opened {reason}"


FAILURES = {
    "cuMemRetainAllocationHandle": ("get 1 0 capable 1 open 0 0", "the driver does not export it"),
    "cuMemExportToShareableHandle": ("get 1 0 capable 1 open 0 0", "the driver does not export it"),
    "cuMemImportFromShareableHandle": ("get 0 0 capable 1 open 2 0", "the driver does not map it"),
    "cuMemAddressReserve": ("get 0 0 capable 1 open 2 0", "no addresses could be reserved"),
}


@pytest.mark.parametrize("function", FAILURES)
def test_the_drivers_failures_are_the_programs_and_pass(
    sharing: Path, bench: Bench, tmp_path: Path, function: str
) -> None:
    """The second try works, and nothing is left of the first."""
    line, reason = FAILURES[function]
    nth = 2 if function == "cuMemAddressReserve" else 1  # the first is that of the arenas
    report = tmp_path / "report"
    done = bench.run(
        sharing, tmp_path / "session", "refused", FOUNDRY_SIM_FAIL=f"{function}:{nth}:2", FOUNDRY_SIM_REPORT=str(report)
    )
    assert done.code == 0, done.errors
    assert [found for found in said(done.lines) if " get " in found] == [f"rank {rank} {line}" for rank in (0, 1)]
    assert [text.rpartition(": ")[2] for text in refusals(done.session)] == [reason, reason]
    alive = dict(text.split()[1:] for text in report.read_text().splitlines() if text.startswith("alive"))
    assert (alive["reservation"], alive.get("handle")) == ("2", None)


@pytest.mark.parametrize("failing", ["cuMemMap:2:999", "cuMemSetAccess:2:999"])
def test_memory_that_cannot_be_mapped_is_not_half_opened(
    sharing: Path, bench: Bench, tmp_path: Path, failing: str
) -> None:
    """The first is of the program's own memory."""
    done = bench.run(sharing, tmp_path / "session", "refused", FOUNDRY_SIM_FAIL=failing)
    assert [line.split()[-2:] for line in said(done.lines) if " get " in line] == [["999", "0"]] * 2, done.errors


@pytest.mark.parametrize("how", ["told", "refused"])
def test_a_driver_that_exports_no_memory(sharing: Path, tmp_path: Path, how: str) -> None:
    """What the hook placed then can't be shared, and the program is told so as before: by the driver's refusal."""
    override = f"""
extern void *real_cuDeviceGetAttribute;
int cuDeviceGetAttribute(int *value, int attribute, int device) {{
    if (!real_cuInit) shell_open();
    int result = ((int (*)(int *, int, int))real_cuDeviceGetAttribute)(value, attribute, device);
    if (!result && attribute == {FILE_DESCRIPTORS_SUPPORTED}) *value = 0;
    return result;
}}
"""
    make_shell(tmp_path / "driver", overrides={"cuDeviceGetAttribute": override} if how == "told" else {})
    session = tmp_path / "session"
    session.mkdir()
    environment = hooked_environment("capture", session) | {"LD_LIBRARY_PATH": str(tmp_path / "driver")}
    if how == "refused":
        environment["FOUNDRY_SIM_FAIL"] = "cuMemCreate:1:801"
    done = subprocess.run(
        [sharing, "refused"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in said(done.stdout.splitlines()) if " get " in line] == [
        f"rank {rank} get 1 1 capable 0 open 1 1" for rank in (0, 1)
    ]
    assert all("the driver does not export it" in text for text in refusals(session))
    assert len(refusals(session)) == 2


@pytest.mark.parametrize("role", ["rank-0", "rank-1"])
def test_one_that_is_restored_shares_with_one_that_gave_up(
    exchanged: Run, sharing: Path, bench: Bench, tmp_path: Path, plainly: dict[str, list[str]], role: str
) -> None:
    """Who has no image serves its memory by the driver's own handles; each opens the other's."""
    images = tmp_path / "images"
    images.mkdir()
    image.build(exchanged.capture, role, images / f"{role}.image", "00" * 32)
    settings = {env.IMAGE: str(images), env.QUIET: "1"}
    done = bench.run(sharing, tmp_path / "session", "exchange", mode="restore", **settings)
    assert done.code == 0, done.errors
    assert said(done.lines) == plainly["exchange"]
    assert [line for line in done.status.splitlines() if " disarmed " in line]
    assert f"rank {role[-1]} own restored" in done.lines


@pytest.mark.parametrize("nth", [1, 3, 4, 5])
def test_one_that_gives_up_later_keeps_sharing(
    sharing: Path, bench: Bench, tmp_path: Path, plainly: dict[str, list[str]], nth: int
) -> None:
    """Some of its memory is the driver's then, and some the hook's."""
    done = bench.run(sharing, tmp_path / "session", "exchange", FOUNDRY_SIM_FAIL=f"cuCtxGetDevice:{nth}")
    assert done.code == 0, done.errors
    assert " disarmed " in done.status
    assert said(done.lines) == plainly["exchange"]


def test_no_other_user_gets_it_or_is_believed(sharing: Path, bench: Bench, tmp_path: Path) -> None:
    session = tmp_path / "session"
    session.mkdir()
    strangers = bench.library("strangers")
    environment = hooked_environment("capture", session)
    environment |= {"LD_PRELOAD": f"{environment['LD_PRELOAD']}:{strangers}", "STRANGE": "0"}
    done = subprocess.run(
        [sharing, "refused"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[-3:] for line in said(done.stdout.splitlines()) if " get " in line] == [
        ["open", "205", "205"]
    ] * 2
    assert {text.rpartition(": ")[2] for text in refusals(session)} == {
        "its process is another user's",
        "its process gives no answer",
    }


def test_a_process_without_the_hook_cannot_open_it(sharing: Path, tmp_path: Path) -> None:
    """The driver does not know such a handle; nothing else happens."""
    plain, hooked = tmp_path / "plain", tmp_path / "hooked"
    for folder in (plain, hooked):
        folder.mkdir()
    owner = subprocess.Popen(
        [sharing, "give"], env=hooked_environment("capture", hooked), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdin and owner.stdout
    handle = owner.stdout.read(64)
    for environment, answer in (
        (hooked_environment(None, plain), "open 1"),
        (hooked_environment("capture", plain), "open 0 word 42"),
        (hooked_environment("", plain), "open 0 word 42"),
    ):
        done = subprocess.run(
            [sharing, "take"], input=handle, env=environment, capture_output=True, timeout=60, check=True
        )
        assert done.stdout.decode().strip() == answer
    owner.communicate(b"end", timeout=60)
    assert owner.returncode == 0
    assert outcome(hooked, 0, "", "").spools()
    shutil.rmtree(hooked)
