"""The ways to get a usable model that an agent offers, and the one that the user picks."""

from __future__ import annotations

from acp_agent.cli.chat.agent import Agent
from acp_agent.cli.chat.front import Front, Item
from acp_agent.cli.localization import translate, translate_rendered
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp


async def log_in(agent: Agent, front: Front) -> bool:
    """Let the user choose a way to log in; whether that worked.

    Raises:
        ConnectionError: the agent ended.
    """
    ways = [
        way
        for way in agent.auth_methods
        if isinstance(way, acp.AuthMethodAgent | acp.AuthMethodTerminal)
    ]
    items = [Item(value=way.id, name=way.name, description=way.description or "") for way in ways]
    while True:
        picked = await front.pick(translate("How do you want to log in?"), items)
        way = next((one for one in ways if one.id == picked), None)
        if way is None:
            return False
        if isinstance(way, acp.AuthMethodTerminal):
            if await front.outside([*agent.command, *way.args], way.env) == 0:
                return True
            front.say(translate("The login did not work."), "bad")
            continue
        try:
            await agent.authenticate(way.id)
        except RpcError as error:
            front.say(translate_rendered(error.message), "bad")
        else:
            return True
