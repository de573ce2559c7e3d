"""A result that comes when its request was given up reaches who has to give it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from msgspec import Raw

from protocol.jsonrpc.messages import Response
from protocol.jsonrpc.outgoing import Outbox, OutgoingRequests
from protocol.v1 import methods, types as t

CREATE = methods.CLIENT_METHODS["terminal/create"]
ANSWER = Response(id=1, result=Raw(b'{"terminalId":"term_1"}'), error=None)


class Said:
    """An outbox that notes which notifications are sent."""

    def __init__(self) -> None:
        self.notified: list[str] = []

    def send(self, line: bytes) -> None:
        assert b'"terminal/create"' in line

    def notify(self, method: str, params: object) -> None:
        self.notified.append(method)


def _answer_then_give_up(requests: OutgoingRequests, task: asyncio.Task[object]) -> None:
    requests.answer(ANSWER)
    task.cancel()


def _give_up_then_answer(requests: OutgoingRequests, task: asyncio.Task[object]) -> None:
    task.cancel()
    asyncio.get_running_loop().call_later(0, requests.answer, ANSWER)


@pytest.mark.parametrize(
    ("happens", "withdrawn"),
    [(_answer_then_give_up, []), (_give_up_then_answer, ["$/cancel_request"])],
)
async def test_a_terminal_can_be_released_without_waiting(
    happens: Callable[[OutgoingRequests, asyncio.Task[object]], None], withdrawn: list[str]
) -> None:
    said = Said()
    requests = OutgoingRequests(cast("Outbox", said))
    late: list[object] = []
    params = t.CreateTerminalRequest(session_id="s", command="ls")
    task: asyncio.Task[object] = asyncio.create_task(
        requests.send(CREATE, params, None, late.append)
    )
    await asyncio.sleep(0)
    happens(requests, task)
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        while not late:
            await asyncio.sleep(0)
    assert late == [t.CreateTerminalResponse(terminal_id="term_1")]
    assert said.notified == withdrawn
