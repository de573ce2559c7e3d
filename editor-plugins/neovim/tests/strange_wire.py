"""How the strange agent speaks: messages out, messages in, what waits and what was cancelled."""

import itertools
import json
import sys

ids = itertools.count(1)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def flush():
    sys.stdout.flush()


def update(session, sort, **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": sort, **fields}}
    send({"method": "session/update", "params": params})


def say(session, text, kind="agent_message_chunk"):
    update(session, kind, content={"type": "text", "text": text})


def ask(method, params):
    """Send a request and wait for its response; other messages meanwhile are kept."""
    asked = next(ids)
    send({"id": asked, "method": method, "params": params})
    flush()
    while True:
        message = read()
        if "method" not in message and message.get("id") == asked:
            return message
        if message.get("method") == "session/cancel":
            cancelled.append(True)
        else:
            waiting.append(message)


waiting = []
cancelled = []


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
