"""A connection that goes from one surface to another while messages are on their way."""

from __future__ import annotations

import asyncio
import socket

import msgspec
from msgspec import Raw

from protocol.jsonrpc.handlers import Call, RequestHandler, Surface
from protocol.jsonrpc.messages import RpcError
from protocol.v1 import methods, types as t
from tests.protocol.connections import ALL, over, serving, text_in, until, update
from tests.protocol.wires import Wire

INITIALIZE = methods.INITIALIZE.name
PROMPT_NAME = methods.SESSION_PROMPT.name


def answers(stop_reason: str) -> RequestHandler:
    """A handler that says which surface it belongs to."""

    async def prompt(params: object, call: Call) -> dict[str, str]:
        return {"stopReason": stop_reason}

    return prompt


async def test_the_admission_of_a_message_may_change_the_surface_for_it_and_later_ones() -> None:
    before = Surface(ALL, {})
    after = Surface(ALL, {INITIALIZE: answers("after"), PROMPT_NAME: answers("after")})
    seen: list[tuple[str, object]] = []

    def admit(method: str, params: Raw) -> None:
        seen.append((method, msgspec.json.decode(params)))
        if method == INITIALIZE:
            wire.connection.serve(after)

    async with Wire(before, admit=admit) as wire:
        early = await wire.ask(PROMPT_NAME, {"sessionId": "s", "prompt": []})
        assert early["error"]["code"] == -32601
        # Both lines arrive in one piece: the second is admitted before the first is handled.
        first = wire.post(INITIALIZE, {"protocolVersion": 2})
        second = wire.post(PROMPT_NAME, {"sessionId": "s", "prompt": []})
        assert (await wire.answer(first))["result"] == {"stopReason": "after"}
        assert (await wire.answer(second))["result"] == {"stopReason": "after"}
    assert seen[1] == (INITIALIZE, {"protocolVersion": 2})


async def test_the_failure_of_a_running_handler_is_mapped_by_its_own_surface() -> None:
    release = asyncio.Event()

    async def prompt(params: object, call: Call) -> object:
        await release.wait()
        raise LookupError

    def mapped_to(code: int) -> Surface:
        return Surface(ALL, {PROMPT_NAME: prompt}, map_error=lambda _: RpcError(code, "mapped"))

    async with Wire(mapped_to(-1)) as wire:
        old = wire.post(PROMPT_NAME, {"sessionId": "s", "prompt": []})
        await until(lambda: wire.received >= 1)
        wire.connection.serve(mapped_to(-2))
        new = wire.post(PROMPT_NAME, {"sessionId": "s", "prompt": []})
        await until(lambda: wire.received >= 2)
        release.set()
        responses = [await wire.receive() for _ in range(2)]
        codes = {response["id"]: response["error"]["code"] for response in responses}
        assert codes == {old: -1, new: -2}


async def test_a_request_s_method_without_an_id_is_not_even_admitted() -> None:
    admitted: list[str] = []
    async with Wire(
        Surface(ALL, {PROMPT_NAME: answers("end_turn")}),
        admit=lambda method, params: admitted.append(method),
    ) as wire:
        wire.send({"jsonrpc": "2.0", "method": INITIALIZE, "params": {"protocolVersion": 2}})
        wire.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}})
        await wire.ask(PROMPT_NAME, {"sessionId": "s", "prompt": []})
    assert admitted == ["session/cancel", PROMPT_NAME]


async def test_messages_that_wait_are_not_merged_by_another_surface() -> None:
    def merge(method: str, before: object, after: object) -> object | None:
        raise AssertionError("what waits is not of this surface")

    ours, theirs = socket.socketpair()
    got: list[str] = []
    with ours, theirs:
        async with serving(over(ours, Surface(ALL, {}))) as agent:
            while not agent._transport.waiting:
                agent.notify(methods.SESSION_UPDATE, update("x" * 100_000))
                await asyncio.sleep(0)
            agent.notify(methods.SESSION_UPDATE, update("last of the old"))
            agent.serve(Surface(ALL, {}, merge=merge))
            agent.notify(methods.SESSION_UPDATE, update("first of the new"))

            def on_update(params: t.SessionNotification) -> None:
                got.append(text_in(params))

            async with serving(over(theirs, {"session/update": on_update})):
                await until(lambda: got[-1:] == ["first of the new"])
    assert got[-2:] == ["last of the old", "first of the new"]
