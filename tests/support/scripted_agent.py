"""An agent that speaks the protocol by a script: a program of its own, started in a few ms.

It is for what a real agent does not do: garbage, floods, hostile texts, other versions, crashes.
A script is a Python file with a function `turn(say)`, called for each prompt; what it returns is
the stop reason, or the whole result. It may define what it answers to `initialize` and
`session/new` (`INITIALIZE`, `SESSION`), `start(say)`, `new(say)` (an error, or None) and
`load(say)`, too:

    command = scripted_agent(folder, '''
    def turn(say):
        say.update({"sessionUpdate": "agent_message_chunk", "content": say.text("Hello")})
        return "end_turn"
    ''')

`say.update`, `say.ask(method, params)` (its result), `say.raw(bytes)`, `say.prompt` (the blocks),
`say.prompts` (how many came), `say.params`, `say.wait_cancelled()`; `wait_for(path)` waits until a
file is there, or half a minute, for nobody ends a program that waits for a test that was killed.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

_AGENT = """
import json, os, sys, time

INITIALIZE = {}
SESSION = {}


class Say:
    def __init__(self):
        self.session, self.prompt, self.prompts, self.params = "s-1", [], 0, {}
        self._asked = 0

    def raw(self, data):
        os.write(1, data)

    def line(self, message):
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")

    def text(self, text):
        return {"type": "text", "text": text}

    def update(self, update):
        self.line({"method": "session/update",
                   "params": {"sessionId": self.session, "update": update}})

    def speak(self, text):
        self.update({"sessionUpdate": "agent_message_chunk", "content": self.text(text)})

    def ask(self, method, params):
        self._asked += 1
        self.line({"id": f"a{self._asked}", "method": method,
                   "params": {"sessionId": self.session, **params}})
        while True:
            answer = json.loads(sys.stdin.readline() or "{}")
            if answer.get("id") == f"a{self._asked}" or not answer:
                return answer.get("result")

    def wait_cancelled(self):
        for line in sys.stdin:
            if json.loads(line).get("method") == "session/cancel":
                return "cancelled"
        sys.exit(0)


def wait_for(path):
    ends = time.monotonic() + 30
    while not os.path.exists(path) and time.monotonic() < ends:
        time.sleep(0.02)


say = Say()


def start(say):
    pass


def turn(say):
    return "end_turn"


def load(say):
    pass


def new(say):
    return None


exec(open(sys.argv[1]).read())
start(say)
for line in sys.stdin:
    message = json.loads(line)
    method, say.params = message.get("method"), message.get("params") or {}
    error = None
    if method == "initialize":
        result = {"protocolVersion": 1, "agentInfo": {"name": "scripted", "version": "1"}}
        result.update(INITIALIZE)
    elif method == "session/new":
        error = new(say)
        result = {"sessionId": say.session, **SESSION}
    elif method in ("session/load", "session/resume"):
        load(say)
        result = {}
    elif method == "session/prompt":
        say.prompt, say.prompts = say.params["prompt"], say.prompts + 1
        ended = turn(say)
        result = ended if isinstance(ended, dict) else {"stopReason": ended}
    else:
        result = {}
    if "id" in message and method:
        answer = {"error": error} if error else {"result": result}
        say.line({"id": message["id"], **answer})
"""


def scripted_agent(folder: Path, script: str) -> str:
    """The command line of an agent that follows `script`."""
    program = folder / "scripted_agent.py"
    program.write_text(_AGENT)
    steps = folder / "script.py"
    steps.write_text(textwrap.dedent(script))
    return f"{sys.executable} -S -E {program} {steps}"
