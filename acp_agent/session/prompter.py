"""What becomes of a prompt before its words are part of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from acp_agent.agent.spoken import spoken
from acp_agent.content import (
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import UserMessage
from acp_agent.ids import MessageId, new_message_id
from acp_agent.models.base import ModelInfo
from acp_agent.session.commands import FoundCommand, find_command
from acp_agent.session.definitions import PREFIX
from acp_agent.session.notes import Notes
from acp_agent.session.turn import Turn

if TYPE_CHECKING:
    from acp_agent.session.children.assignment import Assignment
    from acp_agent.session.session import Session

WISH_HEARD = "The conversation will be summed up before the next request to the model."


class Said(Struct, frozen=True, kw_only=True):
    """What became of a prompt: a message of a turn.

    `began` where the turn began with it, rather than was steered by it.
    """

    turn: Turn
    message: MessageId
    began: bool


class Prompter:
    """Takes the prompts of one session, one after the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._notes = Notes()
        self._speaking = asyncio.Lock()

    async def say(
        self,
        content: tuple[ContentBlock, ...],
        cancelled: Callable[[], bool],
        steers: bool | None = None,
        *,
        withdrawable: bool = False,
    ) -> Said:
        """Check a prompt, add what the model is told with it, and make it part of a turn.

        See `Session.prompt`.
        """
        async with self._speaking:
            said = await self._say(content, cancelled, steers, withdrawable=withdrawable)
            if cancelled() and not withdrawable:
                said.turn.cancel()
            return said

    @asynccontextmanager
    async def silence(self) -> AsyncIterator[None]:
        """Nobody says anything for as long as this lasts; what is said meanwhile waits for it."""
        async with self._speaking:
            yield

    def forget(self) -> None:
        """Tell the model again what it was told beside the user's words; it may have lost that."""
        self._notes = Notes()

    async def _say(
        self,
        content: tuple[ContentBlock, ...],
        cancelled: Callable[[], bool],
        steers: bool | None,
        *,
        withdrawable: bool,
    ) -> Said:
        if self._session.closing:
            raise SessionNotFoundError(self._session.session)
        self._session.turns.check(steers)  # before anything that cannot be taken back
        model = await self._session.settings.choose_model()
        check_said(content)
        mcp = self._session.extensions.mcp
        command = await find_command(
            content,
            () if mcp is None else mcp.prompts,
            cancelled,
            lambda name, rest: self._skills(name, rest, content),
        )
        chosen = None if command is None else command.chosen
        self._check_images(content, model if chosen is None else chosen.model)
        if any(isinstance(block, ImageBlock) for block in content):
            from acp_agent.session.prompt_pictures import with_usable_pictures  # noqa: PLC0415 - rare

            content = await asyncio.to_thread(with_usable_pictures, content)
        if any(isinstance(block, ResourceBlock) for block in content):
            from acp_agent.agent.attachments import without_secrets  # noqa: PLC0415 - for files only

            content = without_secrets(content, self._session.secrets)
        message, assignment = await self._assigned(content, command)
        withdrawn = cancelled if withdrawable else _never
        turns = self._session.turns
        turn = await turns.join_or_begin(message, assignment, steers, withdrawn=withdrawn)
        began = turn.began_with(message.message)
        if command is not None and command.is_wish and not began:
            turns.compaction_wish = command.wish
        return Said(turn=turn, message=message.message, began=began)

    async def _assigned(
        self, content: tuple[ContentBlock, ...], command: FoundCommand | None
    ) -> tuple[UserMessage, Assignment]:
        """The message that a prompt becomes, and what a turn is to do that begins with it."""
        from acp_agent.session.children.assignment import Assignment  # noqa: PLC0415 - for prompts only

        message = UserMessage(message=new_message_id(), content=content)
        if command is None:
            attached = await self._attached(content, None)
            return msgspec.structs.replace(message, attached=attached), Assignment()
        reply = await self._reply(command)
        if reply is not None:
            own = Assignment(reply=spoken(reply), work=command.work)
            return msgspec.structs.replace(message, local=True), own
        # Where the turn that runs ends before the words are part of it, no call is made of them:
        # they have the text with them.
        call = None if self._session.turns.takes_words else command.call
        attached = await self._attached(content, command.ask if call is None else None)
        return msgspec.structs.replace(message, attached=attached), Assignment(
            repetition=command.repetition, chosen=command.chosen, call=call
        )

    async def _reply(self, command: FoundCommand) -> str | None:
        """What the agent answers by itself, without the model; None: the model is to answer."""
        translate = self._session.services.translate
        if command.refusal or command.is_wish:
            return translate(command.refusal or WISH_HEARD)
        if command.repetition is not None and self._session.turns.takes_words:
            from acp_agent.session.loop_command import turn_runs  # noqa: PLC0415 - rarely needed

            return turn_runs(translate)
        return None if command.answer is None else await command.answer(self._session)

    def _check_images(self, content: Sequence[ContentBlock], model: ModelInfo) -> None:
        sees = model.vision or self._session.services.config.vision_model is not None
        if sees or not any(isinstance(block, ImageBlock) for block in content):
            return
        from acp_agent.tools import ocr  # noqa: PLC0415 - rarely needed

        if not ocr.can_recognise():
            raise InvalidInputError(
                f"prompt: the model {model.ref} cannot see images; choose one that can, set "
                "vision_model in the configuration, or have their text recognised here: "
                f"{ocr.INSTALL}",
                field="prompt",
            )

    async def _skills(
        self, name: str, rest: str, content: Sequence[ContentBlock]
    ) -> FoundCommand | None:
        if not name.startswith(PREFIX):
            return None
        from acp_agent.session.skill_command import skill_command  # noqa: PLC0415 - where one is named

        return await skill_command(self._session, name, rest, content)

    async def _attached(self, content: tuple[ContentBlock, ...], ask: str | None) -> str:
        """What the model is told beside the user's words: a command's, notes, linked files."""
        told = [] if ask is None else [self._session.clean(ask)]
        session = self._session
        # Where the folders may be others than those in the system prompt.
        moved = session.state.moved and session.context.system_prompt is not None
        told += self._notes.due(
            today=datetime.now().astimezone().date(),
            mode=session.mode,
            moved_to=(session.cwd, session.directories) if moved else None,
        )
        if any(isinstance(block, ResourceLinkBlock) for block in content):
            workspace = (await session.workbench.equip()).workspace
            from acp_agent.agent.attachments import linked_files  # noqa: PLC0415 - for links only

            told += await linked_files(content, workspace, secrets=session.secrets)
        return "\n\n".join(told)


def check_said(content: Sequence[ContentBlock]) -> None:
    """Whether a prompt says anything.

    Raises:
        InvalidInputError: it does not.
    """
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in content):
        raise InvalidInputError("prompt: it is empty; say something", field="prompt")


def _never() -> bool:
    return False
