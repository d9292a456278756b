"""C++ names of kernels for people, by the rules of the Itanium C++ ABI.

The names come out of archives, so a parse is bounded in depth and in the length of what it makes, and whatever it does
not know gives the name as it stands. No demangler of the system is asked: those of other machines know other things,
and a damaged name must not be able to end the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from foundry.describe.itanium import BUILTINS, LONG_BUILTINS, OPERATORS, STANDARD, SUFFIXES

LONGEST_NAME = 4096
LONGEST_TEXT = 1 << 14
DEEPEST = 120
MOST_STEPS = 1 << 14

Type = tuple[str, str]
"""A type as it stands before and after what it declares."""

Name = tuple[str, "list[str] | None", str, bool]
"""A name, its own template arguments, its qualifiers, and whether a return type follows the arguments."""


class _UnknownError(Exception):
    """The name is not one that we know how to read."""


@lru_cache(maxsize=4096)
def readable(name: str) -> str:
    """Write a name as C++ does; a name that is none of C++ stays as it is."""
    return _parsed(name, short=False)


@lru_cache(maxsize=4096)
def short(name: str) -> str:
    """Write a name without scopes, return type and parameters, for a list."""
    return _parsed(name, short=True)


def _parsed(name: str, *, short: bool) -> str:
    if not name.startswith("_Z") or len(name) > LONGEST_NAME:
        return name
    try:
        parser = _Parser(name, short)
        text = parser.encoding(scope=short)
        return text if parser.at == len(name) else name
    except (_UnknownError, IndexError, ValueError, RecursionError):
        return name


class _Parser:
    """One pass over a name. Substitutions are kept as texts."""

    def __init__(self, text: str, short: bool) -> None:
        self.text, self.at, self.short = text, 2, short
        self.seen: list[Type] = []
        self.arguments: list[str] = []
        self.lambdas = self.depth = self.steps = 0

    def encoding(self, *, scope: bool) -> str:
        """Read a name with its parameters. Inside a scope, C++ writes no return type."""
        outer = self.arguments
        name, arguments, qualifiers, plain = self.name()
        if self.peek() in ("", "E", "."):
            self.arguments = outer
            return name
        self.arguments = arguments if arguments is not None else []
        result = ("", "")
        if arguments is not None and plain:
            result = self.type()
        parameters = self.parameters()
        self.arguments = outer
        if self.short:
            return name
        front = f"{result[0]} " if result[0] and not scope else ""
        return self.bounded(f"{front}{name}({parameters}){qualifiers}" + ("" if scope else result[1]))

    def parameters(self) -> str:
        """Read parameter types up to an `E` or the end."""
        found = []
        while self.peek() not in ("", "E", "."):
            found.append("".join(self.type()))
        return "" if found == ["void"] else ", ".join(found)

    def name(self) -> Name:
        """Read a name."""
        with self.deeper():
            return self._name()

    def _name(self) -> Name:
        if self.take("N"):
            return self.nested()
        if self.take("Z"):
            return self.local()
        if self.peek() == "S" and self.peek(1) != "t":
            text = self.substitution()[0]
        else:
            standard = self.take("St")
            text, _ = self.component(None)
            text = f"std::{text}" if standard and not self.short else text
            if self.peek() == "I":
                self.remember((text, ""))
        if self.peek() != "I":
            return text, None, "", True
        arguments = self.template_arguments()
        return _instance(text, arguments), arguments, "", True

    def nested(self) -> Name:
        """Read a name in scopes."""
        qualifiers = ""
        while self.peek() in tuple("rVKRO"):
            letter = self.next()
            words = {"r": " restrict", "V": " volatile", "K": " const", "R": " &", "O": " &&"}
            qualifiers += words[letter]
        text, fresh, plain = "", False, True
        arguments: list[str] | None = None
        while not self.take("E"):
            if text and fresh:
                self.remember((text, ""))
            fresh = True
            letter = self.peek()
            if letter == "I":
                arguments = self.template_arguments()
                text = _instance(text, arguments)
                continue
            arguments = None
            if letter == "S" and self.peek(1) == "t":
                self.at += 2
                text, fresh = "" if self.short else "std", False
            elif letter == "S":
                text, fresh = self.substitution()[0], False
            elif letter == "T":
                text = self.template_parameter()
            else:
                part, plain = self.component(text)
                text = part if self.short or not text else f"{text}::{part}"
            self.bounded(text)
        return text, arguments, qualifiers, plain

    def local(self) -> Name:
        """Read something that was declared in a function."""
        function = self.encoding(scope=True)
        self.expect("E")
        entity, arguments, qualifiers, plain = "string literal", None, "", True
        if not self.take("s"):
            if self.take("d"):
                self.number()
                self.expect("_")
            entity, arguments, qualifiers, plain = self.name()
        if self.take("__"):
            self.number()
            self.expect("_")
        elif self.peek() == "_" and self.peek(1).isdigit():
            self.at += 2
        if self.short:
            lambda_only = entity.startswith("{lambda") or entity == "operator()"
            entity = "lambda" if lambda_only else entity
        return self.bounded(f"{function}::{entity}"), arguments, qualifiers, plain

    def component(self, scope: str | None) -> tuple[str, bool]:
        """Read one part of a name, and tell whether a template of it has a return type."""
        self.take("L")
        letter = self.peek()
        if letter.isdigit():
            text, plain = self.source(), True
        elif letter == "U":
            text, plain = self.unnamed(), True
        elif letter == "C" and self.peek(1) in tuple("12345"):
            self.at += 2
            text, plain = _last(scope or ""), False
        elif letter == "D" and self.peek(1) in tuple("01245"):
            self.at += 2
            text, plain = "~" + _last(scope or ""), False
        elif self.take("cv"):
            text, plain = "operator " + "".join(self.type()), False
        else:
            code = self.text[self.at : self.at + 2]
            if code not in OPERATORS:
                raise _UnknownError
            self.at += 2
            text, plain = f"operator{OPERATORS[code]}", True
            if self.short and text == "operator()" and scope and "lambda" in scope:
                text = scope
        while self.take("B"):
            tag = self.source()
            text = text if self.short else f"{text}[abi:{tag}]"
        return text, plain

    def source(self) -> str:
        """Read a plain identifier."""
        size = self.number()
        text = self.text[self.at : self.at + size]
        if not size or len(text) != size:
            raise _UnknownError
        self.at += size
        return "(anonymous namespace)" if text.startswith("_GLOBAL__N") else text

    def unnamed(self) -> str:
        """Read a lambda, or a type without a name."""
        if self.take("Ut"):
            what = "unnamed type"
        elif self.take("Ul"):
            self.lambdas += 1
            what = f"lambda({self.parameters()})"
            self.lambdas -= 1
            self.expect("E")
        else:
            raise _UnknownError
        order = self.number() + 2 if self.peek().isdigit() else 1
        self.expect("_")
        return f"{{{what}#{order}}}"

    def template_arguments(self) -> list[str]:
        """Read template arguments."""
        self.expect("I")
        found: list[str] = []
        while not self.take("E"):
            if self.take("J"):
                pack = []
                while not self.take("E"):
                    pack.append(self.template_argument())
                found.append(", ".join(pack))
            else:
                found.append(self.template_argument())
        return found

    def template_argument(self) -> str:
        """Read one template argument."""
        if self.take("X"):
            text = self.literal() if self.peek() == "L" else self.template_parameter()
            self.expect("E")
            return text
        return self.literal() if self.peek() == "L" else "".join(self.type())

    def literal(self) -> str:
        """Read a constant."""
        self.expect("L")
        if self.take("_Z"):
            text = self.encoding(scope=True)
            self.expect("E")
            return text
        letter = self.peek()
        kind = "".join(self.type())
        sign = "-" if self.take("n") else ""
        value = str(self.number())
        self.expect("E")
        if letter == "b" and value in "01":
            return ("false", "true")[int(value)]
        if letter in SUFFIXES:
            return f"{sign}{value}{SUFFIXES[letter]}"
        return f"({kind}){sign}{value}"

    def type(self) -> Type:
        """Read a type and remember it."""
        with self.deeper():
            return self._type()

    def _type(self) -> Type:
        letter = self.peek()
        if letter in BUILTINS:
            self.at += 1
            return BUILTINS[letter], ""
        for code, text in LONG_BUILTINS.items():
            if self.take(code):
                return text, ""
        if letter == "S" and self.peek(1) != "t":
            found = self.substitution()
            if self.peek() != "I":
                return found
            return self.remember((_instance(found[0], self.template_arguments()), ""))
        if self.take("Dp"):
            if self.peek() != "T":
                raise _UnknownError
            return self.remember((self.template_parameter(), ""))
        return self.remember(self._compound(letter))

    def _compound(self, letter: str) -> Type:
        if letter in tuple("rVK"):
            words = ""
            while self.peek() in tuple("rVK"):
                words = {"r": " restrict", "V": " volatile", "K": " const"}[self.next()] + words
            front, back = self.type()
            return front + words, back
        if letter in tuple("PRO"):
            self.at += 1
            mark = {"P": "*", "R": "&", "O": "&&"}[letter]
            front, back = self.type()
            if mark != "*" and front.endswith("&"):
                return front.rstrip("&") + ("&&" if front.endswith("&&") and mark == "&&" else "&"), back
            if back.startswith((" (", " [")) and not front.endswith(("(*", "(&", "(&&")):
                return f"{front} ({mark}", f"){back.lstrip()}" if back.startswith(" (") else f"){back}"
            return front + mark, back
        if self.take("F"):
            self.take("Y")
            front, back = self.type()
            parameters = self.parameters()
            self.expect("E")
            return front + back, f" ({parameters})"
        if self.take("A"):
            size = str(self.number()) if self.peek().isdigit() else ""
            self.expect("_")
            front, back = self.type()
            return front, f" [{size}]{back.lstrip()}"
        if letter == "T":
            text = self.template_parameter()
            return (_instance(text, self.template_arguments()) if self.peek() == "I" else text), ""
        if letter == "u":
            self.at += 1
            return self.source(), ""
        return self.name()[0], ""

    def template_parameter(self) -> str:
        """Read a reference to a template argument."""
        self.expect("T")
        index = self.number() + 1 if self.peek().isdigit() else 0
        self.expect("_")
        if self.lambdas:
            return f"auto:{index + 1}"
        if index >= len(self.arguments):
            raise _UnknownError
        return self.arguments[index]

    def substitution(self) -> Type:
        """Read a reference to what came before."""
        self.expect("S")
        letter = self.peek()
        if letter in STANDARD:
            self.at += 1
            return STANDARD[letter].removeprefix("std::" if self.short else "\0"), ""
        end = self.text.index("_", self.at)
        digits = self.text[self.at : end]
        if digits != digits.upper() or not (digits.isalnum() or not digits):
            raise _UnknownError
        self.at = end + 1
        return self.seen[int(digits, 36) + 1 if digits else 0]

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Count a part inside another, and give up beyond the limits."""
        self.depth += 1
        self.steps += 1
        if self.depth > DEEPEST or self.steps > MOST_STEPS:
            raise _UnknownError
        try:
            yield
        finally:
            self.depth -= 1

    def remember(self, kind: Type) -> Type:
        """Keep what later parts may refer to."""
        self.bounded(kind[0] + kind[1])
        self.seen.append(kind)
        return kind

    def bounded(self, text: str) -> str:
        """Refuse a text past the limit."""
        if len(text) > LONGEST_TEXT:
            raise _UnknownError
        return text

    def peek(self, ahead: int = 0) -> str:
        """Look at a character; empty at the end."""
        return self.text[self.at + ahead : self.at + ahead + 1]

    def next(self) -> str:
        """Take a character."""
        self.at += 1
        return self.text[self.at - 1]

    def take(self, wanted: str) -> bool:
        """Take that text if it stands here."""
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) if found else 0
        return found

    def expect(self, wanted: str) -> None:
        """Take that text, or give up."""
        if not self.take(wanted):
            raise _UnknownError

    def number(self) -> int:
        """Read a decimal number."""
        start = self.at
        while self.peek() in tuple("0123456789"):
            self.at += 1
        if start == self.at or self.at - start > 20:
            raise _UnknownError
        return int(self.text[start : self.at])


def _instance(name: str, arguments: list[str]) -> str:
    inside = ", ".join(argument for argument in arguments if argument)
    return f"{name}<{inside}{' ' if inside.endswith('>') else ''}>"


def _last(scope: str) -> str:
    return scope.partition("<")[0].rpartition("::")[2]
