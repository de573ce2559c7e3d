"""Which media types are text that a model can read."""

from __future__ import annotations

HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)


def is_text(media_type: str) -> bool:
    """Whether a body of this media type ("" where none was given) can be shown as text."""
    return (
        not media_type
        or media_type in HTML
        or media_type in _TEXT
        or media_type.startswith("text/")
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )
