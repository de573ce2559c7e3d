"""Turn a prompt into a turn, a steering message or a command."""

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

from acp_agent.content import ContentBlock, ImageBlock, ResourceBlock, ResourceLinkBlock, TextBlock
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import UserMessage, agent_message
from acp_agent.ids import MessageId, new_message_id
from acp_agent.models.base import ModelInfo
from acp_agent.permissions.access import ReadAccess
from acp_agent.session.commands.command import FoundCommand
from acp_agent.session.commands.find import CommandContext, find_command
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.turns.prompt_notes import PromptNotes
from acp_agent.session.turns.resources import SessionResources
from acp_agent.session.turns.runner import TurnRunner
from acp_agent.session.turns.turn import Turn

if TYPE_CHECKING:
    from acp_agent.session.turns.plan import TurnPlan

COMPACTION_REQUESTED = "The conversation will be summarised before the next request to the model."


class PromptResult(Struct, frozen=True, kw_only=True):
    """The message of a prompt, and the turn that it is part of.

    `began` is true if the message began the turn, false if it steers the turn.
    """

    turn: Turn
    message: MessageId
    began: bool


class PromptQueue:
    """The prompts of one session that wait for the current turn to end before they begin theirs.

    They are held in memory; a prompt is not in the journal before its turn begins.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._front_lock = asyncio.Lock()  # its holder is next; asyncio locks are fair

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait behind earlier prompts; inside the `with` block the caller's prompt is next."""
        self.waiting += 1
        try:
            async with self._front_lock:
                yield
        finally:
            self.waiting -= 1


class PromptHandler:
    """Handles the prompts of one session, one at a time.

    Args:
        extensions: its MCP servers and skills, which provide commands.
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
        self._notes = PromptNotes(core.services.config.draft_folder)
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

        While a turn runs, the prompt steers that turn: the next request to the model includes it.
        A command that the agent answers without the model is answered at once.

        Args:
            steers: true if it must steer the current turn, false if it must begin a turn; None
                allows both.
            withdrawable: whether a prompt that is cancelled before it is in the conversation is
                dropped; otherwise it is recorded, and its turn is stopped.

        Returns:
            The message and its turn. The turn's result is also the prompt's. A message that began
            the turn is in the conversation once `Turn.inserted` returns, a steering message
            already is.

        Raises:
            InvalidInputError: the model cannot take a block of the content.
            AuthRequiredError: no model can be used.
            SessionNotFoundError: the session was closed in the meantime.
            StoreError: the journal could not be written.
            TurnRunsError: `steers` is false and a turn runs; nothing was recorded.
            NoTurnError: `steers` is true and no turn runs; nothing was recorded.
            PromptCancelledError: it was withdrawn.
        """
        async with self._turns.lock:
            if self._core.closing:
                raise SessionNotFoundError(self._core.id)
            self._turns.check(steers)  # before steps that cannot be undone
            self._extensions.definitions.expire()
            model = await self._core.settings.choose_model()
            check_prompt(content)
            command = await find_command(self._commands, content, cancelled)
            options = None if command is None else command.options
            content = await self._prepare_content(
                content, model if options is None else options.model
            )
            message, plan = await self._plan(content, command)
            turn = await self._turns.submit(
                message, plan, steers=steers, withdrawn=cancelled if withdrawable else lambda: False
            )
            began = turn.began_with(message.message)
            if not began and command is not None and command.compaction is not None:
                self._resources.compaction_request = command.compaction
            if cancelled() and not withdrawable:
                turn.cancel()
            return PromptResult(turn=turn, message=message.message, began=began)

    async def _prepare_content(
        self, content: tuple[ContentBlock, ...], model: ModelInfo
    ) -> tuple[ContentBlock, ...]:
        """Return the content with readable images, and without secrets in attached files."""
        if any(isinstance(block, ImageBlock) for block in content):
            self._check_images(model)
            content = await asyncio.to_thread(usable_images, content)
        if any(isinstance(block, ResourceBlock) for block in content):
            from acp_agent.agent.attachments import without_secrets  # noqa: PLC0415 - for files only

            content = without_secrets(content, self._core.secrets)
        return content

    def _takes_images(self, model: ModelInfo) -> bool:
        """Return whether a model is sent pictures, or a description or their text."""
        if model.vision or self._core.services.config.vision_model is not None:
            return True
        from acp_agent.tools import ocr  # noqa: PLC0415 - rarely needed

        return ocr.can_recognise()

    def _check_images(self, model: ModelInfo) -> None:
        if not self._takes_images(model):
            from acp_agent.tools import ocr  # noqa: PLC0415 - rarely needed

            raise InvalidInputError(
                f"prompt: the model {model.ref} cannot see images; choose one that can, set "
                "vision_model in the configuration, or have their text recognised here: "
                f"{ocr.INSTALL}",
                field="prompt",
            )

    async def _plan(
        self, content: tuple[ContentBlock, ...], command: FoundCommand | None
    ) -> tuple[UserMessage, TurnPlan]:
        """Return the message of a prompt, and the plan of a turn that begins with it."""
        from acp_agent.session.turns.plan import TurnPlan  # noqa: PLC0415 - for prompts only

        message = UserMessage(message=new_message_id(), content=content)
        if command is None:
            message = await self._with_attachments(message, None)
            return message, TurnPlan()
        reply = await self._reply(command)
        if reply is not None:
            plan = TurnPlan(reply=agent_message(reply), action=command.action)
            return replace(message, local=True), plan
        # No call while a turn can be steered: the message then has the command's text attached,
        # also if that turn ends first and the message begins a new one.
        call = None if self._turns.is_steerable else command.call
        asks = call is None or command.asks_with_call
        message = await self._with_attachments(message, command.ask if asks else None)
        return message, TurnPlan(
            repetition=command.repetition, flow=command.flow, options=command.options, call=call
        )

    async def _reply(self, command: FoundCommand) -> str | None:
        """Return the agent's own answer to a command; None if the model has to answer."""
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

    async def _with_attachments(self, message: UserMessage, ask: str | None) -> UserMessage:
        """Return a message with what the model is sent with it: a command's text, notes, files."""
        core, content = self._core, message.content
        texts = [] if ask is None else [core.clean(ask)]
        if core.state.rewinds != self._rewinds:  # the model may have lost the notes
            self._notes = PromptNotes(core.services.config.draft_folder)
            self._rewinds = core.state.rewinds
        # The system prompt may name other folders.
        moved = core.state.moved and core.context.system_prompt is not None
        texts += self._notes.take_changed(
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
            isinstance(block, TextBlock) and "@" in block.text for block in content
        ):
            from acp_agent.session.mcp.mentions import attached_resources  # noqa: PLC0415 - likewise

            resources, images = await attached_resources(content, mcp)
            if images and not self._takes_images(core.settings.model):
                resources.append(f"[{len(images)} pictures are left out: the model sees none]")
            elif images:
                message = replace(message, content=(*content, *images))
            texts += map(core.clean, resources)
        instructions = await self._instructions(content)
        return replace(message, attached="\n\n".join(texts), instructions=instructions)

    async def _instructions(self, content: tuple[ContentBlock, ...]) -> tuple[tuple[str, str], ...]:
        """Return the instruction files for linked files that the model was not sent yet."""
        if not any(isinstance(block, ResourceLinkBlock | ResourceBlock) for block in content):
            return ()
        turn = await self._resources.for_turn()

        from acp_agent.agent.attachments import linked_paths  # noqa: PLC0415 - for links only
        from acp_agent.agent.folder_instructions import FolderInstructions  # noqa: PLC0415 - likewise
        from acp_agent.session.turns.system_prompt import find_instructions  # noqa: PLC0415 - likewise

        loaded_paths: list[Path] = []
        if self._core.context.system_prompt is None:  # it is written when the turn begins
            loaded_paths = [file.path for file in (await find_instructions(self._core)).entries]
        paths = linked_paths(content, turn.tools.workspace)
        return await FolderInstructions(turn, loaded_paths).find_added(ReadAccess(paths))


