"""Rules that hooks add to a session: they save questions and never widen the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.events import NoticeShown, ToolEnded
from tests.session.test_session_hooks import (
    POLICY,
    TOUCH,
    Hooked,
    hooked,
    says,
    settings,
    told,
    write,
)
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import presses

__all__ = ["hooked"]

TITLE = "A hook's change of permissions is not applied: "


def allowing(*updates: dict[str, Any]) -> str:
    """A hook that allows the call and changes permissions."""
    return says(decision={"behavior": "allow", "updatedPermissions": list(updates)})


def rules(behavior: str, *contents: str, kind: str = "addRules") -> dict[str, Any]:
    values = [{"toolName": "Bash", "ruleContent": content} for content in contents]
    return {"type": kind, "rules": values, "behavior": behavior, "destination": "session"}


def touch(*names: str) -> list[Any]:
    return [answer(Call("shell", {"command": f"touch {name}"})) for name in names]


async def test_a_rule_that_a_hook_adds_answers_later_questions(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    hook = f"cat >> {tmp_path}/asked; {allowing(rules('allow', 'touch b*'))}"
    async with hooked({"PermissionRequest": {"command": hook, "once": True}}) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(*touch("a", "b", "c"), answer("Done."))
        await desk.say("Do it")
        made = [name for name in "abc" if (desk.folder / name).exists()]
        assert (made, len(desk.editor.asked)) == (["a", "b"], 1)
        assert told(tmp_path / "asked")["tool_input"]["command"] == "touch a"


async def test_a_rule_of_a_hook_covers_no_other_command_of_the_line(
    hooked: Hooked, model_server: ModelServer
) -> None:
    hook = {"command": allowing(rules("allow", "touch b")), "once": True}
    async with hooked({"PermissionRequest": hook}) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(*touch("a", "b; touch c"), answer("Done."))
        await desk.say("Do it")
        assert not (desk.folder / "b").exists()
        assert len(desk.editor.asked) == 1


@pytest.mark.parametrize("command", ["touch asked", "touch denied", "rm -rf ~/x"])
async def test_a_rule_of_a_hook_allows_nothing_that_the_policy_asks_about_or_refuses(
    hooked: Hooked, model_server: ModelServer, command: str
) -> None:
    hook = {"command": allowing({**rules("allow"), "rules": [{"toolName": "Bash"}]}), "once": True}
    async with hooked({"PermissionRequest": hook}, config=POLICY) as desk:
        desk.editor.decide = presses("reject_once")
        call = Call("shell", {"command": command})
        model_server.add(*touch("a", "b"), answer(call), answer("Pity."))
        await desk.say("Do it")
        assert (desk.folder / "b").exists()
        assert [end.failed for end in desk.editor.of(ToolEnded)] == [False, False, True]
        assert len(desk.editor.asked) == (0 if command == "touch denied" else 1)


async def test_rules_of_hooks_also_refuse_and_ask_and_can_be_removed(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    added = [rules("deny", "touch no"), rules("ask", "touch ask"), rules("allow", "touch *")]
    removed = rules("deny", "touch no", kind="removeRules")
    hook = (
        f"if test -e {tmp_path}/1; then {allowing(removed)}; "
        f"else touch {tmp_path}/1; {allowing(*added)}; fi"
    )
    async with hooked({"PermissionRequest": hook}) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(*touch("a", "no", "ask", "b"), answer("Pity."))
        await desk.say("Do it")
        assert [end.failed for end in desk.editor.of(ToolEnded)] == [False, True, False, False]
        assert len(desk.editor.asked) == 1
        model_server.add(answer(Call("shell", {"command": "mkdir d"})), *touch("no"), answer("Ok."))
        await desk.say("Again")
        assert (desk.folder / "no").exists()


async def test_changes_that_a_hook_may_not_make_are_named(
    hooked: Hooked, model_server: ModelServer
) -> None:
    updates = (
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "addDirectories", "directories": ["/"], "destination": "session"},
        rules("allow", "touch ("),
        {"type": "addRules", "rules": [{"toolName": "Nothing"}], "behavior": "allow"},
        {"type": "addRules", "rules": 7},
    )
    async with hooked({"PermissionRequest": allowing(*updates)}) as desk:
        model_server.add(answer(TOUCH), answer("Done."))
        await desk.say("Do it")
        titles = [
            each.title for each in desk.editor.of(NoticeShown) if each.title.startswith(TITLE)
        ]
        assert len(titles) == len(updates) - 1
        for title, part in zip(
            titles, ("setMode", "addDirectories", "Nothing", "Expected `array`"), strict=True
        ):
            assert part in title
        assert desk.session.core.settings.mode == "ask"
        assert (desk.folder / "made").exists()


async def test_a_projects_hook_adds_no_rule_that_allows(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    write(
        tmp_path / "project", settings({"PermissionRequest": allowing(rules("allow", "touch *"))})
    )
    async with hooked(None) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(*touch("a", "b"), answer("Done."))
        await desk.say("Do it")
        assert len(desk.editor.asked) == 2
        (notice,) = [each for each in desk.editor.of(NoticeShown) if each.title.startswith(TITLE)]
        assert "a hook of yours" in notice.title


async def test_a_hook_can_return_the_rule_that_a_question_suggests(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = (
        f"tee {tmp_path}/event | python3 -c 'import json, sys; "
        'e = json.load(sys.stdin); print(json.dumps({"hookSpecificOutput": {"decision": '
        '{"behavior": "allow", "updatedPermissions": e["permission_suggestions"][:1]}}}))\''
    )
    async with hooked({"PermissionRequest": {"command": line, "once": True}}) as desk:
        desk.editor.decide = presses("reject_once")
        make = [answer(Call("shell", {"command": f"mkdir {name}"})) for name in "ab"]
        model_server.add(*make, answer("Done."))
        await desk.say("Do it")
        suggested = told(tmp_path / "event")["permission_suggestions"]
        assert suggested[0]["behavior"] == "allow", json.dumps(suggested)
        assert (desk.folder / "b").is_dir()
        assert desk.editor.asked == []


async def test_a_hook_at_the_start_sends_a_first_message(
    hooked: Hooked, model_server: ModelServer
) -> None:
    start = says(initialUserMessage="Read NOTES.md first.")
    async with hooked({"SessionStart": start}) as desk:
        model_server.add(answer("Hello."), answer("Bye."))
        await desk.say("Hi")
        body = model_server.requests[0].body
        assert b"Read NOTES.md first." in body
        await desk.say("More")
        assert model_server.requests[1].body.count(b"Read NOTES.md first.") == 1
