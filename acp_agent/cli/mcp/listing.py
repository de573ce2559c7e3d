"""`acp-agent mcp list` and `test`: list the configured servers, and connect to them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.config import (
    MARK,
    HttpServer,
    ProgramServer,
    SavedLogins,
    ServerConfig,
    all_values,
)
from acp_agent.extensions.mcp.configured import first_of_each_name
from acp_agent.extensions.mcp.server import McpServer, ServerSettings
from acp_agent.platform.watchdog import Watchdog
from acp_agent.session.confinement import Confinement
from acp_agent.session.sandboxes import SharedSandboxes
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # slow to import
    import mcp_types as types


def show_servers(options: argparse.Namespace) -> int:
    """List the servers and problems of a session in a folder; return the exit status."""
    setup = load_user_config()
    configured = setup.mcp_servers(options.cwd)
    servers = first_of_each_name(configured.servers)
    rows = [
        (
            server.name,
            server.options.source,
            "enabled" if server.options.enabled else "disabled",
            describe_target(server),
        )
        for server in servers
    ]
    if options.json:
        names = ("name", "source", "state", "where")
        say_json(
            {
                "servers": [dict(zip(names, row, strict=True)) for row in rows],
                "problems": list(configured.problems),
                "notes": list(configured.notes),
                "untrusted": [item.path for item in configured.untrusted],
            }
        )
        return FAILED if configured.problems else 0
    if rows:
        words = {"user": translate("you"), "project": translate("the project")}
        words |= {"enabled": translate("enabled"), "disabled": translate("disabled")}
        say_table(
            ("Server", "From", "State", "Where"),
            [(name, words[a], words[b], location) for name, a, b, location in rows],
        )
    else:
        _report_none()
    for item in configured.untrusted:
        say(translate("{file} is not used until you trust it: acp-agent trust", file=item.path))
    for problem in (*configured.problems, *configured.notes):
        complain(translate_rendered(problem))
    return FAILED if configured.problems else 0


def _report_none() -> None:
    say(translate("No MCP servers configured. To add one, see acp-agent mcp add --help"))


def describe_target(server: ServerConfig) -> str:
    """Return a server's command line or address, without secrets."""
    match server:
        case ProgramServer():
            text = " ".join((server.command, *server.args))
        case HttpServer():
            text = server.url
        case _:
            text = server.name
    return scrub(text, server.options.secrets)


def test(options: argparse.Namespace) -> int:
    """Connect to servers and show what they offer; return the exit status.

    Raises:
        InvalidInputError: a server name is unknown.
    """
    setup = load_user_config()
    configured = setup.mcp_servers(options.cwd)
    servers_by_name = {server.name: server for server in first_of_each_name(configured.servers)}
    for name in options.name:
        if name not in servers_by_name:
            names = ", ".join(servers_by_name) or "none"
            raise InvalidInputError(f"unknown MCP server {name!r}; known: {names}")
    servers = [servers_by_name[name] for name in options.name] or [
        server for server in servers_by_name.values() if server.options.enabled
    ]
    results = asyncio.run(_connect(servers, setup, options))
    if options.json:
        say_json([result for result, _ in results])
    elif not results:
        _report_none()
    else:
        for result, lines in results:
            say(f"{result['server']}: {result['state']}")
            for line in lines:
                say(f"  {line}")
    for problem in (*configured.problems, *configured.notes):
        complain(translate_rendered(problem))
    failed = any(result["state"] != "connected" for result, _ in results)
    return FAILED if failed or configured.problems else 0


class _Reporter(Struct):
    """Receives a server's reports (`acp_agent.extensions.mcp.server.Owner` and `Asker`)."""

    why: str = ""

    def changed(self) -> None:
        """Do nothing; the lists are not cached."""

    def roots(self) -> Sequence[Path]:
        """Return no folders."""
        return ()

    def trace(self) -> JsonObject:
        """Return nothing; no turn runs."""
        return {}

    async def tell(self, title: str, description: str = "") -> None:
        """Store the reason of a failure."""
        self.why = description or title

    async def ask_form(self, form: Form) -> Response | None:
        """Return None; there is nobody to ask."""
        del form
        return None

    async def ask_page(self, page: Page) -> Response | None:
        """Return None; there is nobody to ask."""
        del page
        return None

    async def sample(self, params: types.CreateMessageRequestParams) -> types.ErrorData:
        """Refuse: no model is asked here."""
        from acp_agent.extensions.mcp.server_messages import refusal  # noqa: PLC0415 - few servers ask

        del params
        return refusal("no turn is running")

    def page_done(self, visit: str) -> None:
        """Do nothing; nobody was sent to a page."""

    async def refused(self, reason: str) -> None:
        """Do nothing; nobody was asked."""


async def _connect(
    servers: list[ServerConfig], setup: UserConfig, options: argparse.Namespace
) -> list[tuple[dict[str, object], list[str]]]:
    watch = Watchdog(f"{MARK}={os.urandom(16).hex()}.")
    confinement = Confinement(
        config=setup.config.sandbox,
        sandboxes=SharedSandboxes(),
        environ=setup.environ,
        home=Path.home(),
        program_files=setup.paths.program_files,
    )

    async def connect(server: ServerConfig) -> tuple[dict[str, object], list[str]]:
        reporter = _Reporter()
        limit = server.options.start_timeout or setup.config.limits.mcp_connect_timeout
        running = McpServer(
            server,
            server.name,
            setting=ServerSettings(
                cwd=options.cwd,
                environ=setup.environ,
                watch=watch,
                connect=limit,
                restart_delay=setup.config.limits.mcp_restart_delay,
                clean=lambda text: scrub(text, all_values(server)),
                launch=confinement.mcp_server,
                logins=SavedLogins(setup.paths.mcp_logins_file, lambda _: None),
            ),
            owner=reporter,
            asker=reporter,
        )
        try:
            await running.settled()
            offer = running.offer
            if offer is None:
                return {"server": server.name, "state": "failed", "why": reporter.why}, [
                    translate_rendered(reporter.why)
                ]
            names = [tool.name for tool in offer.tools if server.options.offers(tool.name)]
            offered = {
                "tools": names,
                "prompts": [prompt.name for prompt in offer.prompts],
                "resources": [resource.uri for resource in offer.resources],
            }
            lines = [
                f"{key}: {', '.join(map(str, values))}" for key, values in offered.items() if values
            ]
            lines += offer.failures
            return {"server": server.name, "state": "connected", **offered}, lines
        finally:
            await running.aclose()

    try:
        return list(await asyncio.gather(*(connect(server) for server in servers)))
    finally:
        await watch.aclose()
        await confinement.sandboxes.aclose()
