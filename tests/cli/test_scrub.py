"""`capture --scrub`: noise goes where a replay gives the same without it, and nowhere else."""

from __future__ import annotations

import json
import shlex
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import noisy_program
from helpers.commandline import CommandLine, processes_with, read_until

import foundry
from foundry import archive, native
from foundry.findings import SCRUB_KEPT, SCRUBBED
from foundry.model import Capture, Process

HELPERS = Path(noisy_program.__file__).parent
MAKER = Path(foundry.__file__).parent / "native" / "sim" / "make_image.py"
CANARY = noisy_program.CANARY


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("image") / "noisy.fsim"
    subprocess.run([sys.executable, MAKER, made, HELPERS / "noisy_kernels.c"], check=True)
    return made


@pytest.fixture
def command(tmp_path: Path, image: Path) -> CommandLine:
    made = CommandLine(tmp_path, native.library_directory())
    made.environment |= {"FOUNDRY_SIM_SEED": "3", "NOISY": str(image)}
    return made


def words(command: CommandLine, *keys: str) -> list[str]:
    return [sys.executable, str(HELPERS / "noisy_program.py"), command.environment["NOISY"], *keys]


def capture(
    command: CommandLine, *keys: str, options: tuple[str, ...] = ("--scrub", "-o", "a.fdry"), **environment: str
) -> tuple[int, str, str]:
    (command.work / "runs").unlink(missing_ok=True)
    done = command.run("capture", "--sim", *options, "--", *words(command, *keys), environment=environment)
    return done.returncode, done.stdout, done.stderr


def restore(command: CommandLine, *keys: str, options: tuple[str, ...] = ("--check", "a.fdry")) -> tuple[str, int]:
    given = ("restore", "--sim", "--report", "r.json", *options, "--", *words(command, *keys))
    done = command.run(*given, environment={"FOUNDRY_SIM_SEED": "9"})
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((command.work / "r.json").read_text())["graphs_restored"]


def written(command: CommandLine) -> Capture:
    return archive.read(command.work / "a.fdry")


def process_of(command: CommandLine) -> Process:
    (process,) = written(command).processes
    return process


def noise_in(path: Path) -> bool:
    """Whether any word of the string on the stack is in what the archive holds, unpacked or not."""
    found = archive.read(path)
    everything = path.read_bytes() + b"".join([*found.blobs, *(each.parameters.tobytes() for each in found.processes)])
    return any(CANARY[at : at + 8] in everything for at in range(0, len(CANARY), 8))


def told(found: Capture) -> list[tuple[str, str, str]]:
    """What scrubbing told: code, graph, text."""
    return [(each.code, each.where.partition(", ")[2], each.text) for each in found.findings if "scrub" in each.code]


def test_noise_that_no_kernel_reads_is_not_in_the_archive(command: CommandLine) -> None:
    code, plain, _ = capture(command, "quiet", "quiet.2", options=("-o", "plain.fdry"))
    assert (code, noise_in(command.work / "plain.fdry")) == (0, True)
    code, output, errors = capture(command, "quiet", "quiet.2", options=("--scrub", "--json", "-o", "a.fdry"))
    assert (code, output) == (0, plain), errors
    assert (command.work / "runs").read_text() == "xxx"
    assert (
        "foundry: running the command once more, with what may be noise in its graphs made zero, to compare" in errors
    )
    assert "foundry:   scrubbed: 2 of 2 graphs, 82 bytes of noise made zero, " in errors
    report = json.loads(errors.splitlines()[-1])
    assert report["scrub"].pop("archive_bytes_before") > 0
    assert report["scrub"] == {"graphs": 2, "scrubbed": 2, "bytes": 82}
    assert report["error"] is None
    assert report["proof"] == {"graphs": 2, "proven": 2, "words": 2, "noise": 12}
    assert not noise_in(command.work / "a.fdry")
    assert told(written(command)) == [
        (SCRUBBED, "", "noise of 2 graphs is zero (82 bytes): replays gave the same without it")
    ]
    blocks = process_of(command).parameters.tobytes()
    assert blocks[8:64] == struct.pack("<QQQQQQQ", 0, 0, 0, 0, 0, 0, 5)
    assert blocks[72:128] == struct.pack("<QQQQQQQ", 100, 0, 0, 0, 0, 0, 5)
    assert restore(command, "quiet", "quiet.2") == (plain, 2)
    assert command.run("verify", "--deep", "a.fdry").returncode == 0
    assert command.left_overs() == []


def test_what_the_code_of_a_kernel_does_not_read_goes_even_if_it_is_the_same_in_both_runs(command: CommandLine) -> None:
    code, output, errors = capture(command, "idle", "idle.2", options=("--scrub", "-o", "a.fdry"))
    assert code == 0, errors
    blocks = process_of(command).parameters.tobytes()
    assert (blocks[8:64], blocks[72:128]) == (bytes(56), (100).to_bytes(56, "little"))
    assert restore(command, "idle", "idle.2") == (output, 2)


