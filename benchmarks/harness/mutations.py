"""Random edits of real source files, each with a typical mistake of models.

The outcome has to be the intended file or a refusal. `python -m benchmarks.harness.mutations
--count 3000 --seed 1` prints how often each slip was corrected, and every edit that went wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import itertools
import os
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import ToolError
from acp_agent.tools.editing.replace import Edit, apply_edits
from acp_agent.workspace.file_io import TextFile

LARGEST = 60_000  # bytes of a file
_TRIES = 200  # edits, until one is found in which a slip makes a difference
_WORD = re.compile(r"[A-Za-z_]{3,}")

Result = Literal["applied", "refused", "wrong", "exact elsewhere"]


class Trial(Struct, frozen=True):
    """An edit with a slip, and its outcome."""

    slip: str
    path: Path
    old: str
    new: str
    intended: str
    found: str
    result: Result


def _lines(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) if line else line for line in text.split("\n"))


def _dedent(text: str) -> str:
    """Without the indentation that all lines share."""
    return _lines(lambda line: line[_margin(text) :])(text)


def _margin(text: str) -> int:
    widths = [len(line) - len(line.lstrip(" \t")) for line in text.split("\n") if line.strip()]
    return min(widths, default=0)


def _leading(wanted: str, other: str) -> Callable[[str], str]:
    def change(line: str) -> str:
        body = line.lstrip(" \t")
        return line[: len(line) - len(body)].replace(wanted, other) + body

    return _lines(change)


def _numbered(mark: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        lines = text.split("\n")
        last = len(lines) - 1 if text.endswith("\n") else len(lines)
        return "\n".join(
            f"{at + 10}{mark}{line}" if at < last else line for at, line in enumerate(lines)
        )

    return change


def _curly(text: str) -> str:
    text = re.sub(r'"([^"\n]*)"', "“\\1”", text)
    return re.sub(r"'([^'\n]*)'", "‘\\1’", text)


# The spaces of a line that the change adds are as the call has them.
_SIGN = re.compile(r"(?<=\w)(?<!added)(?<!more) ?([=+:|]) ?(?=\w)")
# What is done to `old`, and with the same slip to `new`.
SLIPS: Mapping[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "spaces at the ends of lines": _lines(lambda line: line + "  "),
    "lines stripped": _lines(lambda line: line.rstrip(" \t")),
    "dedented": _dedent,
    "four spaces more": _lines(lambda line: "    " + line),
    "two spaces more": _lines(lambda line: "  " + line),
    "a tab more": _lines(lambda line: "\t" + line),
    "tabs for four spaces": _leading("    ", "\t"),
    "tabs for two spaces": _leading("  ", "\t"),
    "four spaces for tabs": _leading("\t", "    "),
    "two spaces for four": _leading("    ", "  "),
    "four spaces for two": _leading("  ", "    "),
    "no final line feed": lambda text: text.removesuffix("\n"),
    "a line feed more": lambda text: text + "\n",
    "a line feed before": lambda text: "\n" + text,
    "curly quotes": _curly,
    "straight quotes": lambda text: text.translate(str.maketrans("“”‘’", "\"\"''")),
    "en dashes": lambda text: text.replace(" - ", " – "),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "entities": html.escape,
    "entities unescaped": html.unescape,
    "line numbers and tabs": _numbered("\t"),
    "line numbers and arrows": _numbered("→"),
    "line numbers and bars": _numbered(" | "),
    "escaped quotes": lambda text: text.replace('"', '\\"'),
    "escaped line feeds": lambda text: text.replace("\n", "\\n"),
    "escaped twice": lambda text: (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    ),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "single spaces": lambda text: re.sub(r"(?<=\S) {2,}(?=\S)", " ", text),
    "no spaces around signs": lambda text: re.sub(
        r"(?<=\w)(?<!added)(?<!more) ?([=+:|]) ?(?=\w)", r"\1", text
    ),
    "spaces within brackets": lambda text: re.sub(r"\((\w+)\)", r"( \1 )", text),
    "other quotes": lambda text: text.translate(str.maketrans("\"'", "'\"")),
}


def sources() -> list[Path]:
    """Files of the standard library, of npm if it is installed, and this project's documents."""
    root = Path(__file__).resolve().parents[2]
    found = [*Path(os.__file__).parent.glob("*.py"), *(root / "docs").glob("*.md")]
    if npm := shutil.which("npm"):
        folder = Path(npm).resolve().parents[1]
        found += [*folder.glob("lib/**/*.js"), *folder.glob("docs/content/**/*.md")]
    return sorted(path for path in found if 200 < path.stat().st_size < LARGEST)


