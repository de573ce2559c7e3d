"""A tool of an MCP server as one of the session's tools, and the results that servers give."""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from acp_agent.content import (
    IMAGE_LIMIT,
    CallContent,
    ContentPart,
    ImageBlock,
    JsonObject,
    image_block,
    image_type,
    printable_line,
    text_part,
)
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.extensions.mcp.config import identity
from acp_agent.extensions.mcp.schemas import ToolSchema
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.permissions.access import McpAccess
from acp_agent.tools.base import (
    EVERYTHING,
    NOTHING_IF_GRANTED,
    Outcome,
    Prepared,
    Progress,
    SchemaArguments,
    SchemaTool,
    Touches,
    shown_arguments,
)
from acp_agent.tools.quoting import code_block, first_line, shorten

DESCRIPTION_LIMIT = 4_000  # characters of a description that the model is sent
_TITLE = 80  # characters
_PROGRESS_SECONDS = 0.5  # between two changes of a running call's title
_PROGRESS_COUNT = 500  # changes of one call's title, at most

T = TypeVar("T")
SHOWN_LIMIT = 4_000  # characters of text that the call shows
# Characters that are taken in at all: looking for secrets in more would hold up everything else.
TEXT_LIMIT = 2_000_000
_RAW_LIMIT = 20_000  # bytes of structured content that the call carries
_IMAGES = 8  # of one result
_NAME = 200  # characters of a name or an address
_ADDRESS = re.compile(r"\s*https?://\S+\s*", re.IGNORECASE)
Resource = types.TextResourceContents | types.BlobResourceContents


