"""Convert a fetched body to text that a model can read."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from urllib.parse import urljoin

from bs4 import BeautifulSoup
from markdownify import ATX, MarkdownConverter

from acp_agent.content import escaped
from acp_agent.errors import WorkspaceError

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_REMOVED_ELEMENTS = ("script", "style", "noscript", "template", "svg", "iframe", "object", "head")


def page_text(body: bytes, *, media_type: str, charset: str | None, url: str, limit: int) -> str:
    """Return the text of a body: HTML as Markdown with absolute links, all else unchanged.

    The parser takes seconds for megabytes of ordinary HTML, and hours for a few kilobytes that
    are crafted to slow it down. Call this function in a process that can be killed.

    Args:
        media_type: the media type from the response header; empty if there is none.
        charset: the charset from the response header.
        url: the address of the page, used to resolve links.
        limit: maximum number of characters to return.

    Raises:
        WorkspaceError: the body has no media type and is not text.
    """
    if not media_type:
        if b"\0" in body[:1024]:
            raise WorkspaceError("it is no text")
        media_type = "text/html" if _looks_like_html(body) else "text/plain"
    if media_type in _HTML:
        text = _markdown(body, charset, url)
    else:
        text = body.decode(_valid_charset(charset) or "utf-8-sig", "replace")
    # Characters that a reader of the page cannot see must be visible to the model.
    return escaped(text[:limit])[:limit]


def _looks_like_html(body: bytes) -> bool:
    return (
        body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))
    )


def _valid_charset(charset: str | None) -> str | None:
    """Return the charset if Python has a text encoding of that name, else None."""
    try:
        if charset is None or codecs.lookup(charset).name in {"base64", "hex", "rot13", "zlib"}:
            return None
        b"".decode(charset)
    except (LookupError, ValueError):
        return None
    return charset


def _markdown(body: bytes, charset: str | None, url: str) -> str:
    soup = BeautifulSoup(body, "html.parser", from_encoding=_valid_charset(charset))
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for element in soup(_REMOVED_ELEMENTS):
        element.decompose()
    _make_links_absolute(soup, url)
    try:
        text = MarkdownConverter(heading_style=ATX).convert_soup(soup)
    except RecursionError:  # no real page is nested this deeply
        text = soup.get_text("\n", strip=True)
    lines = (line.rstrip() for line in text.split("\n"))
    text = _without_blank_runs(lines)
    return f"# {title}\n\n{text}" if title and not text.startswith("# ") else text


def _make_links_absolute(soup: BeautifulSoup, url: str) -> None:
    for link in soup("a", href=True):
        try:
            link["href"] = urljoin(url, str(link["href"]))
        except ValueError:  # malformed address: only the text of the link matters
            del link["href"]
    for image in soup("img"):
        if str(image.get("src", "")).startswith("data:"):
            image.decompose()


def _without_blank_runs(lines: Iterable[str]) -> str:
    result: list[str] = []
    for line in lines:
        if line or (result and result[-1]):
            result.append(line)
    return "\n".join(result).strip("\n")
