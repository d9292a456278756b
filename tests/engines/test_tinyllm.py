"""The C engine without foundry: CPU path against numpy, the simulator against the CPU path, graphs against eager."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy
import pytest
from engines.tinyllm import reference
from helpers.tinyllm import CONTEXT, FOLDER, KEYS, PROMPTS, SWITCH, Engine, generation

LONG = "Graphs are replayed, pages move. " * 14
"""Far into the second chunk of positions; with the tokens behind it, into the third."""
KINDS = pytest.mark.parametrize("temperature", [0, 0.9], ids=["greedy", "sampled"])
COUNTS = pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS], ids=["one", "four"])
LAUNCHES = {1: 1 + 2 * 17 + 2, 2: 1 + 2 * 18 + 2}
"""Kernels of a pass of the two layers, by chunks: from two chunks on, attention has a merge."""


@pytest.fixture(scope="module")
def model(engine: Engine) -> reference.Model:
    return reference.Model(engine.model)


@pytest.fixture(scope="module")
def tokenizer(engine: Engine) -> reference.Tokenizer:
    return reference.Tokenizer(engine.model)


@pytest.mark.parametrize(
    "text", ["", "a", "The pages of the cache", "  two  blanks ", "line\nline", "Größe naïve 東京", "\t\x01\x7f", LONG]
)
def test_texts_become_the_tokens_of_the_reference(engine: Engine, tokenizer: reference.Tokenizer, text: str) -> None:
    tokens = json.loads(engine.start("--encode", text).stdout)
    assert tokens == tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text.encode()


@pytest.mark.parametrize("text", ["the" * 700, "e" * 301 + "th" * 200, "ngraphsgraphthe" * 60])
def test_long_words_become_the_tokens_of_the_reference(
    engine: Engine, tokenizer: reference.Tokenizer, text: str
) -> None:
    assert json.loads(engine.start("--encode", text).stdout) == tokenizer.encode(text)


def test_a_very_long_word_is_no_work_for_minutes(engine: Engine) -> None:
    assert len(json.loads(engine.start("--encode", "the" * 40000).stdout)) > 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: Is a directory"),
        (b"t h\nth e r\n", "merge 2 is not two tokens"),
        (b"t h\nqx t\n", "merge 2 joins tokens that come later"),
        (b"t h\n" + b" " * 1021 + b"a b\n", "a line is longer than 1022 bytes"),
        (b"t h\na b\0c d\n", "a line holds a NUL"),
        (b"x" * 255 + b"a\n", "merge 1 is not two tokens"),
        (b"t \xff\n", "merge 1 is not two tokens"),
    ],
)
def test_damaged_merges_are_named(engine: Engine, tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "merges.txt"
    path.mkdir() if content is None else path.write_bytes(content)
    done = engine.start("--encode", "x", model=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tinyllm: `{path}`{' ' if message.startswith('cannot') else ': '}{message}\n"


def test_merges_shorten_texts(tokenizer: reference.Tokenizer) -> None:
    assert len(tokenizer.encode(LONG)) < 0.8 * len(LONG)


@pytest.mark.parametrize("prompt", [PROMPTS[0], PROMPTS[3], LONG[:430], LONG], ids=["short", "wide", "seam", "long"])
def test_logits_of_the_cpu_path_are_those_of_numpy(
    engine: Engine, model: reference.Model, tokenizer: reference.Tokenizer, prompt: str
) -> None:
    tokens = tokenizer.encode(prompt)
    found = engine.reference(*generation((prompt,), 4, 0), "--logits").lines[0]["logits"]
    expected = model.logits(tokens)
    assert numpy.abs(expected).max() > 1
    numpy.testing.assert_allclose(found, expected, atol=2e-4)


def test_greedy_tokens_of_the_cpu_path_are_those_of_numpy(
    engine: Engine, model: reference.Model, tokenizer: reference.Tokenizer
) -> None:
    tokens = engine.reference(*generation(PROMPTS, 24, 0)).tokens()
    assert tokens == [model.greedy(tokenizer.encode(prompt), 24) for prompt in PROMPTS]


def test_sampled_tokens_of_the_cpu_path_are_those_of_numpy(
    engine: Engine, model: reference.Model, tokenizer: reference.Tokenizer
) -> None:
    tokens = engine.reference(*generation(PROMPTS, 24, 0.9)).tokens()
    prompts = [tokenizer.encode(prompt) for prompt in PROMPTS]
    assert tokens == [model.sampled(prompt, 24, 0.9, 5 + index) for index, prompt in enumerate(prompts)]


def test_the_text_is_that_of_the_tokens(engine: Engine, tokenizer: reference.Tokenizer) -> None:
    for line in engine.reference(*generation(PROMPTS, 24, 0)).lines:
        plain = tokenizer.decode(line["tokens"]).decode(errors="replace")
        assert line["text"].replace("�", "") == plain.replace("�", "")


@KINDS
def test_tokens_do_not_depend_on_the_window(engine: Engine, temperature: float) -> None:
    options = generation(PROMPTS[:2], 560, temperature)
    results = [engine.run("--device", "cpu", *options, "--window", str(window)) for window in (1, 2, 3, 4)]
    assert all(result.tokens() == results[0].tokens() for result in results)
    kept = [result.statistics["drafts_kept"] for result in results]
    assert kept[0] == 0
    assert temperature or 0 < kept[1] <= kept[3]
    assert results[3].statistics["passes"] < results[0].statistics["passes"]


@KINDS
def test_requests_do_not_see_each_other(engine: Engine, temperature: float) -> None:
    many = engine.reference(*generation(PROMPTS + PROMPTS, 300, temperature)).tokens()
    alone = engine.reference(*generation(PROMPTS[:1], 300, temperature)).tokens()
    assert many[0] == alone[0]
    assert many[:4] == engine.reference(*generation(PROMPTS, 300, temperature)).tokens()
    assert (many[4:] == many[:4]) is (not temperature), "another seed gives other tokens, greedy ones are the same"


def test_a_seed_gives_the_same_tokens_again_and_another_one_does_not(engine: Engine) -> None:
    first = engine.run("--device", "cpu", *generation(PROMPTS, 40, 0.9)).tokens()
    assert first == engine.run("--device", "cpu", *generation(PROMPTS, 40, 0.9)).tokens()
    other = engine.run("--device", "cpu", *generation(PROMPTS, 40, 0.9), "--seed", "6").tokens()
    assert all(one != two for one, two in zip(first, other, strict=True))


@KINDS
def test_rounds_answer_the_same_again(engine: Engine, temperature: float) -> None:
    options = ("--device", "cpu", *generation(PROMPTS[:2], 12, temperature))
    one, more = engine.run(*options), engine.run(*options, "--rounds", "3")
    assert more.tokens() == one.tokens()
    assert (len(one.statistics["rounds"]), len(more.statistics["rounds"])) == (1, 3)
    assert more.statistics["rounds"][0] == more.statistics["tokens_a_second"]
    assert more.statistics["passes"] == 3 * one.statistics["passes"]


@COUNTS
@KINDS
@pytest.mark.parametrize("switch", [{}, {SWITCH: "0"}, {SWITCH: "1"}], ids=["unset", "off", "on"])
def test_the_simulator_gives_the_tokens_of_the_cpu_path(
    engine: Engine, prompts: tuple[str, ...], temperature: float, switch: dict[str, str]
) -> None:
    options = generation(prompts, 600, temperature)
    result = engine.run(*options, **switch)
    expected = engine.reference(*options)
    assert result.tokens() == expected.tokens()
    assert all(len(tokens) == 600 for tokens in result.tokens())
    passes = expected.statistics["passes"]
    graphs = switch.get(SWITCH) == "1"
    counts = {"passes": passes, "eager": KEYS, "captured": KEYS, "replayed": passes, "restored": 0, "dropped": 0}
    if not graphs:
        counts |= {"eager": passes, "captured": 0, "replayed": 0}
    assert {name: result.statistics[name] for name in counts} == counts


@KINDS
def test_few_held_graphs_give_the_same_tokens(engine: Engine, temperature: float) -> None:
    options = generation((LONG, *PROMPTS[1:]), 200, temperature)
    result = engine.run(*options, "--held", "2", **{SWITCH: "1"})
    assert result.tokens() == engine.reference(*options).tokens()
    assert result.statistics["captured"] > 2
    assert result.statistics["dropped"] == result.statistics["captured"] - 2
    # What is captured ran launch by launch before. Two shapes were made ready without a pass of the run.
    found = result.statistics
    assert found["eager"] >= found["captured"]
    assert found["eager"] + found["captured"] + found["replayed"] == found["passes"] + 4


def calls(report: Path) -> dict[str, int]:
    lines = [line.split() for line in report.read_text().splitlines()]
    return {words[1]: int(words[2]) for words in lines if words[0] == "calls"}


def test_unset_and_off_make_exactly_the_launches_of_a_plain_run(engine: Engine, tmp_path: Path) -> None:
    options = generation((LONG,), 30, 0)
    reports: dict[str, Any] = {}
    for name, switch in {"unset": {}, "off": {SWITCH: "0"}, "on": {SWITCH: "1"}}.items():
        result = engine.run(*options, FOUNDRY_SIM_REPORT=str(tmp_path / name), **switch)
        reports[name] = calls(tmp_path / name)
    assert reports["unset"] == reports["off"]
    assert not [name for name in reports["unset"] if "Graph" in name or "Capture" in name]
    assert [name for name in reports["on"] if "Graph" in name]
    passes = result.statistics["passes"]
    first, last = LAUNCHES.values()
    assert passes * first < reports["unset"]["cuLaunchKernel"] < passes * last
    assert reports["on"]["cuLaunchKernel"] == 2 * (KEYS // 3) * (first + 2 * last)
    assert reports["on"]["cuGraphLaunch"] == passes


@pytest.mark.parametrize("value", ["", "2", "yes", "true", "01", " 1", "-0"])
def test_another_value_of_the_switch_is_refused_before_weights_load(engine: Engine, tmp_path: Path, value: str) -> None:
    options = ["--once", "--prompt", "x"]
    done = engine.start(*options, model=tmp_path / "missing", FOUNDRY_SIM_FAIL="cuInit:1", **{SWITCH: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tinyllm: TINYLLM_GRAPHS is `{value}`; it may be unset, 0 or 1\n"


def test_graphs_need_a_device(engine: Engine) -> None:
    done = engine.start("--device", "cpu", "--once", "--prompt", "x", **{SWITCH: "1"})
    assert (done.returncode, done.stderr) == (2, "tinyllm: TINYLLM_GRAPHS=1 needs --device cuda\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--once"], "--once needs a --prompt"),
        (["--once", "--prompt", "x", "--tokens", "640"], "prompt 1: prompt and tokens are longer than the context"),
        (["--tokens", "0"], "--tokens is `0`, not a whole number from 1 to 1e+06"),
        (["--window", "1.5"], "--window is `1.5`, not a whole number from 1 to 4"),
        (["--seed"], "`--seed` is no option, or its value is missing; --help lists them"),
        (["--what", "1"], "there is no option `--what`; --help lists them"),
        (["--device", "tpu"], "--device is `tpu`; it may be cuda or cpu"),
    ],
)
def test_what_cannot_be_is_refused(engine: Engine, options: list[str], message: str) -> None:
    done = engine.start(*options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tinyllm: {message}\n")


def test_a_request_may_fill_the_context(engine: Engine) -> None:
    options = generation(("x",), CONTEXT - 1, 0)
    assert engine.run(*options, **{SWITCH: "1"}).tokens() == engine.reference(*options).tokens()


def test_driver_errors_end_the_program_with_their_name(engine: Engine) -> None:
    done = engine.start("--once", "--prompt", "x", FOUNDRY_SIM_FAIL="cuLaunchKernel:7:719")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "tinyllm: cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED\n")


def damaged(content: bytes, how: str) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header, data = content[8 : 8 + length], content[8 + length :]
    if how == "empty":
        return b""
    if how == "cut":
        return content[:-100]
    if how == "long header":
        return (1 << 40).to_bytes(8, "little") + content[8:]
    if how == "no JSON":
        return content[:8] + header.replace(b"{", b"[") + data
    changes = {
        "other type": (b'"dtype":"I8"', b'"dtype":"U8"'),
        "other shape": (b'"shape":[64]', b'"shape":[63]'),
        "missing": (b'"layers.1.down"', b'"layers.1.donw"'),
        "no number": (b'"context":"640"', b'"context":"64O"'),
        "no whole number": (b'"context":"640"', b'"context":"6.5"'),
    }
    one, two = changes[how]
    assert one in header
    return content[:8] + header.replace(one, two) + data


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("empty", "is not a safetensors file"),
        ("cut", "does not lie in the file"),
        ("long header", "the header is too long"),
        ("no JSON", "the header is not a JSON object"),
        ("other type", "is not of type I8"),
        ("other shape", "has another shape"),
        ("missing", "has no tensor `layers.1.down`"),
        ("no number", "`context` is `64O`, not a whole number from 2 to 4096"),
        ("no whole number", "`context` is `6.5`, not a whole number from 2 to 4096"),
    ],
)
def test_damaged_weights_are_named(engine: Engine, tmp_path: Path, how: str, message: str) -> None:
    (tmp_path / "merges.txt").write_bytes((engine.model / "merges.txt").read_bytes())
    content = (engine.model / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(damaged(content, how))
    done = engine.start("--device", "cpu", "--once", "--prompt", "x", model=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tinyllm: `")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_kept_ptx_was_made_from_these_sources() -> None:
    kernels = FOLDER / "kernels"
    sources = (kernels / "gpu.cu").read_bytes() + (kernels / "row_math.h").read_bytes()
    ptx = (kernels / "gpu.ptx").read_text()
    assert ptx.splitlines()[-1] == f"// sources {hashlib.sha256(sources).hexdigest()}", "run kernels/remake_ptx.sh"
    assert "fma." not in ptx, "sums on a GPU are those of the CPU"


def test_the_same_seed_gives_the_same_weights(engine: Engine, tmp_path: Path) -> None:
    from engines.tinyllm.make_weights import write_model

    write_model(tmp_path / "again")
    write_model(tmp_path / "other", seed=2)
    contents = [(folder / "model.safetensors").read_bytes() for folder in (engine.model, tmp_path / "again")]
    assert contents[0] == contents[1] != (tmp_path / "other" / "model.safetensors").read_bytes()
