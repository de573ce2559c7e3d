"""A model that does what the user's last words tell it to, for tests that say random things.

    conduct = Conduct()
    server.otherwise = conduct.reply
    ... prompt "stall #7" ...
    await conduct.stalled(7); conduct.release(7)

The words are a kind of conduct and a number, which makes each prompt one of its own:

- `say #N` answers with a few words, `think #N` thinks before, `slow #N` answers in many pieces.
- `read #N` reads a file first; `run #N` runs a command that has to be asked about.
- `wait #N` runs a command that prints `Waits for #N` and does not end by itself.
- `stall #N` begins an answer and goes on when it is released.
- `fail #N` is the provider's refusal, which trying again does not help.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tests.support.model_server import Answer, Call, Request, Stall, Status, Thought, answer

_WORDS = re.compile(r"\b(say|think|slow|read|run|wait|stall|fail) #(\d+)")
FAILURE = "this request is not to be served"


class Conduct:
    """The conduct of one model; see the module."""

    def __init__(self) -> None:
        self._stalls: dict[int, Stall] = {}

    def reply(self, request: Request) -> Answer | Status:
        """What the model answers to a request."""
        kind, number, done = _asked(request.json["messages"])
        if done and kind in {"read", "run", "wait"}:
            return answer(f"It is done, #{number}.")
        match kind:
            case "think":
                return answer(
                    Thought(f"What of #{number}? "), Thought("So."), f"Thought #{number}."
                )
            case "slow":
                return answer(*[f"{piece} of #{number}, " for piece in range(40)])
            case "read":
                return answer(f"Reading for #{number}.", Call("read", {"path": "greeting.py"}))
            case "run":
                command = f"echo {number} | tee out-{number}.txt"
                return answer(Call("shell", {"command": command}))
            case "wait":
                return answer(Call("shell", {"command": f"echo 'Waits for #{number}.'; sleep 600"}))
            case "stall":
                return answer(f"Begun #{number}. ", self._stall(number), f"Ended #{number}.")
            case "fail":
                return Status(code=400, message=FAILURE)
        return answer("Said ", f"#{number}", ".")

    async def stalled(self, number: int, *, within: float = 60.0) -> None:
        """Wait until the answer to `stall #number` stands still."""
        async with asyncio.timeout(within):
            await self._stall(number).reached.wait()

    def release(self, number: int) -> None:
        """Let the answer to `stall #number` go on."""
        self._stall(number).release()

    def _stall(self, number: int) -> Stall:
        return self._stalls.setdefault(number, Stall())


def _asked(messages: list[dict[str, Any]]) -> tuple[str, int, bool]:
    """The kind and number of the last words, and whether a tool ran since."""
    done = False
    for message in reversed(messages):
        if message["role"] == "tool":
            done = True
        if message["role"] != "user":
            continue
        content = message["content"]
        parts = (
            [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        )
        found = _WORDS.findall(" ".join(parts))
        if found:
            return found[-1][0], int(found[-1][1]), done
    return "say", 0, done
