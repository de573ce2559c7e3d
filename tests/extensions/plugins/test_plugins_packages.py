"""A plugin that is a Python package: built and installed with pip, and used by the real agent."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_agent.api import Plugin, Tool
from acp_agent.errors import ConfigError
from acp_agent.session.plugins import checked
from tests.cli.cli_process import acp_agent
from tests.support.model_server import Call, ModelServer, answer, model_server_in_thread

SAMPLE = Path(__file__).with_name("sample_package")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip takes for a registry, with the sample."""
    folder = tmp_path_factory.mktemp("wheels")
    source = folder / "source"
    shutil.copytree(SAMPLE, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", str(folder), str(source)], check=True)
    return folder


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server_in_thread() as running:
        yield running


class Person:
    """Somebody with the sample among their plugins."""

    def __init__(self, home: Path, wheels: Path) -> None:
        self.home, self.project = home, home / "project"
        self.project.mkdir(parents=True)
        self.environ = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1"}

    def plugin(self, *arguments: str, status: int = 0) -> str:
        ended = acp_agent(self.home, "plugin", *arguments, environ=self.environ)
        assert ended.returncode == status, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stdout + ended.stderr

    def run(self, *arguments: str, server: ModelServer | None = None) -> str:
        environ = {} if server is None else server.environ()
        folder = ("--cwd", str(self.project))
        ended = acp_agent(self.home, "run", *folder, *arguments, environ=environ)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture
def person(tmp_path: Path, wheels: Path) -> Person:
    return Person(tmp_path / "home", wheels)


def results(server: ModelServer) -> list[str]:
    messages = server.requests[-1].json["messages"]
    return [str(one["content"]) for one in messages if one["role"] == "tool"]


def test_a_package_brings_a_tool_a_hook_and_a_model(person: Person, server: ModelServer) -> None:
    said = person.plugin("add", "acp-agent-sample==1.2.0", "--yes")
    assert "--hash=sha256:" in said
    assert "sample__count_words" in said
    (person.project / "words.txt").write_text("one two three")
    (person.project / "secret.txt").write_text("one")
    (person.project / "broken.txt").write_text("one")
    tool = "sample__count_words"
    server.add(
        answer(
            Call(tool, {"path": "words.txt"}),
            Call(tool, {"path": "secret.txt"}),
            Call(tool, {"path": "none.txt"}),
            Call(tool, {"path": "broken.txt"}),
            Call(tool, {"file": "words.txt"}),
        ),
        answer("Done."),
    )
    person.run("--allow", "all", "go", server=server)
    counted, secret, none, broken, wrong = results(server)
    assert "3 words" in counted
    assert "the sample refuses that" in secret
    assert "there is no such file" in none
    assert "RuntimeError: out of order" in broken
    assert "path" in wrong
    (person.home / "agent" / "config.toml").write_text('[providers.echo]\napi = "plugin"\n')
    assert "echo of 1 by any" in person.run("--model", "echo/any", "hello")
    person.plugin("remove", "acp-agent-sample")
    assert list((person.home / "agent" / "plugins" / ".data").iterdir()) == []
    gone = acp_agent(person.home, "run", "--model", "echo/any", "hello")
    assert "no plugin has a provider of this name" in gone.stderr


def test_a_plugins_tool_needs_permission_and_rules_apply_to_it(
    person: Person, server: ModelServer
) -> None:
    person.plugin("add", "acp-agent-sample", "--yes")
    (person.project / "words.txt").write_text("one two three")
    call = Call("sample__count_words", {"path": "words.txt"})
    server.add(answer(call), answer("Done."))
    person.run("--allow", "none", "go", server=server)
    assert "3 words" not in results(server)[0]
    config = '[permissions]\nallow = ["mcp__sample__count_words"]\n'
    (person.home / "agent" / "config.toml").write_text(config)
    server.add(answer(call), answer("Done."))
    person.run("--allow", "none", "go", server=server)
    assert "3 words" in results(server)[0]


@pytest.mark.parametrize("changed", ["*.dist-info/RECORD", "acp_agent_sample/__init__.py"])
def test_another_package_than_was_added_is_not_imported(person: Person, changed: str) -> None:
    person.plugin("add", "acp-agent-sample", "--yes")
    folder = person.home / "agent" / "plugins" / ".packages" / "acp-agent-sample"
    file = next(folder.glob(changed))
    file.write_text("# other\n" + file.read_text())
    config = '[providers.echo]\napi = "plugin"\n'
    (person.home / "agent" / "config.toml").write_text(config)
    ran = acp_agent(person.home, "run", "--model", "echo/any", "hello")
    assert ran.returncode != 0
    assert "another one than was added" in ran.stderr


def test_a_package_that_cannot_be_used_is_refused_and_nothing_stays(
    person: Person, tmp_path: Path
) -> None:
    assert "No matching distribution" in person.plugin("add", "no-such-one", "--yes", status=1)
    broken = tmp_path / "broken"
    shutil.copytree(SAMPLE, broken)
    (broken / "acp_agent_sample" / "__init__.py").write_text("raise SystemError('no luck')\n")
    folder = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", str(folder), str(broken)], check=True)
    person.environ["PIP_FIND_LINKS"] = str(folder)
    assert "no luck" in person.plugin("add", "acp-agent-sample", "--yes", status=1)
    listed = acp_agent(person.home, "plugin", "list", "--json").stdout
    assert json.loads(listed)["packages"] == {}
    assert not (person.home / "agent" / "plugins" / ".packages" / "acp-agent-sample").exists()


async def _nothing(*_: object) -> str:
    return ""


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a text", "expected an object"),
        (Plugin(name="x", api_version=2), "for version 2"),
        (Plugin(name="X y"), "lowercase"),
        (
            Plugin(
                name="x", tools=(Tool(name="a b", description="", parameters={}, run=_nothing),)
            ),
            "a name that models do not take",
        ),
        (
            Plugin(
                name="x",
                tools=(Tool(name="a", description="", parameters={"type": "array"}, run=_nothing),),
            ),
            "its parameters are no object",
        ),
    ],
)
def test_the_object_of_an_entry_point_is_checked(value: object, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        checked("point", value)
