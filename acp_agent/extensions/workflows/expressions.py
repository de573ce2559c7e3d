"""The conditions of steps: a small language that only compares texts.

    or:      and ("or" and)*
    and:     not ("and" not)*
    not:     "not" not | comparison
    compare: value (("==" | "!=" | "contains") value)?
    value:   text in quotes | number | true | false | reference | function() | "(" or ")"

`&&`, `||`, `!` and `contains(a, b)` mean the same, as in other programs' workflows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from acp_agent.errors import ConfigError

MAX_CONDITION_LENGTH = 2_000  # characters of a condition
_MAX_DEPTH = 40  # levels of parentheses and negations
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*'|"[^"]*")
      | (?P<number>-?\d+(?:\.\d+)?(?![\w.-]))
      | (?P<word>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)
      | (?P<mark>==|!=|&&|\|\||[!(),])
    )""",
    re.VERBOSE,
)
_SYNONYMS = {"&&": "and", "||": "or", "!": "not"}
_WRAPPED_CONDITION = re.compile(r"\s*\$\{\{?(?P<inner>[^{}]*)\}?\}\s*")

Function = Literal["success", "failure", "always"]
Operator = Literal["==", "!=", "contains", "and", "or"]
_FUNCTIONS: tuple[Function, ...] = ("success", "failure", "always")
_COMPARISONS: Mapping[str, Operator] = {"==": "==", "!=": "!=", "contains": "contains"}


class Constant(Struct, frozen=True):
    """A constant: a text, number or truth value, stored as text."""

    text: str


class Reference(Struct, frozen=True):
    """A value of the run, such as `steps.build.output`."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        """Return the reference as written."""
        return ".".join(self.path)


class StatusCheck(Struct, frozen=True):
    """A check of the run's status so far."""

    function: Function


class Negation(Struct, frozen=True):
    """The negation of a condition."""

    value: Expression


class Operation(Struct, frozen=True):
    """An operator with two operands."""

    operator: Operator
    left: Expression
    right: Expression


Expression: TypeAlias = Constant | Reference | StatusCheck | Negation | Operation


class Values(Protocol):
    """The values that a condition can read."""

    def value(self, reference: Reference) -> str:
        """Return the value of a reference; "" if there is none yet."""

    @property
    def failed(self) -> bool:
        """Return whether an earlier step failed."""


def parse_expression(text: str) -> Expression:
    """Return the condition in a text; `${{ … }}` around it is ignored.

    Raises:
        ConfigError: the text is not a condition.
    """
    if len(text) > MAX_CONDITION_LENGTH:
        raise ConfigError("if: the condition is longer than 2,000 characters; shorten it")
    wrapped = _WRAPPED_CONDITION.fullmatch(text)
    parser = _Parser(list(_tokens(wrapped["inner"] if wrapped else text)))
    expression = parser.parse_condition()
    parser.expect_end()
    return expression


def references(expression: Expression) -> Iterator[Reference]:
    """Yield the references in a condition."""
    match expression:
        case Reference():
            yield expression
        case Negation(value=value):
            yield from references(value)
        case Operation(left=left, right=right):
            yield from references(left)
            yield from references(right)


def checks_status(expression: Expression) -> bool:
    """Return whether a condition checks the status, and so is evaluated after a failure, too."""
    match expression:
        case StatusCheck():
            return True
        case Negation(value=value):
            return checks_status(value)
        case Operation(left=left, right=right):
            return checks_status(left) or checks_status(right)
        case _:
            return False


def is_true(expression: Expression, values: Values) -> bool:
    """Return whether a condition is true. Empty texts, `false` and `0` count as false."""
    return _text(expression, values) not in {"", "false", "0"}


