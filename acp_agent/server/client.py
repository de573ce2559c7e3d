"""What the connected client can do, read from its `initialize`, whatever shape that came in."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from acp_agent.server.negotiation import client_flag


class ClientProfile(Struct, frozen=True, kw_only=True):
    """The client's capabilities, false where it says nothing or nothing that makes sense.

    `forms` and `pages` are the two modes of elicitation; `plans` says that it shows plans by id.

    `terminal_output` is Zed's announcement that it shows a command's live output from `_meta`.
    """

    reads_files: bool = False
    writes_files: bool = False
    terminals: bool = False
    forms: bool = False
    pages: bool = False
    notices: bool = False
    compactions: bool = False
    plans: bool = False
    subagents: bool = False
    terminal_output: bool = False


def client_profile(params: dict[str, Any], version: int) -> ClientProfile:
    """The profile of a client from the parameters of its `initialize`, as JSON values."""
    return _profile_v1(params) if version == 1 else _profile_v2(params)


def _profile_v1(params: dict[str, Any]) -> ClientProfile:
    def has(*path: str) -> bool:
        return client_flag(params, "clientCapabilities", *path)

    return ClientProfile(
        reads_files=has("fs", "readTextFile"),
        writes_files=has("fs", "writeTextFile"),
        terminals=has("terminal"),
        forms=has("elicitation", "form"),
        pages=has("elicitation", "url"),
        notices=has("session", "notices"),
        compactions=has("session", "compaction"),
        plans=has("plan"),
        subagents=has("subagents"),
        terminal_output=has("_meta", "terminal_output"),
    )


def _profile_v2(params: dict[str, Any]) -> ClientProfile:
    """Version 2 asks no client whether it shows what belongs to every session."""
    return ClientProfile(
        forms=client_flag(params, "capabilities", "elicitation", "form"),
        pages=client_flag(params, "capabilities", "elicitation", "url"),
        notices=True,
        compactions=True,
        plans=True,
        subagents=True,
    )
