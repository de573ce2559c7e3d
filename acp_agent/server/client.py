"""What the connected client can do, read from its `initialize`, whatever shape that came in."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from acp_agent.server.negotiation import client_flag


class ClientProfile(Struct, frozen=True, kw_only=True):
    """The client's capabilities, false where it says nothing or nothing that makes sense.

    `terminal_output` is Zed's announcement that it shows a command's live output from `_meta`.
    """

    reads_files: bool = False
    writes_files: bool = False
    terminals: bool = False
    forms: bool = False
    notices: bool = False
    compactions: bool = False
    terminal_output: bool = False


def client_profile(params: dict[str, Any]) -> ClientProfile:
    """The profile of a client from the parameters of its `initialize`, as JSON values."""
    return ClientProfile(
        reads_files=client_flag(params, "fs", "readTextFile"),
        writes_files=client_flag(params, "fs", "writeTextFile"),
        terminals=client_flag(params, "terminal"),
        forms=client_flag(params, "elicitation", "form"),
        notices=client_flag(params, "session", "notices"),
        compactions=client_flag(params, "session", "compaction"),
        terminal_output=client_flag(params, "_meta", "terminal_output"),
    )
