"""What the strange agent can do in a turn, by the first word of the prompt: `TURNS`."""

import json
import os
import signal
import sys
import time

from strange_floods import flood, garbage, hostile, huge, line, long, prose, tools
from strange_wire import ask, cancelled, flush, read, say, send, update, waiting


def permission(session, path, old, new, title="Edit it"):
    return ask(
        "session/request_permission",
        {
            "sessionId": session,
            "toolCall": {
                "toolCallId": "edit",
                "title": title,
                "kind": "edit",
                "status": "pending",
                "content": [{"type": "diff", "path": path, "oldText": old, "newText": new}],
            },
            "options": [
                {"optionId": "yes", "name": "Allow once", "kind": "allow_once"},
                {"optionId": "ever", "name": "Always allow", "kind": "allow_always"},
                {"optionId": "no", "name": "Reject", "kind": "reject_once"},
            ],
        },
    )


def edit(session, path, through="editor"):
    """Replace every `old` in a file by `new`, after asking, through the editor or on disk."""
    got = ask("fs/read_text_file", {"sessionId": session, "path": path})
    if "error" in got:
        say(session, "cannot read: " + got["error"]["message"])
        return
    old = got["result"]["content"]
    new = old.replace("old", "new")
    update(session, "tool_call", toolCallId="edit", title="Edit it", kind="edit")
    outcome = permission(session, path, old, new)["result"]["outcome"]
    status = "failed"
    if outcome.get("optionId") in ("yes", "ever"):
        if through == "disk":
            with open(path, "w") as file:
                file.write(new)
            status = "completed"
        else:
            params = {"sessionId": session, "path": path, "content": new}
            written = ask("fs/write_text_file", params)
            status = "failed" if "error" in written else "completed"
            if "error" in written:
                say(session, "cannot write: " + written["error"]["message"])
    update(session, "tool_call_update", toolCallId="edit", status=status)
    say(session, f"\noutcome: {json.dumps(outcome, sort_keys=True)}")


def call(session, method, *words):
    """Any request, its parameters as JSON; what came back is said."""
    params = {"sessionId": session, **json.loads(" ".join(words) or "{}")}
    got = ask(method, params)
    say(session, json.dumps(got.get("result", got.get("error")), sort_keys=True))


def run(session, *words):
    """A command in a terminal of the editor's, shown in a tool call."""
    created = ask(
        "terminal/create",
        {
            "sessionId": session,
            "command": "sh",
            "args": ["-c", " ".join(words)],
            "outputByteLimit": 2000,
        },
    )
    terminal = created["result"]["terminalId"]
    update(
        session,
        "tool_call",
        toolCallId="run",
        title="Run it",
        kind="execute",
        status="in_progress",
        content=[{"type": "terminal", "terminalId": terminal}],
    )
    here = {"sessionId": session, "terminalId": terminal}
    exit_status = ask("terminal/wait_for_exit", here)["result"]
    output = ask("terminal/output", here)["result"]
    ask("terminal/release", here)
    update(session, "tool_call_update", toolCallId="run", status="completed")
    say(session, json.dumps({"exit": exit_status, "output": output}, sort_keys=True))


def start(session, *words):
    """A command in a terminal that is left running."""
    got = ask(
        "terminal/create", {"sessionId": session, "command": "sh", "args": ["-c", " ".join(words)]}
    )
    say(session, "started " + got["result"]["terminalId"])


def hang(session):
    say(session, "hanging")
    flush()
    while True:
        read()  # not even a cancel ends it


def wait(session):
    """Say something and wait for the cancel."""
    say(session, "waiting")
    flush()
    while True:
        message = read()
        if message.get("method") == "session/cancel":
            cancelled.append(True)
            return
        if message.get("method") == "_session/steering":
            send({"id": message["id"], "result": {"outcome": "injected"}})
            say(session, "\nsteered: " + message["params"]["prompt"][0]["text"])
            flush()
        elif "id" in message:
            waiting.append(message)


def ask_wait(session, path):
    """Ask for permission, and take the question back."""
    asked = "taken-back"
    params = {
        "sessionId": session,
        "toolCall": {"toolCallId": "gone", "title": "Taken back"},
        "options": [{"optionId": "yes", "name": "Allow once", "kind": "allow_once"}],
    }
    send({"id": asked, "method": "session/request_permission", "params": params})
    send({"method": "$/cancel_request", "params": {"requestId": asked}})
    flush()
    say(session, "taken back: " + json.dumps(read().get("error", {}).get("code")))


def die(session):
    say(session, "last words")
    flush()
    sys.stderr.write("something broke\n")
    sys.exit(9)


def orphan(session, path):
    """Start something that holds the pipes open, and be gone."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(300)
        os._exit(0)
    with open(path, "w") as file:
        file.write(str(child))
    os._exit(1)


def echo(session, blocks):
    say(session, json.dumps(blocks, sort_keys=True))


def markdown(session):
    say(session, "# Title\n\nSome *text* and `code`:\n\n```lua\nlocal x = 1\n")
    update(session, "tool_call", toolCallId="t1", title="Read it", kind="read", status="completed")
    say(session, "after the call")
    update(
        session,
        "plan",
        entries=[
            {"content": "first", "status": "completed", "priority": "low"},
            {"content": "second", "status": "in_progress", "priority": "high"},
            {"content": "third", "status": "pending", "priority": "medium"},
        ],
    )
    cost = {"amount": 0.25, "currency": "USD"}
    update(session, "usage_update", used=12000, size=200000, cost=cost)
    update(session, "session_info_update", title="A title")


TURNS = {
    "flood": flood,
    "prose": prose,
    "tools": tools,
    "line": line,
    "hostile": hostile,
    "huge": huge,
    "edit": edit,
    "call": call,
    "run": run,
    "start": start,
    "hang": hang,
    "wait": wait,
    "take-back": ask_wait,
    "die": die,
    "garbage": garbage,
    "orphan": orphan,
    "long": long,
    "markdown": markdown,
}
