"""Blocks of content, shared with the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from protocol.codec.tolerance import Lenient, LenientItems, OpenUnion
from protocol.shared.types import Int64, Wire

Role: TypeAlias = Literal["assistant", "user"]


class Annotations(Wire):
    """Hints for showing content: for whom, how important (0 to 1), and from when (ISO 8601)."""

    audience: LenientItems[Sequence[Role] | None] = None
    last_modified: Lenient[str | None] = None
    priority: Lenient[float | None] = None


class TextContent(Wire, tag_field="type", tag="text"):
    """Plain text or Markdown."""

    text: str
    annotations: Lenient[Annotations | None] = None


class ImageContent(Wire, tag_field="type", tag="image"):
    """A picture: base64 `data` of the media type."""

    data: str
    mime_type: str
    uri: Lenient[str | None] = None
    annotations: Lenient[Annotations | None] = None


class AudioContent(Wire, tag_field="type", tag="audio"):
    """A sound: base64 `data` of the media type."""

    data: str
    mime_type: str
    annotations: Lenient[Annotations | None] = None


class ResourceLink(Wire, tag_field="type", tag="resource_link"):
    """A resource that the agent can read by itself; `size` in bytes."""

    name: str
    uri: str
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    mime_type: Lenient[str | None] = None
    size: Lenient[Int64 | None] = None
    annotations: Lenient[Annotations | None] = None


class EmbeddedResourceResource(OpenUnion):
    """The body of a resource: `TextResourceContents` or `BlobResourceContents`."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Text where there is a text, else a blob."""
        if "blob" in value and not isinstance(value.get("text"), str):
            return BlobResourceContents
        return TextResourceContents


class TextResourceContents(Wire, EmbeddedResourceResource):
    """The text of a resource."""

    text: str
    uri: str
    mime_type: Lenient[str | None] = None


class BlobResourceContents(Wire, EmbeddedResourceResource):
    """The bytes of a resource in base64."""

    blob: str
    uri: str
    mime_type: Lenient[str | None] = None


class EmbeddedResource(Wire, tag_field="type", tag="resource"):
    """A resource with its body."""

    resource: EmbeddedResourceResource
    annotations: Lenient[Annotations | None] = None


ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
)
