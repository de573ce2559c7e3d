"""Blocks of content, shared with the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from protocol.codec.tolerance import Lenient, LenientItems, OpenUnion, UnknownVariant
from protocol.shared.types import MediaType, UInt64, Wire

Role: TypeAlias = str  # "assistant", "user", or a word that later versions add
IconTheme: TypeAlias = str  # "light", "dark", or a word that later versions add


class Annotations(Wire):
    """Hints for showing content: for whom, how important (0 to 1), and from when (ISO 8601)."""

    audience: LenientItems[Sequence[Role] | None] = None
    last_modified: Lenient[str | None] = None
    priority: Lenient[Annotated[float, Meta(ge=0, le=1)] | None] = None


class ContentBlock(OpenUnion):
    """A piece of content: text, a picture, a sound, a link, a resource, or something newer."""

    __slots__ = ()


class TextContent(Wire, ContentBlock, tag="text"):
    """Plain text or Markdown."""

    text: str
    annotations: Lenient[Annotations | None] = None


class ImageContent(Wire, ContentBlock, tag="image"):
    """A picture: base64 `data` of the media type."""

    data: str
    mime_type: MediaType
    uri: Lenient[str | None] = None
    annotations: Lenient[Annotations | None] = None


class AudioContent(Wire, ContentBlock, tag="audio"):
    """A sound: base64 `data` of the media type."""

    data: str
    mime_type: MediaType
    annotations: Lenient[Annotations | None] = None


class Icon(Wire):
    """A picture for a resource, the sizes it suits (`48x48`, `any`) and the theme it is for."""

    src: str
    mime_type: Lenient[MediaType | None] = None
    sizes: LenientItems[Sequence[str] | None] = None
    theme: Lenient[IconTheme | None] = None


class ResourceLink(Wire, ContentBlock, tag="resource_link"):
    """A resource that the agent can read by itself; `size` in bytes."""

    name: str
    uri: str
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    icons: LenientItems[Sequence[Icon] | None] = None
    mime_type: Lenient[MediaType | None] = None
    size: Lenient[UInt64 | None] = None
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
    mime_type: Lenient[MediaType | None] = None


class BlobResourceContents(Wire, EmbeddedResourceResource):
    """The bytes of a resource in base64."""

    blob: str
    uri: str
    mime_type: Lenient[MediaType | None] = None


class EmbeddedResource(Wire, ContentBlock, tag="resource"):
    """A resource with its body."""

    resource: EmbeddedResourceResource
    annotations: Lenient[Annotations | None] = None


class OtherContentBlock(UnknownVariant, ContentBlock):
    """Content of a type not known yet."""

    __slots__ = ()