def _text(expression: Expression, values: Values) -> str:
    match expression:
        case Constant(text=text):
            return text
        case Reference():
            return values.value(expression).strip()
        case StatusCheck(function="always"):
            return "true"
        case StatusCheck(function=function):
            return _bool_text(values.failed == (function == "failure"))
        case Negation(value=value):
            return _bool_text(not is_true(value, values))
        case Operation(operator="and", left=left, right=right):
            return _bool_text(is_true(left, values) and is_true(right, values))
        case Operation(operator="or", left=left, right=right):
            return _bool_text(is_true(left, values) or is_true(right, values))
        case Operation(operator=operator, left=left, right=right):
            first, second = _text(left, values), _text(right, values)
            if operator == "contains":
                return _bool_text(second in first)
            return _bool_text((first == second) == (operator == "=="))


def _bool_text(truth: bool) -> str:
    return "true" if truth else "false"


class _Token(Struct, frozen=True):
    kind: Literal["text", "number", "word", "mark", "end"]
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            remainder = text[position:].strip()[:20]
            raise ConfigError(
                f"if: {remainder} is not understood; texts go in quotes, as in inputs.x == 'yes'"
            )
        position = match.end()
        if (quoted := match["text"]) is not None:
            inner = quoted[1:-1]
            yield _Token("text", inner.replace("''", "'") if quoted[0] == "'" else inner)
        elif (number := match["number"]) is not None:
            yield _Token("number", number)
        elif (word := match["word"]) is not None:
            yield _Token("word", word)
        else:
            yield _Token("mark", _SYNONYMS.get(match["mark"], match["mark"]))
    yield _Token("end", "")


class _Parser:
    """Parses a condition from left to right, one token ahead."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    def parse_condition(self) -> Expression:
        expression = self._parse_all()
        while self._take("or"):
            expression = Operation("or", expression, self._parse_all())
        return expression

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise self._unexpected()

    def _parse_all(self) -> Expression:
        expression = self._parse_negation()
        while self._take("and"):
            expression = Operation("and", expression, self._parse_negation())
        return expression

    def _parse_negation(self) -> Expression:
        if not self._take("not"):
            return self._parse_comparison()
        self._enter()
        expression = Negation(self._parse_negation())
        self._depth -= 1
        return expression

    def _parse_comparison(self) -> Expression:
        left = self._parse_value()
        for word, operator in _COMPARISONS.items():
            if self._take(word):
                return Operation(operator, left, self._parse_value())
        return left

    def _parse_value(self) -> Expression:
        token = self._next
        if token.kind in {"text", "number"}:
            self._position += 1
            return Constant(token.text)
        if token.kind == "word" and token.text not in {"and", "or", "not"}:
            self._position += 1
            return self._parse_word(token.text)
        if not self._take("("):
            raise self._unexpected()
        self._enter()
        expression = self.parse_condition()
        self._depth -= 1
        self._close()
        return expression

    def _parse_word(self, word: str) -> Expression:
        if word in {"true", "false"}:
            return Constant(word)
        if not self._take("("):
            if "." not in word:
                raise ConfigError(
                    f"if: {word} is not known here; write inputs.{word}, steps.{word}.output, or "
                    f"'{word}' for a text"
                )
            return Reference(tuple(word.split(".")))
        for function in _FUNCTIONS:
            if word == function:
                self._close()
                return StatusCheck(function)
        if word != "contains":
            raise ConfigError(
                f"if: there is no function {word}; use contains, success, failure or always"
            )
        self._enter()
        left = self.parse_condition()
        if not self._take(","):
            raise self._unexpected()
        right = self.parse_condition()
        self._depth -= 1
        self._close()
        return Operation("contains", left, right)

    def _close(self) -> None:
        if not self._take(")"):
            raise self._unexpected()

    @property
    def _next(self) -> _Token:
        return self._tokens[self._position]

    def _take(self, text: str) -> bool:
        if self._next.kind in {"word", "mark"} and self._next.text == text:
            self._position += 1
            return True
        return False

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ConfigError("if: the condition is nested too deeply; make it flat")

    def _unexpected(self) -> ConfigError:
        if self._next.kind == "end":
            return ConfigError("if: the condition ends too early; complete it")
        return ConfigError(
            f"if: {self._next.text[:40]} is not expected there; join comparisons with and, or, not"
        )