class McpTool(SchemaTool):
    """Calls a tool of a server. One class a tool, since a tool's name and kind are its class's.

    Nothing that the server says of its tool decides anything: the gate asks the user.
    """

    remote: ClassVar[types.Tool]
    schema: ClassVar[ToolSchema]
    server: ClassVar[McpServer]
    seconds: ClassVar[float]

    def description(self) -> str:
        """What the server says."""
        return self.server_description()

    @classmethod
    def server_description(cls) -> str:
        """The server's description of the tool, shortened."""
        text = cls.remote.description or _title_of(cls.remote)
        return text if len(text) <= DESCRIPTION_LIMIT else text[:DESCRIPTION_LIMIT] + " […]"

    def parameters(self) -> JsonObject:
        """The server's schema, cleaned."""
        return self.schema.for_model

    def mistakes(self, arguments: JsonObject) -> list[str]:
        """What the server's schema says is wrong."""
        return self.schema.mistakes(arguments)

    def title(self, arguments: JsonObject) -> str:
        """The server's and the tool's own name: what it calls itself may be misleading."""
        del arguments
        return f"{first_line(self.server.config.name, _TITLE)}: {_title_of(self.remote)}"

    def touches(self, params: SchemaArguments) -> Touches:
        """Return everything, unless the server says it only reads and the user has allowed it."""
        del params
        return NOTHING_IF_GRANTED if self.effect == "reads" else EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Show the arguments: they are what would be sent."""
        return Prepared(
            title=self.title(params.values),
            run=functools.partial(self._run, params.values),
            access=McpAccess(
                server=self.server.config.name,
                tool=self.remote.name,
                identity=identity(self.server.config),
                definition=definition(self.remote),
                read_only=self.effect == "reads",
                unnamed=await self._unnamed(params.values),
            ),
            content=shown_arguments(params.values),
        )

    async def _unnamed(self, arguments: JsonObject) -> tuple[str, ...]:
        """Return the addresses among the arguments that neither the user nor a search named."""
        network = self.workspace.network
        return tuple([url for url in _addresses(arguments) if not await network.is_named(url)])

    async def _run(self, arguments: JsonObject, progress: Progress) -> Outcome:
        show = _Shown(progress, self.title(arguments))
        result = await call_server(
            self.server,
            lambda: self.server.client.call_tool(self.remote.name, arguments, show),
            seconds=self.seconds,
        )
        return tool_outcome(result)


def mcp_tool(
    remote: types.Tool,
    name: str,
    *,
    server: McpServer,
    seconds: float,
    deferred: bool = False,
) -> type[McpTool]:
    """A tool of a server as a class of ours, to be made for a workspace.

    Args:
        remote: the tool as the server describes it.
        name: what the model calls it.
        server: whose it is.
        seconds: how long a call may take.
        deferred: whether the model is not sent it, and searches for it.

    Raises:
        UnusableSchemaError: its schema cannot be used.
    """
    hints = remote.annotations or types.ToolAnnotations()
    schema = ToolSchema(remote.input_schema)
    namespace: dict[str, Any] = {
        "name": name,
        "kind": _kind(hints),
        "effect": _effect(hints),
        "remote": remote,
        "schema": schema,
        "server": server,
        "seconds": seconds,
        "deferred": deferred,
    }
    return type("McpTool", (McpTool,), namespace)


def _addresses(value: object) -> Iterator[str]:
    """Yield the values that are addresses of the web as a whole."""
    match value:
        case str() if _ADDRESS.fullmatch(value):
            yield value.strip()
        case list():
            for one in value:
                yield from _addresses(one)
        case dict():
            for one in value.values():
                yield from _addresses(one)
        case _:
            pass


def _kind(hints: types.ToolAnnotations) -> ToolKind:
    if not hints.read_only_hint:
        return "other"
    return "fetch" if hints.open_world_hint else "read"


def _effect(hints: types.ToolAnnotations) -> Literal["reads", "writes"]:
    return "reads" if hints.read_only_hint else "writes"


def definition(remote: types.Tool) -> str:
    """Return a digest of all that the server says about a tool, to notice changes."""
    definition = remote.model_dump(mode="json", by_alias=True, exclude={"meta", "icons"})
    text = json.dumps(definition, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


async def call_server(
    server: McpServer, request: Callable[[], Awaitable[T]], *, seconds: float, again: bool = True
) -> T:
    """Call a server and wait at most `seconds`, not counting the time that the user takes.

    Raises:
        ToolError: it failed, is gone, or did not answer in time.
    """
    name = server.config.name
    client = server.client
    try:
        async with client.timeouts.limit(seconds):
            return await request()
    except TimeoutError:
        raise ToolError(
            f"the MCP server {name!r} did not answer within {seconds:g} s; the call was cancelled",
            advice="it may have taken effect: check before you call it again",
        ) from None
    except MCPError as error:
        if again and await client.visit(error):
            return await call_server(server, request, seconds=seconds, again=False)
        why = client.why(error, str)
        raise ToolError(f"the MCP server {name!r} failed: {why}") from None
    except (ValueError, RuntimeError) as error:
        why = printable_line(str(error).split("\n", maxsplit=1)[0], 300)
        raise ToolError(
            f"the MCP server {name!r} gave an answer of the wrong shape: {why}"
        ) from None


class _Shown:
    """Shows a call's progress in its title, now and then."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._next = 0.0
        self._count = 0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._next or self._count == _PROGRESS_COUNT:
            return
        self._next = now + _PROGRESS_SECONDS
        self._count += 1
        share = f"{min(progress / total, 1):.0%}" if total and total > 0 else ""
        text = first_line(message, _TITLE) if message else ""
        state = ", ".join(part for part in (share, text) if part)
        if state:
            await self._progress.show(title=f"{self._title} ({state})")


def _title_of(remote: types.Tool) -> str:
    """The tool's name, followed by the title that it declares."""
    declared = remote.title or (remote.annotations.title if remote.annotations else None) or ""
    name, title = first_line(remote.name, _TITLE), first_line(declared, _TITLE)
    return f"{title} ({name})" if title and title != name else name


