"""The tools as a model without an API for them is told of them."""

from __future__ import annotations

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.tools import Tools


def described_json(tools: Tools) -> str:
    """The tools, one a line, as nearly every template writes them."""
    return "\n".join(
        json_text.encode(
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
        )
        for tool in tools
    )


def described_functions(tools: Tools, before: str, after: str) -> str:
    """The tools without the envelope, each between two tags."""
    return "\n".join(
        before
        + json_text.encode(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        )
        + after
        for tool in tools
    )
