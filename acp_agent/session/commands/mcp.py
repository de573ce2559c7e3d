"""The command `/mcp`: list MCP servers and their tools; enable, disable or restart a server."""

from __future__ import annotations

from acp_agent.config.localization import Translator
from acp_agent.extensions.mcp.config import ServerConfig
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.tools.quoting import code_span, escape_markdown, first_line

_ACTIONS = ("enable", "disable", "restart")
_MAX_TOOLS = 200  # names in a list
_MAX_DESCRIPTION = 200  # characters of a tool's description


async def mcp_command(core: SessionCore, extensions: Extensions, arguments: str) -> str:
    """Return the answer to `/mcp`.

    Args:
        arguments: the text after the command: nothing, a server, or an action and a server.
    """
    await extensions.select_servers()  # a file may have changed
    servers = _Servers(core, extensions)
    action, _, name = arguments.strip().partition(" ")
    if action in _ACTIONS and name.strip():
        return core.clean(servers.change(action, name.strip()))
    return core.clean(
        servers.list_tools(arguments.strip()) if arguments.strip() else servers.list_all()
    )


class _Servers:
    def __init__(self, core: SessionCore, extensions: Extensions) -> None:
        assert extensions.selection is not None, "it was just made"
        self._translate: Translator = core.translate
        self._extensions = extensions
        self._selection = extensions.selection

    def list_all(self) -> str:
        """Return the list of all servers, one per line."""
        translate = self._translate
        lines = [
            f"- {code_span(config.name)}: {self._state(config)}"
            for config in self._selection.servers
        ]
        lines += [
            translate("- {file} is not used until you trust it: /trust", file=code_span(file))
            for file in self._selection.untrusted
        ]
        return "\n".join(lines) or translate("There are no MCP servers.")

    def list_tools(self, name: str) -> str:
        """Return a server's state and its tools."""
        config = self._config(name)
        if config is None:
            return self._unknown(name)
        running = self._find_connected(config)
        offer = None if running is None else running.offer
        offers = config.options.offers
        tools = [] if offer is None else [tool for tool in offer.tools if offers(tool.name)]
        lines = []
        for tool in tools[:_MAX_TOOLS]:
            description = escape_markdown(first_line(tool.description or "", _MAX_DESCRIPTION))
            lines.append(f"- {code_span(tool.name)}: {description}")
        if running is not None and running.recent_log:
            lines.append(self._translate("Its last log messages:"))
            lines += [f"- {escape_markdown(text)}" for text in running.recent_log]
        return "\n".join([f"{code_span(config.name)}: {self._state(config)}", *lines])

    def change(self, action: str, name: str) -> str:
        """Enable, disable or restart a server."""
        config = self._config(name)
        if config is None:
            return self._unknown(name)
        if action == "restart":
            running = self._find_connected(config)
            if running is not None and self._extensions.mcp is not None:
                self._extensions.mcp.restart(running)
        else:
            self._selection.switch(config.name, on=action == "enable")
            self._extensions.apply_selection()
        return f"{code_span(config.name)}: {self._state(config)}"

    def _config(self, name: str) -> ServerConfig | None:
        return next((server for server in self._selection.servers if server.name == name), None)

    def _unknown(self, name: str) -> str:
        names = ", ".join(code_span(server.name) for server in self._selection.servers) or "-"
        return self._translate(
            "Unknown MCP server {name}. The servers are: {names}",
            name=code_span(name),
            names=names,
        )

    def _find_connected(self, config: ServerConfig) -> McpServer | None:
        mcp = self._extensions.mcp
        servers = () if mcp is None else mcp.servers
        return next((server for server in servers if server.config == config), None)

    def _state(self, config: ServerConfig) -> str:
        translate = self._translate
        running = self._find_connected(config)
        if running is None:
            return translate("off")
        if running.offer is None:
            if not running.is_settled:
                return translate("connecting")
            why = translate.rendered(running.problem)
            return translate("not connected: {why}", why=escape_markdown(why))
        offers = config.options.offers
        count = sum(offers(tool.name) for tool in running.offer.tools)
        return translate("connected, {count} tools", count=count)
