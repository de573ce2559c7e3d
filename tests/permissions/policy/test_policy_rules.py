"""What rules decide about, call by call: rules.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from acp_agent.config.policy_types import PermissionsConfig
from acp_agent.permissions.access import (
    Access,
    Allow,
    Ask,
    CommandAccess,
    FetchAccess,
    McpAccess,
    Mode,
    NoAccess,
    ReadAccess,
    Refuse,
    Verdict,
    WriteAccess,
)
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.policy.loading import Policies, compile_rules
from acp_agent.permissions.policy.rules import Source

TABLE = tomllib.loads((Path(__file__).parent / "rules.toml").read_text("utf-8"))
GROUPS = [(kind, name) for kind, groups in TABLE.items() for name in groups]
FILES = (".env", "secrets/key", "src/generated/a", "src/a.py", "x")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with a project that has the files that the calls name."""
    home = tmp_path_factory.mktemp("policy") / "home"
    for name in FILES:
        path = home / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (home / "project" / ".git").mkdir()
    (home / "project" / "clone" / ".git").mkdir(parents=True)
    (home / "project" / "link").symlink_to("secrets/key")
    return home


def outcome(verdict: Verdict) -> str:
    match verdict:
        case Allow():
            return "allowed"
        case Refuse():
            return "denied" if verdict.rule.startswith("deny ") else f"refused: {verdict.why}"
        case Ask():
            return "ask_by_rule" if verdict.rule else "ask"


def access(kind: str, call: str, project: str) -> Access:
    match kind:
        case "agent" | "skill":
            return NoAccess(kind, call)
        case "program":
            return McpAccess(server=call, tool="task", identity="", definition="", is_agent=True)
        case "background":
            return CommandAccess(call, project, background=True)
        case "edit":
            return WriteAccess((call,))
        case "read":
            return ReadAccess((call,))
        case "web":
            return FetchAccess(call)
        case "mcp":
            server, _, tool = call.partition("__")
            return McpAccess(server=server, tool=tool, identity="", definition="")
    return CommandAccess(call, project)


def calls(group: dict[str, Any]) -> Iterator[tuple[str, Mode, str]]:
    for expected in ("allowed", "ask", "ask_by_rule", "denied"):
        yield from ((call, "ask", expected) for call in group.get(expected, ()))
        yield from ((call, "full", expected) for call in group.get(f"full_{expected}", ()))


@pytest.mark.parametrize(("kind", "name"), GROUPS)
def test_rules_decide_about_calls_as_the_table_says(kind: str, name: str, home: Path) -> None:
    group = TABLE[kind][name]
    table = {"allow": group.get("allow"), "ask": group.get("ask_rules"), "deny": group.get("deny")}
    config = msgspec.convert({k: v for k, v in table.items() if v}, PermissionsConfig)
    rules = compile_rules(config, Source(file="config.toml"))
    gate = PolicyGate(GrantStore(home / "grants.json"), home=str(home), policies=Policies(rules))
    project = str(home / "project")
    wrong = []
    for call, mode, expected in calls(group):
        call = call.replace("{project}", project).replace("{home}", str(home))  # noqa: PLW2901
        verdict = gate.judge(access(kind, call, project), mode=mode, project=project)
        if outcome(verdict) != expected:
            wrong.append((call, mode, expected, verdict))
    assert wrong == []


SETTINGS = """{
  "permissions": {
    "deny": ["Bash(curl:*)", "Read(./secrets/**)", "TodoWrite", "WebFetch(no domain)"],
    "ask": [
      "Bash(npm publish:*)"
    ],
    "allow": ["Bash(npm run deploy)"]
  }
}
"""


def gate_of(folder: Path, *, trusted: bool) -> PolicyGate:
    policies = Policies(trusts=lambda _: trusted)
    return PolicyGate(GrantStore(folder / "grants.json"), home=str(folder), policies=policies)


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("trusted", [False, True])
def test_the_settings_that_a_project_has_for_another_agent_hold(
    tmp_path: Path, name: str, trusted: bool
) -> None:
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    (project / ".claude" / name).write_text(SETTINGS)
    gate = gate_of(tmp_path, trusted=trusted)

    def judged(kind: str, call: str) -> str:
        found = access(kind, call, str(project))
        return outcome(gate.judge(found, mode="full", project=str(project)))

    assert judged("command", "curl https://example.com") == "denied"
    assert judged("read", f"{project}/secrets/key") == "denied"
    assert judged("command", "npm publish --tag next") == "ask_by_rule"
    assert judged("web", "https://example.com/") == "ask_by_rule", "the rule may have meant it"
    verdict = gate.judge(
        CommandAccess("npm publish", str(project)), mode="ask", project=str(project)
    )
    assert isinstance(verdict, Ask)
    assert f"{name}:5)" in verdict.rule, "the line"
    deploys = CommandAccess("npm run deploy", str(project))
    asked = outcome(gate.judge(deploys, mode="ask", project=str(project)))
    assert asked == ("allowed" if trusted else "ask")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"permissions": {"deny": ["Bash(curl:*)"],}}', "line 1 is not JSON"),
        ('{"permissions": {"deny": "Bash"}}', "$.permissions.deny"),
        ("[]", "settings.json: Expected `object`"),
    ],
)
def test_settings_that_cannot_be_read_may_have_refused_so_everything_is_asked_about(
    tmp_path: Path, content: str, problem: str
) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(content)
    gate = gate_of(tmp_path, trusted=True)
    verdict = gate.judge(CommandAccess("ls", str(tmp_path)), mode="full", project=str(tmp_path))
    assert outcome(verdict) == "ask_by_rule"
    assert problem in Policies().for_project(str(tmp_path)).problems[0]


@pytest.mark.parametrize("content", ["", "{}", '{"model": "opus", "permissions": {}}'])
def test_settings_without_rules_change_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(content)
    gate = gate_of(tmp_path, trusted=False)
    verdict = gate.judge(CommandAccess("ls", str(tmp_path)), mode="ask", project=str(tmp_path))
    assert outcome(verdict) == "allowed"
