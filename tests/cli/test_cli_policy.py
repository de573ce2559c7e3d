"""`acp-agent policy` and `acp-agent audit`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.events import (
    AnyEvent,
    PermissionAsked,
    PermissionDecided,
    SessionStarted,
    ToolCalled,
    TurnStarted,
)
from acp_agent.ids import new_call_id, new_message_id, new_session_id, new_turn_id
from acp_agent.permissions.access import Grant
from acp_agent.permissions.grants import GrantStore
from acp_agent.session.store.store import Store
from tests.cli.cli_process import acp_agent

RULES = """\
[permissions]
allow = ["Bash(npm run test:*)"]
ask = ["Bash(git push *)"]
deny = ["Read(.env)", { rule = "Bash(curl *)", justification = "use web_fetch" }]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home, where the commands run, with rules and a remembered answer."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.toml").write_text(RULES)
    project = str(tmp_path.resolve())
    grants = [
        Grant(project=project, kind="command", pattern="make test"),
        Grant(project="/elsewhere", kind="fetch", pattern="example.com", allow=False),
    ]
    GrantStore(tmp_path / "agent" / "grants.json").add(grants)
    return tmp_path


def policy(home: Path, *arguments: str) -> Any:  # JSON of any shape
    ran = acp_agent(home, "policy", *arguments, "--json")
    assert ran.stderr == ""
    return json.loads(ran.stdout)


def test_the_deciding_rule_is_named_with_its_file_and_line(home: Path) -> None:
    config = home / "agent" / "config.toml"
    (explanation,) = policy(home, "test", "npm run test && curl x")
    assert (explanation["decision"], explanation["rule"]) == (
        "deny",
        f"deny Bash(curl *) ({config}:4)",
    )
    assert "use web_fetch" in explanation["why"]
    assert [
        (command["command"], command["tier"], command["rule"][:5])
        for command in explanation["commands"]
    ] == [
        ("npm run test", "standard", "allow"),
        ("curl x", "standard", "deny "),
    ]


def test_each_kind_of_call_can_be_asked_about(home: Path) -> None:
    (home / "notes.txt").touch()
    decided = {
        call: [explanation["decision"] for explanation in policy(home, "test", call)]
        for call in (
            "make test", "make", "ls", "notes.txt", "Read(.env)", "../outside",
            "https://example.com", "mcp__server__tool", "WebSearch",
        )
    }  # fmt: skip
    assert decided == {
        "make test": ["allow"],
        "make": ["ask"],
        "ls": ["allow"],
        "notes.txt": ["allow", "ask"],
        "Read(.env)": ["deny"],
        "../outside": ["deny", "deny"],
        "https://example.com": ["ask"],
        "mcp__server__tool": ["ask"],
        "WebSearch": ["ask"],
    }


def test_an_unexpected_decision_fails_the_command(home: Path) -> None:
    assert acp_agent(home, "policy", "test", "git push", "--expect", "ask").returncode == 0
    assert acp_agent(home, "policy", "test", "git push", "--expect", "allow").returncode == 1


def test_rules_and_remembered_answers_are_listed_and_answers_can_be_revoked(home: Path) -> None:
    listed = policy(home, "list")
    assert [(rule["effect"], rule["rule"], rule["line"]) for rule in listed["rules"]] == [
        ("deny", "Read(.env)", 4),
        ("deny", "Bash(curl *)", 4),
        ("ask", "Bash(git push *)", 3),
        ("allow", "Bash(npm run test:*)", 2),
    ]
    assert [(rule["effect"], rule["covers"]) for rule in listed["answers"]] == [
        ("allow", "make test")
    ]
    (answer,) = listed["answers"]
    revoked = acp_agent(home, "policy", "revoke", answer["id"])
    assert revoked.stdout == f"Revoked allow make test (answer {answer['id']}).\n"
    assert [rule["covers"] for rule in policy(home, "list", "--all")["answers"]] == [
        "WebFetch(domain:example.com)"
    ]
    unknown = acp_agent(home, "policy", "revoke", answer["id"])
    assert unknown.returncode == 1
    assert "no remembered answer" in unknown.stderr


def shell_call(command: str, decided: PermissionDecided, *, was_asked: bool) -> list[AnyEvent]:
    call = decided.call
    called = ToolCalled(
        call=call,
        message=new_message_id(),
        name="shell",
        arguments=json.dumps({"command": command}),
        title=f"`{command}`",
    )
    return [
        called,
        *([PermissionAsked(call=call, options=("allow_once",))] if was_asked else []),
        decided,
    ]


async def fill(home: Path, events: list[AnyEvent]) -> None:
    store = await Store.open(home / "agent" / "sessions.db")
    try:
        await store.create(
            new_session_id(),
            [SessionStarted(cwd=str(home.resolve())), TurnStarted(turn=new_turn_id()), *events],
        )
    finally:
        await store.close()


async def test_every_decision_of_a_session_is_shown_with_its_rule(home: Path) -> None:
    first, second = new_call_id(), new_call_id()
    refused = PermissionDecided(
        call=first, allowed=False, by="rule", why="no", rule="deny Bash(x)", tier="standard",
        known=True,
    )  # fmt: skip
    allowed = PermissionDecided(call=second, allowed=True, by="user", why="Allow once", known=True)
    await fill(
        home,
        [*shell_call("x", refused, was_asked=False), *shell_call("make", allowed, was_asked=True)],
    )
    table = (await asyncio.to_thread(acp_agent, home, "audit", "latest")).stdout.splitlines()
    assert table[0].split() == ["TIME", "TOOL", "CALL", "TIER", "DECISION", "RULE"]
    assert table[1].split()[2:] == [
        "shell",
        "`x`",
        "standard",
        "Refused",
        "by",
        "a",
        "rule:",
        "no",
        "deny",
        "Bash(x)",
    ]
    assert " ".join(table[2].split()[2:]) == "shell `make` Allowed by you: Allow once"
    ran = await asyncio.to_thread(acp_agent, home, "audit", "latest", "--refused", "--json")
    (decision,) = json.loads(ran.stdout)["decisions"]
    assert (decision["by"], decision["asked"], decision["rule"]) == ("rule", False, "deny Bash(x)")


def answered(command: str, *, allowed: bool = True) -> list[AnyEvent]:
    decided = PermissionDecided(call=new_call_id(), allowed=allowed, by="user", known=True)
    return shell_call(command, decided, was_asked=True)


async def test_rules_are_suggested_that_would_have_avoided_questions(home: Path) -> None:
    lines = [
        *(f"cargo test --package p{number}" for number in range(4)),
        "ls && cargo test --release",
        "npm run build", "npm run build && cargo test", "make x", "rm x", "rm y",
        *("npm run test a", "npm run test b"),  # a rule allows them
        *("docker ps a", "docker ps b"),
    ]  # fmt: skip
    refused = answered("docker ps c", allowed=False)
    await fill(home, [*(event for line in lines for event in answered(line)), *refused])
    suggestions = await asyncio.to_thread(policy, home, "suggest")
    assert suggestions["questions"] == len(lines) + 1
    assert suggestions["suggestions"] == [
        {"rule": "Bash(cargo test *)", "avoided": 5},
        {"rule": "Bash(npm run build *)", "avoided": 2},
    ]
    output_lines = (
        await asyncio.to_thread(acp_agent, home, "policy", "suggest")
    ).stdout.splitlines()
    assert output_lines[1].split() == ["Bash(cargo", "test", "*)", "5", "/", "15"]