def test_a_graph_that_reads_its_noise_keeps_it(command: CommandLine) -> None:
    code, output, errors = capture(command, "quiet", "reads", "flags")
    assert code == 3
    assert "error: 2 of 3 graphs kept what may be noise: " in errors
    differs = "without noise: witness-differs: memory[0] is not what it was at the capture"
    assert told(written(command))[1:] == [
        (SCRUB_KEPT, "graph `noisy` `reads`", differs),
        (SCRUB_KEPT, "graph `noisy` `flags`", differs),
    ]
    blocks = [process_of(command).parameters.tobytes()[at * 64 : at * 64 + 64] for at in range(3)]
    assert [CANARY in block for block in blocks] == [False, True, True]
    assert restore(command, "quiet", "reads", "flags") == (output, 3)
    assert command.run("verify", "--deep", "a.fdry").returncode == 0


def test_a_number_in_front_of_noise_stays_and_the_noise_goes(command: CommandLine) -> None:
    code, output, errors = capture(command, "low", "quiet")
    assert code == 0, errors
    assert (command.work / "runs").read_text() == "xxxx"
    assert "with the bytes of its graphs that differ between runs made zero" in errors
    blocks = process_of(command).parameters.tobytes()
    assert (blocks[48:56], blocks[112:120]) == ((0x7F0000000044).to_bytes(8, "little"), bytes(8))
    assert restore(command, "low", "quiet") == (output, 2)
    assert not noise_in(command.work / "a.fdry")


def test_each_process_is_compared_with_its_own_witness(command: CommandLine) -> None:
    """Of two ranks one has a graph that reads its noise: that graph keeps it, and all others lose theirs."""
    (command.work / "0").mkdir()
    (command.work / "1").mkdir()
    ranks = " & ".join(
        f"(cd {rank} && RANK={rank} exec {shlex.join(words(command, *keys))})"
        for rank, keys in enumerate((("quiet", "quiet.2"), ("quiet", "reads")))
    )
    run = ("bash", "-c", f"{ranks} & wait")
    done = command.run("capture", "--sim", "--scrub", "--json", "-o", "a.fdry", "--", *run)
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stderr.splitlines()[-1])
    assert (report["scrub"]["graphs"], report["scrub"]["scrubbed"]) == (4, 3)
    assert [(code, text) for code, text, _ in told(written(command)) if code == SCRUB_KEPT] == [
        (SCRUB_KEPT, "graph `noisy` `reads`")
    ]
    first, second = written(command).processes
    assert (first.role, second.role) == ("rank-0", "rank-1")
    kept = [
        [CANARY in process.parameters.tobytes()[at * 64 : at * 64 + 64] for at in range(2)]
        for process in (first, second)
    ]
    assert kept == [[False, False], [False, True]]
    given = ("restore", "--sim", "--check", "--report", "r.json", "a.fdry", "--", *run)
    restored = command.run(*given, environment={"FOUNDRY_SIM_SEED": "9"})
    assert restored.returncode == 0, restored.stderr
    assert json.loads((command.work / "r.json").read_text())["graphs_restored"] == 4
    assert sorted(restored.stdout.splitlines()) == sorted(done.stdout.splitlines())


def test_a_graph_that_cannot_be_compared_keeps_its_noise(command: CommandLine) -> None:
    code, _, _ = capture(command, "quiet", "quiet.blind")
    assert code == 3
    text = "without noise: witness-missing: the program names no memory for a witness"
    assert told(written(command))[1:] == [(SCRUB_KEPT, "graph `noisy` `quiet.blind`", text)]


@pytest.mark.parametrize(
    ("keys", "third", "text"),
    [
        (("quiet",), "sys.exit(9)", "without noise the command ended with exit code 9"),
        (("quiet", "breaks"), "", "without noise the command ended with signal 6 (SIGABRT)"),
        (("quiet",), "os.environ['LD_PRELOAD'] = ''; os.execv(sys.executable, [sys.executable, '-c', ''])",
         "the command did not ask for it when it ran without noise"),
    ],
)  # fmt: skip
def test_a_third_run_that_goes_wrong_leaves_the_archive_as_it_was(
    command: CommandLine, keys: tuple[str, ...], third: str, text: str
) -> None:
    code, output, errors = capture(command, *keys, THIRD=third)
    assert code == 3
    assert f"error: {len(keys)} of {len(keys)} graph" in errors
    assert [each[::2] for each in told(written(command))] == [
        (SCRUBBED, "no noise was made zero"),
        *[(SCRUB_KEPT, text)] * len(keys),
    ]
    assert noise_in(command.work / "a.fdry")
    assert restore(command, *keys) == (output, len(keys))
    assert command.left_overs() == []


