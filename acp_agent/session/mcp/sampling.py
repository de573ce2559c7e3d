"""Answers of models that MCP servers ask for, each approved by the user.

Source: Model Context Protocol, Sampling. The session's own conversation is never part of it.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import mcp_types as types
from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.agent.side_requests import ask_side_request
from acp_agent.content import IMAGE_LIMIT, image_block, image_type, text_part
from acp_agent.errors import AcpAgentError
from acp_agent.extensions.mcp.server_messages import refusal
from acp_agent.ids import SessionId
from acp_agent.models.base import (
    AnswerText,
    Finished,
    Message,
    ModelInfo,
    ModelRequest,
    ModelSide,
    StreamEvent,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.permissions.choices import gate_texts, once_choices
from acp_agent.session.client import Client
from acp_agent.session.confirmation import confirm
from acp_agent.session.turns.plan import reasons
from acp_agent.tools.quoting import code_block, shorten

_MAX_REQUESTS = 10  # of a server in a turn
_MAX_TEXT = 100_000  # characters of a request
_MAX_IMAGES = 4  # of a request
_MAX_ANSWER_TOKENS = 4_000
_MAX_QUESTION_TEXT = 4_000  # characters of a request in the question

_log = logging.getLogger(__name__)


class _RefusedError(Exception):
    """The request cannot be sent to a model."""


class Sampler:
    """Asks models for servers in one turn.

    Args:
        turn: the turn, whose budgets count the requests.
        session: the session whose user is asked.
        client: shows the question.
        notify: shows events that are not part of the conversation.
        clean: removes secrets from a text.
    """

    def __init__(
        self,
        turn: TurnResources,
        session: SessionId,
        client: Client,
        notify: Callable[..., Awaitable[None]],
        clean: Callable[[str], str],
    ) -> None:
        self.turn = turn
        self._session = session
        self._client = client
        self._notify = notify
        self._clean = clean
        self._counts: Counter[str] = Counter()

    async def sample(
        self, server: str, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask a model, if the user agrees; return its answer or why there is none."""
        self._counts[server] += 1
        if self._counts[server] > _MAX_REQUESTS:
            return refusal(f"more than {_MAX_REQUESTS} requests in one turn")
        try:
            request = self._request(params)
            if not await self._is_allowed(server, request):
                return types.ErrorData(code=-1, message="the user rejected the request")
            ends: list[Finished] = []

            def observe(event: StreamEvent) -> None:
                if isinstance(event, Finished):
                    ends.append(event)

            text = await ask_side_request(self.turn, request, observe=observe)
        except _RefusedError as error:
            return refusal(str(error))
        except AcpAgentError as error:
            _log.info("a model's answer for an MCP server failed: %s", error)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=self._clean(str(error)))
        is_cut = bool(ends) and ends[-1].stop == "max_tokens"
        stops = [text.find(stop) for stop in params.stop_sequences or () if stop and stop in text]
        reason = "stopSequence" if stops else "maxTokens" if is_cut else "endTurn"
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=self._clean(text[: min(stops, default=len(text))])),
            model=request.model.ref,
            stop_reason=reason,
        )

    def _request(self, params: types.CreateMessageRequestParams) -> ModelRequest:
        if params.tools or params.tool_choice:
            raise _RefusedError("tools are not supported")
        system = self._clean(params.system_prompt or "")
        model = self._model(params.model_preferences)
        messages = tuple(self._message(message, model) for message in params.messages)
        if not messages or not isinstance(messages[-1], UserSide):
            raise _RefusedError("the last message must be the user's")
        parts = [part for message in messages for part in message.parts]
        size = len(system) + sum(
            len(part.text) for part in parts if isinstance(part, UserText | AnswerText)
        )
        if size > _MAX_TEXT:
            raise _RefusedError(f"more than {_MAX_TEXT:,} characters")
        if sum(isinstance(part, UserImage) for part in parts) > _MAX_IMAGES:
            raise _RefusedError(f"more than {_MAX_IMAGES} pictures")
        limit = max(1, min(params.max_tokens, model.max_output, _MAX_ANSWER_TOKENS))
        level = next(iter(model.thought_levels), None)
        temperature = model.temperature
        if params.temperature is not None and not reasons(model, level):
            temperature = min(2.0, max(0.0, params.temperature))
        return ModelRequest(
            model=replace(model, max_output=limit, temperature=temperature),
            system=system,
            messages=messages,
            thought_level=level,
        )

    def _model(self, preferences: types.ModelPreferences | None) -> ModelInfo:
        """Return the small model, unless the server prefers a capable one."""
        models = self.turn.models
        if preferences is None or preferences.intelligence_priority is None:
            return models.small
        other_priority = max(preferences.cost_priority or 0.0, preferences.speed_priority or 0.0)
        return (
            models.current if preferences.intelligence_priority > other_priority else models.small
        )

    def _message(self, message: types.SamplingMessage, model: ModelInfo) -> Message:
        blocks: Sequence[types.SamplingMessageContentBlock] = message.content_as_list
        if message.role == "assistant":
            return ModelSide(tuple(AnswerText(self._text(block)) for block in blocks))
        parts = [
            _picture(block, model)
            if isinstance(block, types.ImageContent)
            else UserText(self._text(block))
            for block in blocks
        ]
        return UserSide(tuple(parts))

    def _text(self, block: types.SamplingMessageContentBlock) -> str:
        if not isinstance(block, types.TextContent):
            raise _RefusedError(f"content of type {block.type} is not supported")
        return self._clean(block.text)

    async def _is_allowed(self, server: str, request: ModelRequest) -> bool:
        translate = self.turn.user.translate
        title = translate(
            "The MCP server {server} asks the model {model}",
            server=repr(server),
            model=request.model.ref,
        )
        decision = await confirm(
            self._client,
            self._session,
            self._notify,
            name="sampling",
            title=title,
            content=(text_part(code_block(shorten(_shown_text(request), _MAX_QUESTION_TEXT), "")),),
            choices=once_choices(gate_texts(translate.language)),
        )
        return decision.choice is not None and decision.choice.kind == "allow_once"


def _picture(block: types.ImageContent, model: ModelInfo) -> UserImage:
    if not model.vision:
        raise _RefusedError("the model cannot see pictures")
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    kind = image_type(data[:32])
    if kind is None or len(data) > IMAGE_LIMIT:
        raise _RefusedError("a picture cannot be used")
    return UserImage(image_block(data, kind))


def _shown_text(request: ModelRequest) -> str:
    """Return what would be sent, for the user."""
    lines = [f"system: {request.system}"] if request.system else []
    for message in request.messages:
        role = "user" if isinstance(message, UserSide) else "assistant"
        for part in message.parts:
            text = part.text if isinstance(part, UserText | AnswerText) else "[picture]"
            lines.append(f"{role}: {text}")
    return "\n\n".join(lines)
