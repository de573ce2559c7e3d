"""`acp-agent mcp list` and `test`: list the configured servers, and connect to them."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.locations import find_folders
from acp_agent.extensions.mcp.config import (
    MARK,
    HttpServer,
    ProgramServer,
    SavedLogins,
    ServerConfig,
    all_values,
)
from acp_agent.extensions.mcp.configured import FoundServers, find_servers, first_of_each_name
from acp_agent.extensions.mcp.server import McpServer, ServerSettings
from acp_agent.platform.watchdog import Watchdog
from acp_agent.session.confinement import Confinement
from acp_agent.session.services import SharedSandboxes
from acp_agent.trust.store import TrustStore
from acp_agent.workspace.scrub import scrub


def show_servers(options: argparse.Namespace) -> int:
    """List the servers and problems of a session in a folder; return the exit status."""
    setup = load_user_config()
    found = _found(setup, options)
    servers = first_of_each_name(found.servers)
    rows = [
        (
            server.name,
            server.options.source,
            "enabled" if server.options.enabled else "disabled",
            where(server),
        )
        for server in servers
    ]
    if options.json:
        names = ("name", "source", "state", "where")
        say_json(
            {
                "servers": [dict(zip(names, row, strict=True)) for row in rows],
                "problems": list(found.problems),
                "untrusted": [item.path for item in found.untrusted],
            }
        )
        return FAILED if found.problems else 0
    if rows:
        words = {"user": translate("you"), "project": translate("the project")}
        words |= {"enabled": translate("enabled"), "disabled": translate("disabled")}
        headings = [translate("Server"), translate("From"), translate("State"), translate("Where")]
        say_table(headings, [(name, words[a], words[b], place) for name, a, b, place in rows])
    else:
        _say_none()
    for item in found.untrusted:
        say(translate("{file} is not used until you trust it: acp-agent trust", file=item.path))
    for problem in found.problems:
        complain(translate_rendered(problem))
    return FAILED if found.problems else 0


def _say_none() -> None:
    say(translate("No MCP servers configured. To add one, see acp-agent mcp add --help"))


def where(server: ServerConfig) -> str:
    """Return a server's command line or address, without secrets."""
    match server:
        case ProgramServer():
            text = " ".join((server.command, *server.args))
        case HttpServer():
            text = server.url
        case _:
            text = server.name
    return scrub(text, server.options.secrets)


def _found(setup: UserConfig, options: argparse.Namespace) -> FoundServers:
    store = TrustStore(setup.paths.trust_file, setup.config.trusted_folders)
    return find_servers(
        setup.config,
        setup.paths.config_file,
        options.cwd,
        setup.environ,
        folders=find_folders(options.cwd, user=setup.paths.config_file.parent, home=Path.home()),
        trusts=store.trusts,
    )


def test(options: argparse.Namespace) -> int:
    """Connect to servers and show what they offer; return the exit status.

    Raises:
        InvalidInputError: a server name is unknown.
    """
    setup = load_user_config()
    found = _found(setup, options)
    known = {server.name: server for server in first_of_each_name(found.servers)}
    for name in options.name:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InvalidInputError(f"unknown MCP server {name!r}; known: {listed}")
    chosen = [known[name] for name in options.name] or [
        server for server in known.values() if server.options.enabled
    ]
    results = asyncio.run(_connect(chosen, setup, options))
    if options.json:
        say_json([result for result, _ in results])
    elif not results:
        _say_none()
    else:
        for result, lines in results:
            say(f"{result['server']}: {result['state']}")
            for line in lines:
                say(f"  {line}")
    for problem in found.problems:
        complain(translate_rendered(problem))
    failed = any(result["state"] != "connected" for result, _ in results)
    return FAILED if failed or found.problems else 0


class _Reporter(Struct):
    """Receives a server's reports (`acp_agent.extensions.mcp.server.Owner` and `Asker`)."""

    why: str = ""

    def changed(self) -> None:
        """Do nothing; the lists are not cached."""

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
        home=Path(setup.environ.get("HOME") or Path.home()),
        program_files=setup.paths.program_files,
    )

    async def one(server: ServerConfig) -> tuple[dict[str, object], list[str]]:
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
            about = {
                "tools": names,
                "prompts": [prompt.name for prompt in offer.prompts],
                "resources": [resource.uri for resource in offer.resources],
            }
            lines = [
                f"{key}: {', '.join(map(str, values))}" for key, values in about.items() if values
            ]
            return {"server": server.name, "state": "connected", **about}, lines
        finally:
            await running.aclose()

    try:
        return list(await asyncio.gather(*(one(server) for server in servers)))
    finally:
        await watch.aclose()
        await confinement.sandboxes.aclose()
