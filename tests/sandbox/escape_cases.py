"""The cases of `escapes.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from msgspec import Struct, convert, structs

SECRET = "canary-3f9c1e"  # is in every secret


class Case(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that tries to get out; `escapes.toml` describes the fields."""

    check: str
    name: str = ""
    sh: str = ""
    py: str = ""
    then: str = ""
    alone: bool = False
    seconds: float = 60.0
    last: bool = False
    limited: bool = False
    repo: bool = False
    control: str = ""
    folder: str = ""  # the project that it runs in, `filled` or `fresh`
    path: str = ""  # of the one file that it is about


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """Cases of a kind, with the fields that all of them have."""

    check: str
    cases: dict[str, dict[str, object]]
    repo: bool = False
    limited: bool = False


class Corpus(Struct, frozen=True):
    """All cases, with the files that the world has for them."""

    cases: tuple[Case, ...]
    secrets: tuple[str, ...]
    started: tuple[str, ...]
    project: tuple[str, ...]
    known: dict[str, str]
    known_without_namespace: dict[str, str]


def load_corpus() -> Corpus:
    """Read the file, and make a case of every path that it names."""
    table = tomllib.loads((Path(__file__).parent / "escapes.toml").read_text("utf-8"))
    home, project = table.pop("home"), table.pop("project")["files"]
    checks, known = table.pop("checks"), table.pop("known")
    without = table.pop("known-without-namespace")
    cases: list[Case] = []
    for given in table.values():
        group = convert(given, Group)
        common = {key: value for key, value in structs.asdict(group).items() if key != "cases"}
        cases += [
            convert(common | case | {"name": name}, Case) for name, case in group.cases.items()
        ]
    for path in home["secrets"]:
        program = f'read(os.environ["HOME"] + "/{path}")'
        cases.append(Case(name=_name("read", path), check="secret", py=program))
    for path in home["started"]:
        program = f'append(os.environ["HOME"] + "/{path}", make=True)'
        cases.append(Case(name=_name("start", path), check="outside", py=program, path=path))
    for path in project:
        program = f'append("{path}", make=True)'
        for folder in ("filled", "fresh"):
            name = _name(folder, path)
            cases.append(Case(name=name, check="project", py=program, path=path, folder=folder))
    assert {case.check for case in cases} == checks.keys()
    return Corpus(tuple(cases), home["secrets"], home["started"], project, known, without)


def _name(kind: str, path: str) -> str:
    return f"{kind}-{path.replace('/', '-')}"