def tool_outcome(result: types.CallToolResult) -> Outcome:
    """The result of a call.

    Structured content is what the text says too, by the specification; where there is no text, it
    is the text.
    """
    texts: list[str] = []
    images: list[ImageBlock] = []
    for block in result.content:
        _take(block, texts, images)
    structured = _json(result.structured_content)
    if structured and not any(text.strip() for text in texts):
        texts.append(structured)
    raw: JsonObject | None = None
    if structured and len(structured) <= _RAW_LIMIT:
        raw = {"structuredContent": result.structured_content}
    return _outcome(texts, images, failed=result.is_error, raw=raw)


def resource_outcome(contents: Sequence[Resource]) -> Outcome:
    """The contents of a resource that was read."""
    texts: list[str] = []
    images: list[ImageBlock] = []
    for one in contents:
        _take_resource(one, texts, images)
    return _outcome(texts, images, failed=False, raw=None)


def prompt_text(result: types.GetPromptResult) -> str:
    """Return a prompt's messages as one text, with their roles where not all are the user's."""
    alone = all(message.role == "user" for message in result.messages)
    parts: list[str] = []
    for message in result.messages:
        texts: list[str] = []
        _take(message.content, texts, [])
        text = "\n".join(texts)
        parts.append(text if alone else f"{message.role.capitalize()}:\n{text}")
    return "\n\n".join(parts)


def _outcome(
    texts: list[str], images: list[ImageBlock], *, failed: bool, raw: JsonObject | None
) -> Outcome:
    if len(images) > _IMAGES:
        texts.append(f"[{len(images) - _IMAGES} more pictures are left out]")
    images = images[:_IMAGES]
    text = "\n".join(texts)
    if len(text) > TEXT_LIMIT:
        left_out = len(text) - TEXT_LIMIT
        text = f"{text[:TEXT_LIMIT]}\n[{left_out:,} characters are left out: too much text]"
    shown: list[CallContent] = []
    if text.strip():
        shown.append(text_part(code_block(shorten(text, SHOWN_LIMIT), "")))
    shown += [ContentPart(image) for image in images]
    return Outcome(
        text=text if text.strip() else ("[pictures only]" if images else "[nothing]"),
        failed=failed,
        images=tuple(images),
        content=tuple(shown),
        raw_output=raw,
    )


def _take(block: types.ContentBlock, texts: list[str], images: list[ImageBlock]) -> None:
    match block:
        case types.TextContent():
            texts.append(block.text)
        case types.ImageContent():
            _take_image(block.data, block.mime_type, texts, images)
        case types.AudioContent():
            texts.append(f"[a sound of type {first_line(block.mime_type, _NAME)} is left out]")
        case types.ResourceLink():
            texts.append(
                f"[resource {first_line(block.name, _NAME)}: {first_line(block.uri, 1_000)}]"
            )
        case types.EmbeddedResource():
            _take_resource(block.resource, texts, images)


def _take_resource(resource: Resource, texts: list[str], images: list[ImageBlock]) -> None:
    name = first_line(resource.uri, 1_000)
    if isinstance(resource, types.TextResourceContents):
        texts.append(f"[{name}]\n{resource.text}")
    elif (resource.mime_type or "").startswith("image/"):
        _take_image(resource.blob, resource.mime_type or "", texts, images)
    else:
        kind = first_line(resource.mime_type or "unknown", _NAME)
        texts.append(f"[{name}: binary data of type {kind} is left out]")


def _take_image(data: str, declared: str, texts: list[str], images: list[ImageBlock]) -> None:
    """Add a picture that models can see; its type is read from its bytes, not as declared."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        texts.append("[a picture that is no valid base64 is left out]")
        return
    kind = image_type(raw[:32])
    if kind is None:
        texts.append(f"[a picture of type {first_line(declared, _NAME)} is left out]")
    elif len(raw) > IMAGE_LIMIT:
        texts.append(f"[a picture of {len(raw):,} bytes is left out: too large]")
    else:
        images.append(image_block(raw, kind))


def _json(value: object) -> str:
    if value is None:
        return ""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return ""
