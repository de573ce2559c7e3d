"""Handles the prompts of a session: checks one, finds its command, makes it part of a turn."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.content import (
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import UserMessage, agent_message
from acp_agent.ids import MessageId, new_message_id
from acp_agent.models.base import ModelInfo
from acp_agent.permissions.access import ReadAccess
from acp_agent.session.commands.command import FoundCommand
from acp_agent.session.commands.find import CommandContext, find_command
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.turns.notes import Notes
from acp_agent.session.turns.resources import SessionResources
from acp_agent.session.turns.runner import TurnRunner
from acp_agent.session.turns.turn import Turn

if TYPE_CHECKING:
    from acp_agent.session.turns.plan import TurnPlan

COMPACTION_REQUESTED = "The conversation will be summarised before the next request to the model."


class PromptResult(Struct, frozen=True, kw_only=True):
    """The message that a prompt became, and its turn.

    `began` where the turn began with it, rather than was steered by it.
    """

    turn: Turn
    message: MessageId
    began: bool


class PromptQueue:
    """The prompts of one session that wait for the turn that runs, to begin turns of their own.

    They are held in memory: nothing of a prompt is in the journal before its turn begins.

    Attributes:
        waiting: how many there are.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._front = asyncio.Lock()  # whoever has it is the next; the lock is fair

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait behind earlier prompts; inside the `with` block it is the next to begin a turn."""
        self.waiting += 1
        try:
            async with self._front:
                yield
        finally:
            self.waiting -= 1


class PromptHandler:
    """Handles the prompts of one session, one after the other.

    Args:
        core: the session.
        turns: its turns.
        resources: what they work with.
        extensions: its MCP servers and skills, which have commands.

    Attributes:
        queue: the prompts that wait for the turn that runs.
    """

    def __init__(
        self,
        core: SessionCore,
        turns: TurnRunner,
        resources: SessionResources,
        extensions: Extensions,
    ) -> None:
        self.queue = PromptQueue()
        self._core = core
        self._turns = turns
        self._resources = resources
        self._commands = CommandContext(
            core=core,
            resources=resources,
            extensions=extensions,
            waiting=lambda: self.queue.waiting,
            stop_child=turns.cancel_child,
        )
        self._extensions = extensions
        self._notes = Notes(core.services.config.draft_folder)
        self._rewinds = 0

    async def submit(
        self,
        content: tuple[ContentBlock, ...],
        *,
        cancelled: Callable[[], bool],
        steers: bool | None = None,
        withdrawable: bool = False,
    ) -> PromptResult:
        """Submit a prompt.

        While a turn runs, the prompt steers that turn: the words reach the model with its next
        request, and a command that the agent answers by itself is answered at once.

        Args:
            content: what the user says.
            cancelled: whether it was cancelled before a turn could begin.
            steers: true where it must become part of the turn that runs, false where it must not.
            withdrawable: whether a prompt that was cancelled before it is in the conversation is
                dropped; else it is recorded, and its turn is stopped.

        Returns:
            The message, and the turn that it is part of. The turn's result is the prompt's; a
            message that began it is in the conversation when `Turn.inserted` says so, others are
            already.

        Raises:
            InvalidInputError: the model cannot take a block of the content.
            AuthRequiredError: no model can be used.
            SessionNotFoundError: the session was closed meanwhile.
            StoreError: the journal could not be written.
            TurnRunsError, NoTurnError: it is to begin a turn, or to steer one, and cannot now;
                nothing was recorded.
            PromptCancelledError: it was withdrawn.
        """
        async with self._turns.lock:
            if self._core.closing:
                raise SessionNotFoundError(self._core.id)
            self._turns.check(steers)  # before anything that cannot be undone
            model = await self._core.settings.choose_model()
            check_prompt(content)
            command = await find_command(self._commands, content, cancelled)
            options = None if command is None else command.options
            content = await self._usable(content, model if options is None else options.model)
            message, plan = await self._planned(content, command)
            turn = await self._turns.submit(
                message, plan, steers=steers, withdrawn=cancelled if withdrawable else _never
            )
            began = turn.began_with(message.message)
            if not began and command is not None and command.compaction is not None:
                self._resources.compaction_request = command.compaction
            if cancelled() and not withdrawable:
                turn.cancel()
            return PromptResult(turn=turn, message=message.message, began=began)

    async def _usable(
        self, content: tuple[ContentBlock, ...], model: ModelInfo
    ) -> tuple[ContentBlock, ...]:
        """Return the content as the model can be sent it, without secrets in attached files."""
        if any(isinstance(block, ImageBlock) for block in content):
            self._check_images(model)
            content = await asyncio.to_thread(usable_images, content)
        if any(isinstance(block, ResourceBlock) for block in content):
            from acp_agent.agent.attachments import without_secrets  # noqa: PLC0415 - for files only

            content = without_secrets(content, self._core.secrets)
        return content

    def _check_images(self, model: ModelInfo) -> None:
        if model.vision or self._core.services.config.vision_model is not None:
            return
        from acp_agent.tools import ocr  # noqa: PLC0415 - rarely needed

        if not ocr.can_recognise():
            raise InvalidInputError(
                f"prompt: the model {model.ref} cannot see images; choose one that can, set "
                "vision_model in the configuration, or have their text recognised here: "
                f"{ocr.INSTALL}",
                field="prompt",
            )

    async def _planned(
        self, content: tuple[ContentBlock, ...], command: FoundCommand | None
    ) -> tuple[UserMessage, TurnPlan]:
        """Return the message that a prompt becomes, and what a turn does that begins with it."""
        from acp_agent.session.turns.plan import TurnPlan  # noqa: PLC0415 - for prompts only

        message = UserMessage(message=new_message_id(), content=content)
        if command is None:
            attached = await self._attached(content, None)
            told = await self._instructions(content)
            return replace(message, attached=attached, instructions=told), TurnPlan()
        reply = await self._reply(command)
        if reply is not None:
            plan = TurnPlan(reply=agent_message(reply), action=command.action)
            return replace(message, local=True), plan
        # Where the turn that runs ends before the message is part of it, no call is made: the
        # message has the text with it.
        call = None if self._turns.is_steerable else command.call
        asks = call is None or command.asks_with_call
        attached = await self._attached(content, command.ask if asks else None)
        told = await self._instructions(content)
        return replace(message, attached=attached, instructions=told), TurnPlan(
            repetition=command.repetition, flow=command.flow, options=command.options, call=call
        )

    async def _reply(self, command: FoundCommand) -> str | None:
        """Return what the agent answers by itself; None: the model is to answer."""
        translate = self._core.translate
        if command.refusal:
            return translate(command.refusal)
        if command.compaction is not None:
            return translate(COMPACTION_REQUESTED)
        if command.repetition is not None and self._turns.is_steerable:
            return translate(
                "A loop starts its own turn. Try again when the current turn has ended."
            )
        if command.flow is not None and self._turns.is_steerable:
            return translate(
                "A flow starts its own turn. Try again when the current turn has ended."
            )
        return None if command.answer is None else await command.answer()

    async def _attached(self, content: tuple[ContentBlock, ...], ask: str | None) -> str:
        """Return what the model is sent with the user's words: a command's text, notes, files."""
        core = self._core
        texts = [] if ask is None else [core.clean(ask)]
        if core.state.rewinds != self._rewinds:  # the model may have lost the notes
            self._notes = Notes(core.services.config.draft_folder)
            self._rewinds = core.state.rewinds
        # Where the folders may be others than those in the system prompt.
        moved = core.state.moved and core.context.system_prompt is not None
        texts += self._notes.due(
            today=datetime.now().astimezone().date(),
            mode=core.settings.mode,
            moved_to=(core.cwd, core.directories) if moved else None,
        )
        if any(isinstance(block, ResourceLinkBlock) for block in content):
            workspace = (await self._resources.for_turn()).tools.workspace
            from acp_agent.agent.attachments import linked_files  # noqa: PLC0415 - for links only

            texts += await linked_files(content, workspace, secrets=core.secrets)
        mcp = self._extensions.mcp
        if mcp is not None and any(
            isinstance(one, TextBlock) and "@" in one.text for one in content
        ):
            from acp_agent.session.mcp.attachments import attached_resources  # noqa: PLC0415 - so

            texts += map(core.clean, await attached_resources(content, mcp))
        return "\n\n".join(texts)

    async def _instructions(self, content: tuple[ContentBlock, ...]) -> tuple[tuple[str, str], ...]:
        """Return the instruction files that hold for linked files and that are not sent yet."""
        if not any(isinstance(block, ResourceLinkBlock | ResourceBlock) for block in content):
            return ()
        turn = await self._resources.for_turn()

        from acp_agent.agent.attachments import linked_paths  # noqa: PLC0415 - for links only
        from acp_agent.agent.folder_instructions import FolderInstructions  # noqa: PLC0415 - so
        from acp_agent.session.turns.system_prompt import find_instructions  # noqa: PLC0415 - so

        known: list[Path] = []
        if self._core.context.system_prompt is None:  # it is written when the turn begins
            known = [one.path for one in (await find_instructions(self._core)).found]
        paths = linked_paths(content, turn.tools.workspace)
        return await FolderInstructions(turn, known).added_by(ReadAccess(paths))


def check_prompt(content: Sequence[ContentBlock]) -> None:
    """Check that a prompt is not empty.

    Raises:
        InvalidInputError: it is.
    """
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in content):
        raise InvalidInputError("prompt: it is empty; enter some text", field="prompt")


def _never() -> bool:
    return False


def usable_images(content: Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """Return a prompt whose images are canonical base64 and have the type that they are of.

    A provider refuses a whole request for one image that it cannot read. In the conversation that
    would be every request from then on.

    Raises:
        InvalidInputError: models cannot read one of them; the message says why.
    """
    return tuple(_usable_image(one) if isinstance(one, ImageBlock) else one for one in content)


def _usable_image(picture: ImageBlock) -> ImageBlock:
    from acp_agent.content import image_type  # noqa: PLC0415 - likewise
    from acp_agent.models.request_parts import LARGEST  # noqa: PLC0415 - for images only

    most = LARGEST * 3 // 4  # bytes; a model that takes less is told of the image in words
    text = "".join(picture.data.split())  # it may be broken into lines
    try:
        data = binascii.a2b_base64(text, strict_mode=True)  # else what is foreign is left out
    except ValueError:
        data = b""
    kind = image_type(data)
    if kind is None:
        raise InvalidInputError(
            f"prompt: a picture ({picture.mime_type or 'of no type'}) is none that models can "
            "read; send PNG, JPEG, GIF or WebP as base64",
            field="prompt",
        )
    if len(data) > most:
        raise InvalidInputError(
            f"prompt: a picture has {len(data):,} bytes, and models take {most:,} at most; send "
            "a smaller one",
            field="prompt",
        )
    if (text, kind) == (picture.data, picture.mime_type):
        return picture
    return replace(picture, data=text, mime_type=kind)
