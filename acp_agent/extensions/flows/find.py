"""Find the chart in a flow skill's Markdown."""

from __future__ import annotations

from msgspec.structs import replace

from acp_agent.errors import ConfigError
from acp_agent.extensions.flows.d2 import D2Parser
from acp_agent.extensions.flows.flow import Flow
from acp_agent.extensions.flows.mermaid import MermaidParser

_PARSERS: dict[str, type[MermaidParser | D2Parser]] = {"mermaid": MermaidParser, "d2": D2Parser}


def find_flow(text: str, line: int) -> Flow:
    """Return the flow of the first chart in Markdown.

    Args:
        line: the number of its first line in the file.

    Raises:
        ConfigError: there is no chart, or it cannot be run; the message has the line.
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415 - for flows only

    for token in MarkdownIt("commonmark").parse(text):
        language = token.info.strip().partition(" ")[0].lower()
        if token.type == "fence" and token.map and language in _PARSERS:
            start, end = token.map
            flow = _PARSERS[language](token.content, line + start + 1).parse()
            lines = text.split("\n")
            return replace(flow, notes="\n".join([*lines[:start], *lines[end:]]).strip())
    raise ConfigError("type: a flow needs a chart; add a block of ```mermaid or ```d2")