def check_prompt(content: Sequence[ContentBlock]) -> None:
    """Raise InvalidInputError if a prompt is empty."""
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in content):
        raise InvalidInputError("prompt: it is empty; enter some text", field="prompt")


def usable_images(content: Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """Return a prompt whose images are canonical base64 with their actual type.

    A provider refuses a whole request because of one image that it cannot read, and every later
    request of the conversation would include the image.

    Raises:
        InvalidInputError: models cannot read an image; the message says why.
    """
    return tuple(
        _usable_image(block) if isinstance(block, ImageBlock) else block for block in content
    )


def _usable_image(picture: ImageBlock) -> ImageBlock:
    from acp_agent.content import image_type  # noqa: PLC0415 - likewise
    from acp_agent.models.request_parts import LARGEST  # noqa: PLC0415 - for images only

    limit = LARGEST * 3 // 4  # bytes; models with a lower limit are sent a text instead
    text = "".join(picture.data.split())  # it may be broken into lines
    try:
        data = binascii.a2b_base64(text, strict_mode=True)  # else invalid bytes are skipped
    except ValueError:
        data = b""
    kind = image_type(data)
    if kind is None:
        raise InvalidInputError(
            f"prompt: a picture ({picture.mime_type or 'of no type'}) is none that models can "
            "read; send PNG, JPEG, GIF or WebP as base64",
            field="prompt",
        )
    if len(data) > limit:
        raise InvalidInputError(
            f"prompt: a picture has {len(data):,} bytes, and models take {limit:,} at most; send "
            "a smaller one",
            field="prompt",
        )
    if (text, kind) == (picture.data, picture.mime_type):
        return picture
    return replace(picture, data=text, mime_type=kind)
