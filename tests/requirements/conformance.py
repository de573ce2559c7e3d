"""Prints what the agent owes its client on the wire, which tests hold it, and what is served.

`python -m tests.requirements.conformance`, or `make conformance`. The table is read from
`wire.toml` and the marks of the tests. What is served is asked of a running agent: its
advertisement, and each method that a version's schema has; the updates are those that the server's
code for the version makes.
"""

from __future__ import annotations

import ast
import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from msgspec import Struct, inspect

from acp_agent.server.initialize import SUPPORTED_VERSIONS
from tests.requirements.marks import TESTS, covered, requirements
from tests.support.agent_process import AgentProcess
from tests.support.editor import EVERYTHING, Editor
from tests.support.framing import Json
from tests.support.promises import promised, requests_of, served
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_schema import WireSchema, wire_schema

_SERVER = TESTS.parent / "acp_agent" / "server"


def rows() -> Iterator[str]:
    """The table of requirements, a line each and more for what is missing."""
    held = covered()
    width = max(len(entry["title"]) for entry in requirements().values())
    states: Counter[str] = Counter()
    yield f"{'id':4}{'what the agent owes its client':{width}} {'state':7} tests"
    for name, entry in requirements().items():
        files = Counter(Path(file).name for file in held.get(name, ()))
        state = "waived" if "waived" in entry else "later" if "later" in entry else "held"
        states[state] += 1
        where = f"{len(files)} file{'s' if len(files) != 1 else ''}"
        yield f"{name:4}{entry['title']:{width}} {state:7}{files.total():4} in {where}"
        for file, count in files.most_common():
            yield f"      {file}{f' ×{count}' if count > 1 else ''}"
        for field in ("later", "waived"):
            if field in entry:
                yield f"      {field}: {entry[field]}"
    yield ""
    yield ", ".join(f"{count} {state}" for state, count in states.items())


def updates_made(version: int) -> set[str]:
    """The kinds of session update that the server's code for a version speaks of."""
    tags: dict[str, str] = {}
    package = f"protocol.v{version}"
    for module in iter_modules(import_module(package).__path__):
        for name, value in vars(import_module(f"{package}.{module.name}")).items():
            if isinstance(value, type) and issubclass(value, Struct):
                info = inspect.type_info(value)
                assert isinstance(info, inspect.StructType)
                if info.tag_field == "sessionUpdate" and isinstance(info.tag, str):
                    tags[name] = info.tag
    used: set[str] = set()
    for path in (_SERVER / f"v{version}").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Name):
                used.add(node.id)
    return {tag for name, tag in tags.items() if name in used}


async def _ask(version: int, schema: WireSchema) -> tuple[set[str], set[str]]:
    """The methods that a running agent promises, and those that it knows."""
    editor = Editor(offers=EVERYTHING) if version == 1 else EditorV2(offers=EVERYTHING)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        async with await AgentProcess.start(
            "--model", "demo/demo", home=home, editor=editor
        ) as agent:
            client = agent if version == 1 else V2Client(agent)
            advertised: Json = await client.initialize()
            new = await agent.request("session/new", {"cwd": folder, "mcpServers": []})
            known = await served(agent, requests_of(schema))
            return promised(version, advertised, new), known


def versions() -> Iterator[str]:
    """A line about each version."""
    for version in SUPPORTED_VERSIONS:
        schema = wire_schema(f"v{version}")
        if schema is None:
            yield f"version {version}: the schema needs Node.js, which is not installed"
            continue
        methods = requests_of(schema)
        promises, known = asyncio.run(_ask(version, schema))
        made = updates_made(version)
        yield (
            f"version {version}: {len(known)} of {len(methods)} requests served, "
            f"{len(promises)} advertised; {len(made)} of {len(schema.updates())} updates sent"
        )
        for what, missing in (
            ("not served", methods - known),
            ("not sent", schema.updates() - made),
        ):
            if missing:
                yield f"      {what}: {', '.join(sorted(missing))}"


def main() -> None:
    """Print it all."""
    for line in (*rows(), "", *versions()):
        print(line)


if __name__ == "__main__":
    main()