def trials(seed: int, count: int) -> Iterator[Trial]:
    """Yield edits of random files, with each kind of slip in turn."""
    chance = random.Random(seed)
    files = sources()
    texts: dict[Path, str] = {}
    slips = itertools.cycle(SLIPS)
    made = 0
    while made < count:
        slip = next(slips)
        for _ in range(_TRIES):
            path = chance.choice(files)
            text = texts.setdefault(path, path.read_text("utf-8", "replace").replace("\r", ""))
            unit = _unit(text)
            if chance.random() < 0.1:  # few of these files are indented with tabs
                text, unit = _leading(unit, "\t")(text), "\t"
            trial = _trial(chance, path, text, unit, slip)
            if trial is not None:
                made += 1
                yield trial
                break


def _unit(text: str) -> str:
    """The usual indentation of a level in a file."""
    widths = [len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()]
    steps = Counter(after - before for before, after in itertools.pairwise(widths))
    return " " * max((4, 2), key=lambda width: steps[width])


def _trial(chance: random.Random, path: Path, text: str, unit: str, slip: str) -> Trial | None:
    lines = [line + "\n" for line in text.split("\n")]
    start = chance.randrange(len(lines))
    old = "".join(lines[start : start + chance.choice((1, 1, 2, 3, 5, 8, 12))])
    if not old.strip() or text.count(old) != 1:
        return None
    new = _change(chance, old, unit)
    slipped_old, slipped_new = SLIPS[slip](old), SLIPS[slip](new)
    if new == old or (slipped_old == old and slip != "none") or slipped_old == slipped_new:
        return None
    if slip == "dedented" and _margin(old) != _margin(new):
        return None  # no longer one shift for both
    if _levels(slipped_new) < _levels(new) and "\n" in slipped_new.strip():
        return None  # two levels became one: nobody can know
    intended = text.replace(old, new)
    digest = hashlib.sha256(text.encode()).hexdigest()
    file = TextFile(path=str(path), text=text, digest=digest)
    # An exact place wins; where that is another text than was meant, nobody can know.
    is_exact = slip not in ("none", "CRLF") and slipped_old in text
    try:
        edits = [Edit(old=slipped_old, new=slipped_new)]
        found = apply_edits(file, edits, path.name).text
    except ToolError as error:
        found, result = str(error), "refused"
    else:
        result = "applied" if found == intended else "exact elsewhere" if is_exact else "wrong"
    return Trial(slip, path, slipped_old, slipped_new, intended, found, result)  # type: ignore[arg-type]  # mypy joins the literals to a string


def _change(chance: random.Random, old: str, unit: str) -> str:
    """A change as models make them: a word, a line more, a line less, a block within another."""
    lines = old.splitlines(keepends=True)
    at = chance.choice([at for at, line in enumerate(lines) if line.strip()])
    line = lines[at]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    match chance.randrange(4):
        case 0 if words := _WORD.findall(line):
            lines[at] = line.replace(chance.choice(words), "renamed", 1)
        case 1 if len(lines) > 1:
            del lines[at]
        case 2:
            lines.insert(at, f"{indent}added = 1\n")
        case _:
            lines.insert(at + 1, f"{indent}if added:\n{indent}{unit}more = 2\n")
    return "".join(lines)


def _levels(text: str) -> int:
    """How many different indentations a text has."""
    lines = (line for line in text.split("\n") if line.strip())
    return len({line[: len(line) - len(line.lstrip(" \t\u00a0"))] for line in lines})


def main(arguments: list[str]) -> int:
    """Print a table by slip and what went wrong; return 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="how many wrong ones are printed")
    given = parser.parse_args(arguments)
    results: Counter[tuple[str, str]] = Counter()
    wrong = []
    for trial in trials(given.seed, given.count):
        results[trial.slip, trial.result] += 1
        if trial.result == "wrong":
            wrong.append(trial)
    print("| slip | applied | refused | wrong | exact elsewhere |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for slip in SLIPS:
        shares = [results[slip, one] for one in ("applied", "refused", "wrong", "exact elsewhere")]
        print(f"| {slip} | {' | '.join(map(str, shares))} |")
    for trial in wrong[: given.show]:
        print(f"\n{trial.slip} in {trial.path}\nold {trial.old!r}\nnew {trial.new!r}")
        _print_difference(trial.intended, trial.found)
    print(f"\n{len(wrong)} of {given.count} went wrong")
    return bool(wrong)


def _print_difference(intended: str, found: str) -> None:
    pairs = zip(intended.splitlines(), found.splitlines(), strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), -1)
    for name, text in (("intended", intended), ("found", found)):
        print(f"{name} from line {at + 1}: {text.splitlines()[at : at + 4]!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
