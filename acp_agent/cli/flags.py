"""The words on the command line of a serving process."""

from __future__ import annotations

from typing import NamedTuple

# What may follow the program's name instead of a command.
KNOWN_FLAGS = (
    "--model", "--trace", "--listen", "--login", "--help", "--version", "--print",
)  # fmt: skip
USAGES = ("--model PROVIDER/NAME", "--trace FILE", "-p PROMPT")


class ServeFlags(NamedTuple):
    """What the command line says; `unknown` are the words that mean nothing to us."""

    model: str | None
    trace: str | None
    unknown: tuple[str, ...]


def read_flags(argv: list[str]) -> ServeFlags:
    """Read `--model NAME` and `--trace FILE`, with a blank or `=`; others are tolerated.

    Written by hand because argparse takes longer to import than `initialize` may take.
    """
    known: dict[str, str] = {}
    unknown: list[str] = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in {"--model", "--trace"}:
            unknown.append(word)
        elif equals:
            known[name] = value
        else:
            known[name] = next(words, "")
    return ServeFlags(known.get("--model") or None, known.get("--trace") or None, tuple(unknown))
