"""Secret detection: how many are found, how many false alarms, how fast."""

from __future__ import annotations

import random
import re
import string
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from acp_agent.workspace import scrub
from benchmarks.table import Row, row

_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "x": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
    "p": string.ascii_letters + string.digits + "!#$%*+-.:?@^_~",
    "3": string.ascii_uppercase + "234567",
    "age": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_PLACE = re.compile(r"<(\w+) (\d+)>")
_ORDINARY = (".py", ".toml", ".json", ".md", ".txt", ".js", ".ts", ".yaml", ".yml", ".sh", ".html")
_MEGABYTES = 20  # of ordinary text
_KNOWN = 20  # secrets that are searched by value


class Case(NamedTuple):
    """A secret in a text."""

    kind: str
    text: str
    secret: str


def cases(seed: int) -> Iterator[Case]:
    """Yield every secret of the corpus in every context, with values that follow from the seed."""
    chance = random.Random(seed)
    corpus = tomllib.loads((files(__package__) / "scrub_corpus.toml").read_text("utf-8"))
    contexts = corpus["contexts"]
    for group in ("formed", "named", "passwords"):
        for kind, shape in corpus[group].items():
            names = corpus["names"].get(group, ["value"])
            written = contexts["formed"] if group == "formed" else contexts["any"]
            for context in written:
                value = _PLACE.sub(lambda place: _random(chance, place), shape)
                name = chance.choice(names)
                text = context.format(name=name, NAME=_upper(name), value=value)
                yield Case(kind, text, _secret_part(shape, value))


def missed(seed: int) -> list[Case]:
    """Return the cases whose secret is still in the text afterwards."""
    return [case for case in cases(seed) if case.secret in scrub.scrub(case.text)]


def rows() -> list[Row]:
    """Measure what is found, what is taken for a secret, and the time."""
    every = len(list(cases(1)))
    lost = 100 * len(missed(1)) / every
    text = _ordinary()
    size = len(text) / 1e6
    alarms = scrub.scrub(text).count(scrub.REPLACEMENT) - text.count(scrub.REPLACEMENT)
    chance = random.Random(1)
    keys = frozenset(
        f"sk-proj-{''.join(chance.choices(_ALPHABETS['a'], k=60))}" for _ in range(_KNOWN)
    )
    return [
        row(f"secrets missed, of {every:,} written in many ways", "%", [lost], plus=1),
        row(f"else taken for one, in {size:.0f} MB of packages", "a MB", [alarms / size], plus=0.5),
        row("scrub 1 MB of packages", "ms", _times(text, frozenset()), plus=50),
        row(f"… with {_KNOWN} known keys", "ms", _times(text, keys), plus=50),
    ]


def _times(text: str, keys: frozenset[str]) -> list[float]:
    """Return how many ms of the processor each MB took, the first few MB."""
    scrub.scrub("", keys)
    times = []
    for start in range(0, 5_000_000, 1_000_000):
        began = time.process_time()
        scrub.scrub(text[start : start + 1_000_000], keys)
        times.append(1000 * (time.process_time() - began))
    return times


def _ordinary() -> str:
    """Return the text of installed packages, without those that are about credentials."""
    texts: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*")):
        if path.suffix in _ORDINARY and path.is_file() and "examples" not in path.name:
            text = path.read_text("utf-8", "replace")
            if len(text) < 1_000_000:
                texts.append(text)
                size += len(text)
        if size > _MEGABYTES * 1_000_000:
            break
    return "".join(texts)


def _random(chance: random.Random, place: re.Match[str]) -> str:
    return "".join(chance.choices(_ALPHABETS[place[1]], k=int(place[2])))


def _upper(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _secret_part(shape: str, value: str) -> str:
    """Return the longest part that was chosen by chance: what must not be seen."""
    places = list(_PLACE.finditer(shape))
    if not places:
        return value
    at = begin = 0
    best = ""
    for place in places:
        begin += place.start() - at
        length = int(place[2])
        if length > len(best):
            best = value[begin : begin + length]
        begin += length
        at = place.end()
    return best


if __name__ == "__main__":
    for case in missed(int(sys.argv[1]) if sys.argv[1:] else 1):
        print(case.kind, "|", case.text.strip())
