"""Find and call tools of MCP servers whose schemas the model is not sent.

Above a number of server tools, the schemas would fill each request. The model gets two tools in
their place: one lists all names with a line each and finds schemas, the other calls what was found.
What a request begins with stays the same whatever is found, as the provider's cache needs it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import (
    NOTHING,
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    Touches,
    text_argument,
)
from acp_agent.tools.mcp_tool import McpTool
from acp_agent.tools.quoting import code_block, first_line
from acp_agent.workspace.workspace import Workspace

SEARCH = "search_mcp_tools"
CALL = "call_mcp_tool"
_MAX_LINE = 90  # characters of a tool's description in the list
_MAX_LIST = 16_000  # characters of the whole list
_MAX_TOOLS = 20  # tools of one answer
_NAME_WEIGHT = 3  # a word in a name counts so many times as one in a description
_WORD = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class SearchParams(ToolParams):
    """The search tool's parameters."""

    query: Annotated[
        str,
        Field(min_length=1, max_length=1_000, description="Words, or exact names with commas."),
    ]
    limit: Annotated[int, Field(ge=1, le=_MAX_TOOLS)] = 5


class SearchMcpTools(Tool[SearchParams]):
    """Finds tools by words, without a request to a server.

    Args:
        tools: those that can be found.
    """

    name: ClassVar[str] = SEARCH
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[SearchParams]] = SearchParams
    serves_deferred: ClassVar[bool] = True

    def __init__(self, workspace: Workspace, tools: Sequence[McpTool]) -> None:
        super().__init__(workspace)
        self._tools = {tool.name: tool for tool in tools}
        self._words = {tool.name: _tool_words(tool) for tool in tools}
        self._rarity = _rarity(list(self._words.values()))

    def description(self) -> str:
        """Return the description for the model, with the names of all tools."""
        lines: list[str] = []
        remaining = _MAX_LIST
        for tool in self._tools.values():
            summary = first_line(tool.server_description(), _MAX_LINE)
            line = f"{tool.name}: {summary}" if summary else tool.name
            if len(line) > remaining:
                lines.append(f"and {len(self._tools) - len(lines)} more")
                break
            remaining -= len(line) + 1
            lines.append(line)
        intro = (
            "Finds tools of MCP servers and returns their parameters. Look a tool up here before "
            f"you call it with {CALL}. The tools are:"
        )
        return "\n".join([intro, *lines])

    def title(self, arguments: JsonObject) -> str:
        """Return the query."""
        query = text_argument(arguments, "query")
        return f"Search MCP tools for `{query}`" if query else "Search MCP tools"

    def touches(self, params: SearchParams) -> Touches:
        """Return nothing: the list is in memory."""
        del params
        return NOTHING

    async def prepare(self, params: SearchParams) -> Prepared:
        """Return the call; there is nothing to check."""

        async def run(_progress: Progress) -> Outcome:
            tools = self.find(params.query, params.limit)
            text = "\n\n".join(map(_describe, tools))
            names = ", ".join(tool.name for tool in tools) or "-"
            return Outcome(
                text=text or "[no tool fits: use other words]",
                content=(text_part(code_block(names, "")),),
            )

        return Prepared(title=self.title(params.model_dump()), run=run)

    def find(self, query: str, limit: int) -> list[McpTool]:
        """Return the best matches: exact names, otherwise tools with rare words of the query."""
        exact = [
            self._tools[name] for part in query.split(",") if (name := part.strip()) in self._tools
        ]
        if exact:
            return exact[:_MAX_TOOLS]
        query_words = set(_split_words(query))
        scores = {
            name: sum(
                self._rarity.get(word, 0.0) * words[word] for word in query_words if word in words
            )
            for name, words in self._words.items()
        }
        best = sorted((name for name in scores if scores[name] > 0), key=lambda name: -scores[name])
        return [self._tools[name] for name in best[:limit]]


class CallParams(ToolParams):
    """The calling tool's parameters."""

    name: Annotated[str, Field(description=f"As {SEARCH} has it.")]
    arguments: Annotated[JsonObject, Field(description="The tool's own.", default_factory=dict)]


class CallMcpTool(Tool[CallParams]):
    """Calls the tool that its arguments name; permissions and display are those of that tool."""

    name: ClassVar[str] = CALL
    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[CallParams]] = CallParams
    serves_deferred: ClassVar[bool] = True

    def description(self) -> str:
        """Return the description for the model."""
        return f"Calls a tool of an MCP server that {SEARCH} found."

    def title(self, arguments: JsonObject) -> str:
        """Return the name of the tool while the call is incomplete."""
        name = text_argument(arguments, "name")
        return f"Call `{name}`" if name else "Call a tool of an MCP server"

    def forwarded(self, arguments: JsonObject) -> tuple[str, JsonObject] | None:
        """Return the call of the named tool; None if no tool is named."""
        name, values = arguments.get("name"), arguments.get("arguments", {})
        if isinstance(values, str):  # some models write them as text
            try:
                values = msgspec.json.decode(values)
            except ValueError:
                return None
        if not isinstance(name, str) or name == CALL or not isinstance(values, dict):
            return None
        return name, values

    async def prepare(self, params: CallParams) -> Prepared:
        """Always raise ToolError: only calls that name no tool get here."""
        raise ToolError(
            f"there is no tool {params.name!r} to call", advice=f"look it up with {SEARCH}"
        )


def _describe(tool: McpTool) -> str:
    parameters = msgspec.json.encode(tool.parameters()).decode()
    return f"# {tool.name}\n{tool.server_description()}\nparameters: {parameters}"


def _split_words(text: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text))]
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words]


def _tool_words(tool: McpTool) -> Counter[str]:
    words = Counter(set(_split_words(tool.server_description())))
    for word in set(_split_words(tool.name)):
        words[word] += _NAME_WEIGHT
    return words


def _rarity(word_counts: Sequence[Counter[str]]) -> dict[str, float]:
    """Return the weight of each word: higher if fewer tools have it."""
    counts = Counter(word for words in word_counts for word in words)
    return {word: math.log(1 + len(word_counts) / count) for word, count in counts.items()}