def test_images_that_cannot_be_made_leave_the_archive_as_it_was(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import sys; from foundry import image; from foundry.cli.main import main\n"
        "def fail(*_, **__): raise OSError(28, 'No space left on device')\n"
        "image.build = fail; main()"
    )
    given = ["capture", "--sim", "--scrub", "-o", "a.fdry", "--", *words(command, "quiet")]
    done = subprocess.run(
        [sys.executable, "-c", program, *given],
        cwd=command.work,
        env=command.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    assert (command.work / "runs").read_text() == "xx"
    ((_, _, text),) = [each for each in told(written(command)) if each[0] == SCRUB_KEPT]
    assert text.startswith("the command could not be run without noise: cannot write the restore images of ")
    assert text.endswith(": No space left on device")
    assert command.left_overs() == []


def test_without_noise_there_is_no_third_run(command: CommandLine) -> None:
    server = Path(__file__).resolve().parents[1] / "engines" / "decode_server.py"
    given = ("capture", "--sim", "--scrub", "-o", "a.fdry", "--", sys.executable, server, "--once", "--quiet")
    done = command.run(*given)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("running the command once more") == 1
    assert told(written(command)) == [(SCRUBBED, "", "no noise was found")]


def test_an_archive_without_noise_is_smaller(command: CommandLine) -> None:
    keys = [f"quiet.{at}" for at in range(40)]
    code, _, errors = capture(command, *keys, options=("--scrub", "--json", "-o", "a.fdry"))
    assert code == 0, errors
    report = json.loads(errors.splitlines()[-1])
    assert report["bytes"] < report["scrub"]["archive_bytes_before"]
    assert report["scrub"]["scrubbed"] == 40


def test_it_goes_into_the_store_and_is_found_there(command: CommandLine) -> None:
    code, output, errors = capture(command, "quiet", options=("--scrub",))
    assert code == 0, errors
    (path,) = command.archives()
    assert not noise_in(path)
    assert restore(command, "quiet", options=()) == (output, 1)


def test_thin_and_scrubbed(command: CommandLine) -> None:
    code, output, errors = capture(command, "quiet", options=("--scrub", "--thin", "-o", "a.fdry"))
    assert code == 0, errors
    assert not noise_in(command.work / "a.fdry")
    assert restore(command, "quiet") == (output, 1)


def test_an_interrupted_third_run_leaves_nothing_but_the_archive(command: CommandLine) -> None:
    third = "print('third', file=sys.stderr, flush=True); import time; time.sleep(600)"
    command.environment["THIRD"] = third
    process = command.start("capture", "--sim", "--scrub", "-o", "a.fdry", "--", *words(command, "quiet"))
    read_until(process.stderr, "third\n")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 3, errors
    assert "without noise the command ended with signal 2 (SIGINT)" in errors
    assert noise_in(command.work / "a.fdry")
    assert command.left_overs() == []
    assert processes_with(command.environment["NOISY"]) == []
    assert sorted(path.name for path in command.work.iterdir()) == ["a.fdry", "runs"]


def test_inspect_says_what_is_scrubbed(command: CommandLine) -> None:
    capture(command, "quiet", "reads")
    shown = command.run("inspect", "a.fdry").stdout
    assert "noise     1 graph kept what may be noise in parameters: `--findings` says why\n" in shown
    graph = command.run("inspect", "a.fdry", "--graph", "quiet")
    assert "noise       zero, as far as it could be told\n" in graph.stdout, graph
    shown = command.run("inspect", "a.fdry", "--graph", "reads").stdout
    assert "noise       kept: without noise: witness-differs: memory[0] is not what it was" in shown
    found = [
        json.loads(command.run("inspect", "a.fdry", "--graph", key, "--json").stdout) for key in ("quiet", "reads")
    ]
    assert [each["noise"][:6] for each in found] == ["zero", "kept: "]
    assert "note scrub-kept: 1\n" in command.run("inspect", "a.fdry", "--findings").stdout
    capture(command, "quiet", options=("--scrub", "--force", "-o", "a.fdry"))
    shown = command.run("inspect", "a.fdry").stdout
    assert "noise     made zero in parameters: replays gave the same without it\n" in shown


@pytest.mark.parametrize("other", ["--witness", "--thin"])
def test_a_proof_goes_together_with(command: CommandLine, other: str) -> None:
    code, _, errors = capture(command, "quiet", options=("--prove", other, "-o", "a.fdry"))
    assert code == 0, errors
    assert "proven: 1 of 1 graph, " in errors


def test_what_the_later_runs_print_goes_to_standard_error(command: CommandLine) -> None:
    _, output, errors = capture(command, "quiet")
    assert output == "quiet [5, 6, 7]\n"
    assert errors.count(output) == 2
