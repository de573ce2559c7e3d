"""An ACP agent that does what it is told, also what no agent should do. Standard library only.

    strange_agent.py [CONDUCT]

CONDUCT is how it starts: nothing for a well-behaved agent, or one of `dies`, `silent`, `garbage`,
`version`, `wrong` (a result of another shape), `bare` (advertises nothing), `login`
(wants one first).
What a turn does is in the words of its prompt: see `strange_turns`.
"""

import itertools
import sys
import time

from strange_turns import TURNS, echo
from strange_wire import cancelled, flush, read, say, send, waiting

CONDUCT = sys.argv[1] if len(sys.argv) > 1 else ""


def initialized():
    if CONDUCT == "bare":
        return {"protocolVersion": 1}
    if CONDUCT == "wrong":
        return ["nothing", "of", "that", "kind"]
    if CONDUCT == "version":
        return {"protocolVersion": 2, "capabilities": {}}
    return {
        "protocolVersion": 1,
        "agentInfo": {"name": "strange", "title": "Strange agent", "version": "1.0"},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"embeddedContext": CONDUCT != "plain-context"},
            "sessionCapabilities": {
                name: {} for name in ("list", "resume", "fork", "delete", "title")
            },
            "_meta": {} if CONDUCT == "queue" else {"steering": {"supported": True}},
        },
        "authMethods": [{"id": "key", "name": "Use a key"}, {"id": "web", "name": "Another"}],
    }


OPTIONS = [
    {
        "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "ask",
        "options": [{"value": "ask", "name": "Ask"}, {"value": "full", "name": "Full"}],
    },
    {
        "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "m1",
        "options": [
            {"group": "a", "name": "A", "options": [{"value": "m1", "name": "Model 1"}]},
            {"group": "b", "name": "B", "options": [{"value": "m2", "name": "Model 2"}]},
        ],
    },
    {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
]  # fmt: skip
KEPT = [
    {
        "sessionId": "s-old",
        "cwd": "/tmp",
        "title": "An old one",
        "updatedAt": "2026-01-02T03:04:05Z",
    },
    {"sessionId": "s-older", "cwd": "/tmp", "title": "An older one"},
]
made = itertools.count(1)
logged_in = [CONDUCT != "login"]


def respond(method, params):
    """The result of a request, or an error as an exception's two arguments."""
    if method == "initialize":
        return initialized()
    if method == "authenticate":
        logged_in[0] = True
        return {}
    if method in ("session/new", "session/fork"):
        if not logged_in[0]:
            raise ValueError(-32000, "log in first")
        session = f"s-{next(made)}"
        if CONDUCT == "bare":
            return {"sessionId": session}
        return {"sessionId": session, "configOptions": OPTIONS}
    if method in ("session/load", "session/resume"):
        if method == "session/load":
            session = params["sessionId"]
            say(session, "what I said", "user_message_chunk")
            say(session, "what it answered")
        return {"configOptions": OPTIONS}
    if method == "session/list":
        if params.get("cursor"):
            return {"sessions": KEPT[1:]}
        return {"sessions": KEPT[:1], "nextCursor": "more"}
    if method == "session/set_config_option":
        for option in OPTIONS:
            if option["id"] == params["configId"]:
                option["currentValue"] = params["value"]
        return {"configOptions": OPTIONS}
    if method in ("session/delete", "session/set_title", "session/close"):
        return {}
    raise ValueError(-32601, f"method not found: {method}")


def turn(params):
    session, blocks = params["sessionId"], params["prompt"]
    words = blocks[0].get("text", "").split(" ")
    del cancelled[:]
    if words[0] in TURNS:
        TURNS[words[0]](session, *words[1:])
    else:
        echo(session, blocks)
    return {"stopReason": "cancelled" if cancelled else "end_turn"}


def main():
    if CONDUCT == "dies":
        sys.stderr.write("warming up\nno key is configured\x1b[31m\n")
        sys.exit(3)
    if CONDUCT == "garbage":
        sys.stdout.write("Welcome to the agent!\n\n\x1b[1mloading\x1b[0m\n")
    while True:
        message = waiting.pop(0) if waiting else read()
        method = message.get("method")
        if CONDUCT == "silent":
            time.sleep(3600)
        if "id" not in message or method is None:
            continue
        try:
            params = message.get("params", {})
            result = turn(params) if method == "session/prompt" else respond(method, params)
            send({"id": message["id"], "result": result})
        except ValueError as error:
            code, text = error.args
            send({"id": message["id"], "error": {"code": code, "message": text}})
        flush()


main()
