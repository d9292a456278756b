"""The C interface as engines take it: headers, the functions that the hook exports, and the shim without a hook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers.native_build import PROGRAMS, base_environment, cc, compile_program, cxx, preloads, run_tool, sanitized
from helpers.source import NATIVE, ROOT

import foundry
from foundry import capi, native

HEADERS = NATIVE / "capi"
NAMES = ("foundry_capi.h", "foundry_embed.h", "foundry.h")
KEPT = ROOT / "tests" / "data" / "capi" / "interface.txt"
STRICT = ("-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wstrict-aliasing=2")
LANGUAGES = {
    "c89": ("c", "-std=c89"),
    "c11": ("c", "-std=c11", "-O2", "-Wmissing-prototypes"),
    "c++98": ("c++", "-std=c++98"),
    "c++20": ("c++", "-std=c++20", "-O2"),
}


def compiler_of(language: str) -> list[str]:
    kind, *flags = LANGUAGES[language]
    return [cc() if kind == "c" else cxx(), "-x", kind, *flags, *STRICT, "-I", str(HEADERS)]


def declarations(header: str) -> list[str]:
    """What a header declares, one declaration a line, and the numbers that it defines."""
    alone = () if header == "foundry_capi.h" else ("-DFOUNDRY_CAPI_H=",)
    plain = run_tool(cc(), "-E", "-P", "-DFOUNDRY_API=", "-include", "stdint.h", *alone, HEADERS / header)
    own = plain.replace("\n", " ").split(";")
    found = [re.sub(r"\s+", " ", text).strip() for text in own]
    macros = run_tool(cc(), "-E", "-dM", *alone, HEADERS / header)
    found += [line for line in macros.splitlines() if re.match(r"#define FOUNDRY_\w+ \(?-?\d+\)?$", line)]
    return sorted(f"{text};" if not text.startswith("#") else text for text in found if "foundry" in text.lower())


def kept() -> list[str]:
    return [line for line in KEPT.read_text().splitlines() if line and not line.startswith("//")]


def functions(lines: list[str]) -> set[str]:
    return {match[1] for line in lines if (match := re.search(r"\b(foundry_\w+)\(", line))}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", NAMES)
def test_each_header_stands_alone_in_strict_c_and_cpp(language: str, header: str, tmp_path: Path) -> None:
    source = tmp_path / "only.c"
    source.write_text(f'#include "{header}"\n#include "{header}"\nint only;\n')
    run_tool(*compiler_of(language), "-c", source, "-o", tmp_path / "only.o")


@pytest.mark.parametrize("order", [("foundry_capi.h", "foundry.h"), ("foundry.h", "foundry_embed.h")])
def test_an_order_that_cannot_work_is_refused(order: tuple[str, str], tmp_path: Path) -> None:
    source = tmp_path / "late.c"
    source.write_text("".join(f'#include "{name}"\n' for name in order))
    with pytest.raises(AssertionError, match="must come before it"):
        run_tool(*compiler_of("c11"), "-fmax-errors=1", "-c", source, "-o", tmp_path / "late.o")


def test_the_interface_is_the_kept_one() -> None:
    """A line that changes or goes needs another FOUNDRY_CAPI_VERSION; one that is new is added to the list."""
    declared = declarations("foundry_capi.h") + declarations("foundry_embed.h")
    assert declared == kept()


@pytest.mark.skipif(sanitized(), reason="a sanitized library exports its runtime's names, too")
def test_the_hook_exports_what_the_header_declares() -> None:
    symbols = run_tool("nm", "-D", "--defined-only", native.hook_library()).splitlines()
    exported = {name for line in symbols if (name := line.split()[-1]).startswith("foundry_")}
    assert exported == functions(declarations("foundry_capi.h"))


def test_python_speaks_of_functions_that_the_header_declares() -> None:
    assert set(capi._SIGNATURES) <= functions(declarations("foundry_capi.h"))


def test_the_shim_has_each_function_with_its_parameters() -> None:
    shim = (HEADERS / "foundry.h").read_text()
    named = re.findall(r"^FOUNDRY_(?:ANSWER|FUNCTION)\([\w *]+, (foundry_\w+),", shim, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == functions(declarations("foundry_capi.h"))


def test_get_include_names_the_folder_of_the_headers() -> None:
    told = {path.name: path.read_bytes() for path in Path(foundry.get_include()).glob("foundry*.h")}
    assert told == {name: (HEADERS / name).read_bytes() for name in NAMES}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("shim") / "shim"
    return compile_program(output, [PROGRAMS / "capi_shim.c"], f"-I{HEADERS}", "-std=c89", "-pedantic")


def told(program: Path, *preloaded: str) -> list[str]:
    environment = {**base_environment(), "LD_PRELOAD": " ".join(preloaded)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


ABSENT = [
    "version 0",
    "mode 0",
    "scratch 0 0",
    "label 0 0",
    "find no, next no, key no, metadata no, exec no",
    "wait -1, launch -1",
    "counter 0, range 0",
    "check -1, row no",
    "commit 0",
    "reason there is no foundry hook in this process",
]


def test_without_a_hook_the_shim_does_nothing(shim: Path) -> None:
    assert told(shim) == ABSENT


def test_a_compiler_without_gccs_atomics_will_do(tmp_path: Path) -> None:
    # tcc is one.
    before = (
        "#include <dlfcn.h>\n#include <stdint.h>\n#include <stdio.h>\n#undef __GNUC__\n#define __atomic_load_n none\n"
    )
    source = tmp_path / "plain.c"
    source.write_text(f'{before}#include "{PROGRAMS / "capi_shim.c"}"\n')
    program = compile_program(tmp_path / "plain", [source], f"-I{HEADERS}", "-std=c89", "-pedantic")
    assert told(program) == ABSENT


def test_a_hook_of_another_version_is_as_none(shim: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int foundry_capi_version(void) { return 77; }\nint foundry_mode(void) { return 2; }\n")
    other = compile_program(tmp_path / "other.so", [source], "-shared", "-fPIC")
    assert told(shim, str(other)) == ABSENT


def test_an_older_hook_may_lack_functions(shim: Path, tmp_path: Path) -> None:
    source = tmp_path / "older.c"
    source.write_text("int foundry_capi_version(void) { return 1; }\nint foundry_mode(void) { return 1; }\n")
    older = compile_program(tmp_path / "older.so", [source], "-shared", "-fPIC")
    assert told(shim, str(older)) == ["version 1", "mode 1", *ABSENT[2:]]


def test_with_the_hook_the_shim_is_the_hook(shim: Path) -> None:
    assert told(shim, *preloads()) == [
        "version 1",
        "mode 0",
        "scratch 0 0",
        "label 0 0",
        "find no, next no, key no, metadata no, exec no",
        "wait -2, launch -2",
        "counter 7, range 0",
        "check -1, row yes",
        "commit -1",
        "reason the hook is not armed",
    ]


def test_a_reason_is_one_line_whatever_names_it_holds(tmp_path: Path) -> None:
    source = tmp_path / "lines.c"
    source.write_text(
        "#include <foundry.h>\n#include <stdio.h>\n"
        'int main(void) { foundry_image_check("/no\\nwhere\\x1b[1m"); puts(foundry_reason()); return 0; }\n'
    )
    program = compile_program(tmp_path / "lines", [source], f"-I{HEADERS}")
    assert told(program, *preloads()) == ["cannot open `/no?where?[1m`: No such file or directory"]


EXAMPLES = [
    pytest.param(text, id=f"{path.parent.name}-{number}")
    for path in (NATIVE / "ENGINES.md", NATIVE / "embed" / "README.md")
    for number, text in enumerate(re.findall(r"```c\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("language", ["c89", "c++20"])
def test_the_examples_of_the_documents_compile(text: str, language: str, tmp_path: Path) -> None:
    source = tmp_path / "example.c"
    source.write_text(f"#include <stdio.h>\n#include <string.h>\n{text}")
    run_tool(*compiler_of(language), f"-I{NATIVE / 'keyed'}", "-c", source, "-o", tmp_path / "example.o")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4
