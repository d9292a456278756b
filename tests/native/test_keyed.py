"""Caches of graphs on the simulator, in C and in Python: both say the same, and passes give what eager ones do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import emulation
from helpers.commandline import CommandLine
from helpers.native_build import (
    base_environment,
    command_environment,
    compile_program,
    link_simulator,
    make_kernels,
    run_tool,
    sanitized,
)
from helpers.source import NATIVE, ROOT

from foundry import native

PROGRAMS = ROOT / "tests" / "native"
SOURCES = sorted((NATIVE / "keyed").glob("*.c"))
KEYS = "2:1,2:1,2:1,2:3,6:3,6:3,6:2,2:2"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Program:
    """One of the two programs."""

    def __init__(self, words: list[str], image: Path) -> None:
        self.words = words
        self.image = str(image)

    def command(self, what: str, keys: str, **options: object) -> list[str]:
        return [*self.words, self.image, what, keys, *(f"{name}={value}" for name, value in options.items())]

    def start(self, what: str, keys: str, environment: dict[str, str], **options: object) -> tuple[int, str]:
        done = subprocess.run(
            self.command(what, keys, **options),
            env={**base_environment(), "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not done.stderr or "loud" in options, done.stderr
        return done.returncode, done.stdout

    def passes(self, keys: str, environment: dict[str, str] | None = None, **options: object) -> list[str]:
        code, output = self.start("passes", keys, environment or {}, **options)
        assert code == 0, output
        return output.splitlines()

    def parity(self, keys: str, environment: dict[str, str] | None = None, **options: object) -> tuple[int, str]:
        return self.start("parity", keys, environment or {}, **options)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keyed") / "kernels.image"
    make_kernels(path, PROGRAMS / "sim_kernels.c")
    return path


@pytest.fixture(scope="module")
def built(image: Path) -> Path:
    # An emulator has no room for the shadow of all memory.
    options = SANITIZE if not sanitized() and not emulation.active() else ()
    sources = [PROGRAMS / "keyed_program.c", *SOURCES]
    return compile_program(image.with_name("program"), sources, *link_simulator(), "-rdynamic", *options)


@pytest.fixture(scope="module", params=["c", "python"])
def program(request: pytest.FixtureRequest, image: Path) -> Program:
    if request.param == "c":
        return Program([str(request.getfixturevalue("built"))], image)
    return Program([sys.executable, str(PROGRAMS / "keyed_program.py")], image)


@pytest.mark.parametrize("standard", ["c89", "c11"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_sources_are_c89(source: Path, standard: str, tmp_path: Path) -> None:
    flags = (f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2")
    run_tool("cc", *flags, "-c", source, "-o", tmp_path / "out.o")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_sources_are_cpp_too(source: Path, tmp_path: Path) -> None:
    run_tool("c++", "-x", "c++", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", tmp_path / "out.o")


def test_each_way_to_run_a_pass(program: Program) -> None:
    assert program.passes("2:1,2:1,2:1,2:7,2:7,6:1,6:1,2:7,2:1,6:1") == [
        "eager captured replayed updated replayed eager captured replayed updated replayed",
        "restored 0 dropped 0 refused 0 emptied 0 held 2",
    ]


def test_the_least_recently_used_graph_makes_room(program: Program) -> None:
    assert program.passes("1:1,1:1,2:1,2:1,1:1,3:1,3:1,1:1,2:1,2:1", most=2) == [
        "eager captured eager captured replayed eager captured replayed eager captured",
        "restored 0 dropped 2 refused 0 emptied 0 held 2",
    ]


def test_graphs_that_were_made_ready_are_used_in_that_order(program: Program) -> None:
    assert program.passes("3:1,2:1,3:1", warm="1:1,2:1,3:1", most=2)[3:] == [
        "replayed replayed replayed",
        "restored 0 dropped 1 refused 0 emptied 0 held 2",
    ]


def test_dedicated_execs(program: Program) -> None:
    assert program.passes("2:1,2:1,2:2,2:1,2:3,2:1,2:3,2:2", dedicated=2) == [
        "eager captured captured replayed captured replayed replayed captured",
        "restored 0 dropped 2 refused 0 emptied 0 held 2",
    ]


def test_a_single_dedicated_exec(program: Program) -> None:
    assert program.passes("2:1,2:1,2:2,2:3,2:3", dedicated=1)[0] == "eager captured captured captured replayed"


def test_a_refused_update_makes_another_exec(program: Program) -> None:
    failing = {"FOUNDRY_SIM_FAIL": "cuGraphExecUpdate_v2:1:910"}
    assert program.passes("2:1,2:1,2:2,2:3,2:3", failing) == [
        "eager captured captured updated replayed",
        "restored 0 dropped 0 refused 1 emptied 0 held 1",
    ]


def test_an_update_that_the_driver_finds_impossible(program: Program) -> None:
    # The key lacks nothing that moves: rows decide the launches, and stand in the wrong part of the key.
    assert program.passes("2:1,2:1,2:1", hidden=1)[0] == "eager captured replayed"


def test_below_the_floor_nothing_is_held(program: Program) -> None:
    assert program.passes("2:1,2:1,2:1", {"FOUNDRY_SIM_MEMORY": str(64 << 20)}, floor=100 << 20) == [
        "eager eager eager",
        "restored 0 dropped 0 refused 0 emptied 0 held 0",
    ]


SMALL = {"FOUNDRY_SIM_MEMORY": str(64 << 20)}


def test_memory_that_runs_low_empties_the_cache_at_the_next_capture(program: Program) -> None:
    assert program.passes("2:1,2:1,6:1,2:1,6:1,2:1", SMALL, floor=32 << 20, hog=3) == [
        "eager captured eager replayed eager eager",
        "restored 0 dropped 0 refused 0 emptied 1 held 0",
    ]


def test_memory_that_runs_low_empties_a_cache_that_only_replays(program: Program) -> None:
    ways, counts = program.passes(",".join(["2:1"] * 70), SMALL, floor=32 << 20, hog=3)
    assert ways.split() == ["eager", "captured"] + ["replayed"] * 61 + ["eager"] * 7
    assert counts == "restored 0 dropped 0 refused 0 emptied 1 held 0"


@pytest.mark.parametrize(("failing", "cleared"), [("cuGraphExecUpdate_v2:1:910", 1), ("cuMemAlloc_v2:9", 0)])
def test_the_runtimes_error_is_cleared_after_a_refusal_only(
    built: Path, image: Path, failing: str, cleared: int
) -> None:
    program = Program([str(built)], image)
    environment = {"FOUNDRY_SIM_FAIL": failing, "TELL_CLEARED": "1"}
    assert program.passes("2:1,2:1,2:2", environment)[1] == f"cleared {cleared}"


def test_instantiation_without_memory_empties_the_cache(program: Program) -> None:
    failing = {"FOUNDRY_SIM_FAIL": "cuGraphInstantiateWithFlags:2:2"}
    assert program.passes("2:1,2:1,6:1,6:1,2:1,2:1", failing) == [
        "eager captured eager captured eager captured",
        "restored 0 dropped 0 refused 0 emptied 1 held 2",
    ]
    failing = {"FOUNDRY_SIM_FAIL": "cuGraphInstantiateWithFlags:1+:2"}
    assert program.passes("2:1,2:1,2:1", failing)[0] == "eager eager eager"


@pytest.mark.parametrize("unsafe", ["told", "ignored"])
def test_a_pass_that_cannot_be_recorded_runs_eagerly(program: Program, unsafe: str) -> None:
    # It waits for its stream. Whoever does not look at the result is told at the end of the capture.
    assert program.passes("2:1,2:1,2:1", unsafe=unsafe, loud=1)[0] == "eager eager eager"


def test_a_stream_that_does_not_record_is_no_harm(program: Program) -> None:
    failing = {"FOUNDRY_SIM_FAIL": "cuStreamBeginCapture_v2:1"}
    assert program.passes("2:1,2:1,2:1,6:1,6:1", failing, loud=1)[0] == "eager eager eager eager captured"


def test_another_error_of_the_driver_is_told(program: Program) -> None:
    (line,) = program.passes("2:1,2:1", {"FOUNDRY_SIM_FAIL": "cuGraphLaunch:1:719"})
    assert line.split()[-4:] == ["error", "719", "cuGraphLaunch:", "CUDA_ERROR_LAUNCH_FAILED"]


def test_nothing_is_left_behind(program: Program, tmp_path: Path) -> None:
    report = tmp_path / "report"
    program.passes(KEYS, {"FOUNDRY_SIM_REPORT": str(report)}, most=1)
    alive = [line for line in report.read_text().splitlines() if line.startswith("alive")]
    assert not [line for line in alive if "graph " in line], alive


EQUAL = (
    "parity of test: equal: 8 rounds (1 replayed, 3 updated, 2 captured, 2 eager), 2 seams crossed, "
    "512 bytes compared, 1 of 1 controls caught\n"
)


def test_parity(program: Program) -> None:
    assert program.parity(KEYS) == (0, EQUAL)


def test_parity_names_what_differs(program: Program) -> None:
    code, line = program.parity(KEYS, hidden=1)
    assert code == 1
    assert line.startswith(
        "parity of test: different: round 4 (replayed), output numbers at byte 0: 0400000004000000 through the graph, "
        "0600000006000000 eagerly; 4 rounds (2 replayed, 0 updated, 1 captured, 1 eager), "
    )


def test_parity_refuses_a_control_that_passes(program: Program) -> None:
    code, line = program.parity(KEYS, blind=1)
    assert code == 3
    assert line.startswith(
        "parity of test: refused: the control passes: without amount in the key all is equal, too; does a round change "
        "amount alone?; 8 rounds "
    )
    assert line.endswith("0 of 1 controls caught\n")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("2:1,2:1,2:1", "no round crosses a seam of rows"),
        ("2:1,2:1,6:3", "no round was replayed or updated"),
        ("2:1,2:1,2:1,6:3", "no round was updated"),
        ("2:1,2:3,2:4,6:3", "no round was replayed"),
    ],
)
def test_parity_refuses_rounds_that_prove_nothing(program: Program, keys: str, reason: str) -> None:
    code, line = program.parity(keys)
    assert code == 3
    assert line.startswith(f"parity of test: refused: {reason}")


def test_parity_of_a_warm_cache_runs_an_empty_twin_too(program: Program) -> None:
    code, line = program.parity(KEYS, warm="2:1,6:3")
    assert code == 0
    assert line.startswith("parity of test: equal: 16 rounds (6 replayed, 6 updated, 2 captured, 2 eager), ")


def test_parity_of_dedicated_execs(program: Program) -> None:
    code, line = program.parity(KEYS, dedicated=4)
    assert code == 0
    assert " 0 updated" in line
    assert line.endswith("1 of 1 controls caught\n")


def test_parity_leaves_out_what_it_is_told(program: Program) -> None:
    assert program.parity(KEYS, control="amount") == (0, EQUAL)
    code, line = program.parity(KEYS, control="rows")
    assert code == 0, line


@pytest.fixture(scope="module")
def archive(program: Program, tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, Path, str]:
    folder = tmp_path_factory.mktemp("restored") / "work"
    folder.mkdir()
    commands = CommandLine(folder, native.hook_library().parent)
    commands.environment.update(command_environment())
    path = folder / "keyed.fdry"
    words = program.command("passes", "6:3,6:3,2:1,2:4,2:5,2:1", warm="6:3,2:1", inputs="one two")
    done = commands.run("capture", "--sim", "-o", path, "--", *words)
    assert done.returncode == 0, done.stderr
    return commands, path, done.stdout


def test_a_capture_updates_no_exec_that_it_keeps(archive: tuple[CommandLine, Path, str]) -> None:
    commands, path, output = archive
    assert output.splitlines() == [
        "warm yes",
        "warm yes",
        "replayed replayed replayed captured updated updated",
        "restored 0 dropped 0 refused 0 emptied 0 held 2",
    ]
    (process,) = json.loads(commands.run("inspect", "--json", path).stdout)["processes"]
    assert (process["graphs"], process["restorable"]) == (2, 2)


def test_a_restored_cache_starts_warm(program: Program, archive: tuple[CommandLine, Path, str]) -> None:
    commands, path, _ = archive
    allow = ("--allow", "mismatch-arguments")
    words = program.command("passes", "6:3,2:1,2:1,2:9,2:9,2:9,6:3,2:1", warm="6:3,2:1", inputs="one two")
    done = commands.run("restore", "--sim", *allow, path, "--", *words, environment={"FOUNDRY_SIM_SEED": "91"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "warm yes",
        "warm yes",
        "replayed replayed replayed eager updated replayed replayed updated",
        "restored 2 dropped 0 refused 0 emptied 0 held 2",
    ]
    assert "2 graphs restored" in done.stderr


def test_restored_graphs_with_forks_are_updated_in_place(program: Program, tmp_path: Path) -> None:
    # Two members of one group, of which the second is rewritten from the first.
    commands = CommandLine(tmp_path, native.hook_library().parent)
    commands.environment.update(command_environment())
    words = program.command("passes", "6:3,2:1,2:1,2:9,2:9,6:5,6:5,6:6,2:2", warm="6:3,2:1", forked=1)
    done = commands.run("capture", "--sim", "-o", "a.fdry", "--", *words)
    assert done.returncode == 0, done.stderr
    (process,) = json.loads(commands.run("inspect", "--json", "a.fdry").stdout)["processes"]
    assert (process["graphs"], process["restorable"], process["groups"]) == (2, 2, 1)
    done = commands.run("restore", "--sim", "a.fdry", "--", *words)
    assert done.stdout.splitlines()[2:] == [
        "replayed replayed replayed eager updated eager updated updated updated",
        "restored 2 dropped 0 refused 0 emptied 0 held 2",
    ], done.stderr


def test_a_restored_graph_that_made_room_is_not_taken_for_what_it_was(
    program: Program, archive: tuple[CommandLine, Path, str]
) -> None:
    commands, path, _ = archive
    words = program.command("passes", "2:1,2:9,2:9,6:3,2:9,2:1,2:1", most=1, inputs="one two")
    done = commands.run("restore", "--sim", "--allow", "mismatch-arguments", path, "--", *words)
    assert done.stdout.splitlines() == [
        "replayed eager updated replayed replayed eager updated",
        "restored 3 dropped 2 refused 0 emptied 0 held 1",
    ], done.stderr


def test_a_restored_graph_that_refused_an_update_is_not_taken_for_what_it_was(
    program: Program, archive: tuple[CommandLine, Path, str]
) -> None:
    commands, path, _ = archive
    words = program.command("passes", "2:1,2:9,2:9,6:3,2:1,2:1", most=1, inputs="one two")
    refusing = {"FOUNDRY_SIM_FAIL": "cuGraphExecUpdate_v2:1:910"}
    restoring = ("restore", "--sim", "--allow", "mismatch-arguments", path)
    done = commands.run(*restoring, "--", *words, environment=refusing)
    assert done.stdout.splitlines() == [
        "replayed eager captured replayed eager updated",
        "restored 3 dropped 2 refused 1 emptied 0 held 1",
    ], done.stderr


def test_a_cache_that_is_opened_again_knows_what_became_of_restored_graphs(
    program: Program, archive: tuple[CommandLine, Path, str]
) -> None:
    commands, path, _ = archive
    words = program.command("passes", "2:1,2:9,2:9,2:1,2:1,2:1", inputs="one two", reopen=3)
    done = commands.run("restore", "--sim", "--allow", "mismatch-arguments", path, "--", *words)
    assert done.stdout.splitlines() == [
        "replayed eager updated eager updated replayed",
        "restored 1 dropped 0 refused 0 emptied 0 held 1",
    ], (done.stdout, done.stderr)


def test_two_caches_of_one_name_share_no_restored_graph(
    program: Program, archive: tuple[CommandLine, Path, str]
) -> None:
    commands, path, _ = archive
    words = program.command("passes", "2:1,2:1,2:9,2:1,2:9,2:1,2:9,2:1", inputs="one two", two=1)
    done = commands.run("restore", "--sim", "--allow", "mismatch-arguments", path, "--", *words)
    assert done.stdout.splitlines() == [
        "replayed eager eager captured updated replayed replayed replayed",
        "restored 1 dropped 0 refused 0 emptied 0 held 1",
    ], (done.stdout, done.stderr)


def test_graphs_whose_moving_values_had_other_names_are_not_taken_for_these(
    program: Program, archive: tuple[CommandLine, Path, str]
) -> None:
    commands, path, _ = archive
    if program.words[0] == sys.executable:
        return  # in Python the names stand in the metadata beside their values
    words = program.command("passes", "2:1,2:1", inputs="one two", renamed="scale")
    done = commands.run("restore", "--sim", "--allow", "mismatch-arguments", path, "--", *words)
    assert done.stdout.splitlines()[0] == "eager captured", done.stderr


@pytest.mark.parametrize("options", [{"reopen": 3}, {"two": 1}], ids=["again", "two"])
def test_a_graph_goes_into_an_archive_once(program: Program, options: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    commands = CommandLine(tmp_path / "work", native.hook_library().parent)
    commands.environment.update(command_environment())
    words = program.command("passes", "2:1,2:1,2:1,2:3,2:3,2:3", **options)
    done = commands.run("capture", "--sim", "-o", "a.fdry", "--", *words)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "error" not in done.stdout
    inspected = json.loads(commands.run("inspect", "--json", "--graphs", "a.fdry").stdout)
    assert [(row["set"], row["key"], row["restorable"]) for row in inspected["graphs"]] == [("test", "rows=2", True)]


def test_an_update_adds_graphs_of_new_shapes_and_leaves_the_others_as_they_are(
    program: Program, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    commands = CommandLine(tmp_path / "work", native.hook_library().parent)
    commands.environment.update(command_environment())
    words = program.command("passes", "")
    updating = {"KEYED_KEYS": "2:1,2:3,2:3,2:3,6:5,6:5,6:7,6:7"}
    done = commands.run("capture", "--sim", "-o", "a.fdry", "--", *words, environment={"KEYED_KEYS": "2:1,2:1"})
    assert done.stdout.splitlines()[0] == "eager captured", done.stderr
    done = commands.run("capture", "--sim", "--update", "a.fdry", "--", *words, environment=updating)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "replayed eager captured replayed eager captured captured replayed",
            "restored 1 dropped 0 refused 0 emptied 0 held 2",
        ],
    ), done.stderr
    assert "foundry: 1 graph added\n" in done.stderr
    again = {"KEYED_KEYS": "6:5,2:1,6:5"}
    done = commands.run("restore", "--sim", "a.fdry", "--", *words, environment=again)
    assert done.stdout.splitlines() == [
        "replayed replayed replayed",
        "restored 2 dropped 0 refused 0 emptied 0 held 2",
    ], done.stderr


def test_graphs_for_other_inputs_are_captured_anew(program: Program, archive: tuple[CommandLine, Path, str]) -> None:
    commands, path, _ = archive
    words = program.command("passes", "2:1,2:1", warm="6:3,2:1", inputs="others")
    done = commands.run("restore", "--sim", "--allow", "mismatch-arguments", path, "--", *words)
    assert done.stdout.splitlines()[2:] == ["replayed replayed", "restored 0 dropped 0 refused 0 emptied 0 held 2"]


def test_restored_graphs_are_compared_too(program: Program, archive: tuple[CommandLine, Path, str]) -> None:
    commands, path, _ = archive
    words = program.command("parity", KEYS, warm="6:3,2:1", inputs="one two")
    done = commands.run("restore", "--sim", "--allow", "mismatch-arguments", path, "--", *words)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.startswith("parity of test: equal: 16 rounds ")


def test_dedicated_graphs_that_are_kept_are_at_most_as_many_as_can_be_held(program: Program, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    commands = CommandLine(tmp_path / "work", native.hook_library().parent)
    commands.environment.update(command_environment())
    words = program.command("passes", "2:1,2:2,2:3,2:4,2:3", dedicated=2, most=2)
    done = commands.run("capture", "--sim", "-o", "a.fdry", "--", *words)
    assert done.stdout.splitlines()[0] == "eager captured captured captured replayed", done.stderr
    (process,) = json.loads(commands.run("inspect", "--json", "a.fdry").stdout)["processes"]
    assert process["graphs"] == 2


@pytest.mark.parametrize(("dedicated", "last", "held"), [(0, "eager", 1), (4, "replayed", 2)])
def test_addresses_of_a_key_move_with_the_memory(
    program: Program, tmp_path: Path, dedicated: int, last: str, held: int
) -> None:
    (tmp_path / "work").mkdir()
    commands = CommandLine(tmp_path / "work", native.hook_library().parent)
    commands.environment.update(command_environment())
    words = program.command("passes", "2:1,2:1,2:3", warm="2:1", pointer=1, dedicated=dedicated)
    done = commands.run("capture", "--sim", "--prove", "-o", "a.fdry", "--", *words)
    assert done.returncode == 0, done.stderr
    taken = {"FOUNDRY_SIM_FAIL": "cuMemAddressReserve:1"}
    done = commands.run("restore", "--sim", "a.fdry", "--", *words, environment=taken)
    assert done.stdout.splitlines()[1:] == [
        f"replayed replayed {last}",
        f"restored {held} dropped 0 refused 0 emptied 0 held {held}",
    ], done.stderr
