"""Read the provider's searches and the cited pages from the events of an answer."""

from __future__ import annotations

import re

from acp_agent.content import ContentPart, TextBlock
from acp_agent.events import ToolEnded
from acp_agent.models.base import Cited, SearchEnded, Source

# The pages that an answer cites, as shown below it (`page_list` in tools/web_search.py).
_CITED_PAGES = re.compile(r"\n\n[^\n]+\n(?:- .*: <[^<> ]*>\n)+")
_PAGE = re.compile(r"^- (.*): <([^<> ]*)>$", re.MULTILINE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SEARCH_TITLE = re.compile(r"\[Search the web for (.*)\]")
_SEARCH_FAILED = "The search failed: "


def search_end(event: ToolEnded, query: str) -> SearchEnded:
    """Return the end of a provider's search."""
    title = _SEARCH_TITLE.match(event.result)
    pages = (event.raw_output or {}).get("sources", [])
    texts = [
        part.content.text
        for part in event.content or ()
        if isinstance(part, ContentPart) and isinstance(part.content, TextBlock)
    ]
    return SearchEnded(
        search=event.call,
        query=query or (title.group(1) if title else ""),
        sources=tuple(Source(page.get("url", ""), page.get("title", "")) for page in pages),
        error="".join(texts).removeprefix(_SEARCH_FAILED) if event.failed else "",
        provider_data=event.provider_data or {},
    )


def parse_citations(text: str) -> list[Cited]:
    """Return the pages that an answer cites, parsed from the list below it."""
    if not _CITED_PAGES.fullmatch(text):
        return []
    pages = [(_ESCAPE.sub(r"\1", title), url) for title, url in _PAGE.findall(text)]
    return [Cited(tuple(Source(url, "" if title == url else title) for title, url in pages))]
