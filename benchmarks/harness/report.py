"""The corpus as a command and as a part of the benchmarks: its tables and its exit status."""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.harness.cases import APIS, Api, Case, load
from benchmarks.harness.judge import GRADES, Judgement
from benchmarks.harness.run import run
from benchmarks.table import Row, row

GOAL = 0.95  # the share of the best

Found = Mapping[Api, Sequence[Judgement]]


def main(arguments: list[str]) -> int:
    """Run the corpus; return 1 if a case went wrong or too few went best."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks harness", description=__doc__)
    parser.add_argument("--api", choices=APIS, action="append", help="only over this API")
    parser.add_argument("--only", metavar="PATTERN", default="", help="only cases named so (glob)")
    parser.add_argument(
        "--failures", action="store_true", help="show what happened in each case that is not best"
    )
    given = parser.parse_args(arguments)
    cases = selected(load(), given.only)
    found: dict[Api, list[Judgement]] = {}
    for api in given.api or APIS:
        began = time.perf_counter()
        found[api] = asyncio.run(run(cases, api))
        print(f"{api}: {len(found[api])} cases in {time.perf_counter() - began:.0f} s", flush=True)
    if given.failures:
        print(*_failures(found), sep="\n")
    print("\n" + table(found))
    return 0 if all(is_good(judged) for judged in found.values()) else 1


def selected(cases: Iterable[Case], pattern: str) -> list[Case]:
    """Those whose name or topic matches a glob pattern, or has it as a part."""
    wanted = f"*{pattern.casefold()}*"
    return [
        case
        for case in cases
        if fnmatch.fnmatchcase(f"{case.topic}: {case.name}".casefold(), wanted)
    ]


def is_good(judged: Sequence[Judgement]) -> bool:
    """Whether none went wrong and enough of them went best."""
    grades = Counter(one.grade for one in judged)
    return not grades["wrong"] and grades["best"] >= GOAL * len(judged)


def rows() -> list[Row]:
    """The shares of cases that did not go best, and that went wrong, over one API."""
    judged = asyncio.run(run(load(), "chat"))
    grades = Counter(one.grade for one in judged)
    missed = 100.0 * (len(judged) - grades["best"]) / len(judged)
    wrong = 100.0 * grades["wrong"] / len(judged)
    return [
        row(f"harness corpus, {len(judged)} cases: not the best", "%", [missed], plus=5),
        row("harness corpus: gone wrong", "%", [wrong], plus=1e-9),
    ]


def table(found: Found) -> str:
    """The grades by topic over all APIs, then by API, as Markdown."""
    lines = [
        "| topic | cases | best | refused | poor | wrong |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    everything = [one for judged in found.values() for one in judged]
    lines += [
        _line(topic, [one for one in everything if one.case.topic == topic])
        for topic in dict.fromkeys(one.case.topic for one in everything)
    ]
    lines += [_line(f"**{api}**", judged) for api, judged in found.items()]
    lines.append(_line("**all**", everything))
    return "\n".join(lines)


def _line(name: str, judged: Sequence[Judgement]) -> str:
    grades = Counter(one.grade for one in judged)
    shares = [
        f"{grades[grade]} ({100 * grades[grade] / max(1, len(judged)):.1f} %)" for grade in GRADES
    ]
    return f"| {name} | {len(judged)} | {' | '.join(shares)} |"


def _failures(found: Found) -> Iterable[str]:
    for api, judged in found.items():
        for one in judged:
            yield from describe(api, one)


def describe(api: Api, judged: Judgement) -> Iterable[str]:
    """What happened in a case, in lines; nothing if that was the best."""
    if judged.grade == "best":
        return
    yield f"\n[{judged.grade}] {api} · {judged.case.topic} · {judged.case.name}"
    for reason in judged.reasons:
        yield "  " + reason.replace("\n", "\n  ")
    for text in judged.happened.read[:4]:
        yield "  read: " + text[:1500].replace("\n", "\n        ")
