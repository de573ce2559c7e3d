"""Instructions that an editor gives to a session."""

from __future__ import annotations

import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.events import SystemPromptGiven, SystemPromptWritten
from acp_agent.session.turns.system_prompt import client_prompt_event
from tests.server.server_session import system
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import SECRET, Desk

RULES = SystemPromptGiven(mode="append", text="Speak in rhymes.")
ALONE = SystemPromptGiven(mode="override", text="You are a poet.")
OURS = "You are acp-agent"


async def start(desk: Desk, given: SystemPromptGiven | None) -> None:
    """A new session at the desk."""
    desk._session = await desk.manager.create(
        str(desk.folder), [], desk.editor, system_prompt=given
    )


async def reopen(desk: Desk, given: SystemPromptGiven | None = None) -> None:
    """Close the session and open it again, as after a restart."""
    session = desk.session.id
    await desk.manager.close(session, desk.editor)
    again = await desk.manager.open(session, str(desk.folder), [], system_prompt=given)
    again.attach(desk.editor)
    desk._session = again


@pytest.mark.parametrize("given", [RULES, ALONE])
async def test_they_are_part_of_the_system_prompt_of_every_request_also_after_a_restart(
    desk: Desk, model_server: ModelServer, given: SystemPromptGiven
) -> None:
    model_server.otherwise = answer("Yes.")
    (desk.folder / "AGENTS.md").write_text("Use tabs.\n")
    await start(desk, given)
    await desk.say("One")
    await reopen(desk)
    await desk.say("Two")
    await reopen(desk, given)
    await desk.say("Three")
    prompts = {system(model_server, request) for request in range(3)}
    assert len(prompts) == 1
    (prompt,) = prompts
    assert given.text in prompt
    assert (OURS in prompt) == (given is RULES)
    assert "Use tabs." in prompt
    assert str(desk.folder) in prompt
    written = [e for e in await desk.journal() if isinstance(e, SystemPromptWritten)]
    assert len(written) == 1


async def test_added_instructions_come_last(desk: Desk, model_server: ModelServer) -> None:
    model_server.otherwise = answer("Yes.")
    (desk.folder / "AGENTS.md").write_text("Use tabs.\n")
    await start(desk, RULES)
    await desk.say("One")
    assert system(model_server).endswith("\n\nSpeak in rhymes.")


async def test_other_ones_hold_from_the_next_turn_on(desk: Desk, model_server: ModelServer) -> None:
    model_server.otherwise = answer("Yes.")
    await start(desk, RULES)
    await desk.say("One")
    await reopen(desk, ALONE)
    await desk.say("Two")
    await desk.say("Three")
    one, two, three = (system(model_server, request) for request in range(3))
    assert "Speak in rhymes." in one
    assert two == three
    assert two.startswith("You are a poet.")
    assert "Speak in rhymes." not in two


async def test_a_session_that_never_had_any_takes_them_when_it_is_opened_again(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    await reopen(desk, RULES)
    await desk.say("Two")
    assert "rhymes" not in system(model_server, 0)
    assert "rhymes" in system(model_server, 1)


async def test_a_fork_keeps_those_of_its_source_unless_it_is_given_its_own(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await start(desk, RULES)
    await desk.say("One")
    source, folder = desk.session.id, str(desk.folder)
    for given in (None, RULES, ALONE):
        desk._session = await desk.manager.fork(
            source, folder, [], desk.editor, system_prompt=given
        )
        await desk.say("Two")
    first, kept, same, other = (system(model_server, request) for request in range(4))
    assert first == kept == same
    assert other.startswith("You are a poet.")


def test_texts_are_joined_and_secrets_are_removed() -> None:
    given = client_prompt_event("append", ["  One.", f"Two {SECRET}. "], secrets=[SECRET])
    assert given == SystemPromptGiven(mode="append", text="One.\n\nTwo [secret].")


@pytest.mark.parametrize(
    ("mode", "texts", "field"),
    [
        ("prepend", ["x"], "systemPrompt.mode"),
        ("", ["x"], "systemPrompt.mode"),
        ("append", [], "systemPrompt.content"),
        ("override", [" ", "\n"], "systemPrompt.content"),
    ],
)
def test_an_invalid_client_prompt_is_refused_by_field(
    mode: str, texts: list[str], field: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        client_prompt_event(mode, texts, secrets=[])
    assert caught.value.field == field
    assert str(caught.value).startswith(field)
