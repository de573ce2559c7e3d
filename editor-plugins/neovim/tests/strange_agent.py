"""An ACP agent that does what it is told, also what no agent should do. Standard library only.

    strange_agent.py [CONDUCT]

CONDUCT is how it starts: nothing for a well-behaved agent, or one of `dies`, `silent`, `garbage`,
`version`, `wrong` (a result of another shape), `bare` (advertises nothing), `login` (wants one first).
What a turn does is in the words of its prompt: see `TURNS`.
"""

import json
import os
import signal
import sys
import time

CONDUCT = sys.argv[1] if len(sys.argv) > 1 else ""
HOSTILE = (
    "<script>alert(1)</script> \x1b[2J\x1b]0;title\x07 %{system('touch hacked')} "
    "\u202egnp.exe \x00\x07\x9b | call system('touch hacked') vim: set ft=lua modeline:"
)
asked = 0
loaded = {}


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
    global asked
    asked += 1
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


def flood(session, count):
    for number in range(int(count)):
        say(session, f"word{number} " + ("\n" if number % 12 == 11 else ""))
    say(session, "the end")


def prose(session, count):
    """Markdown as models write it, in pieces of a word."""
    text = (
        "Some *words* of a paragraph with `code` in it, and more.\n\n```lua\nlocal x = 1\n```\n\n"
    )
    words = text.split(" ")
    for number in range(int(count)):
        say(session, words[number % len(words)] + " ")
    say(session, "the end")


def tools(session, count):
    for number in range(int(count)):
        call = f"call-{number}"
        update(session, "tool_call", toolCallId=call, title=f"Tool {number}", kind="read")
        update(session, "tool_call_update", toolCallId=call, status="in_progress")
    for number in range(int(count)):
        content = [{"type": "content", "content": {"type": "text", "text": "a\nb\nc"}}]
        update(
            session,
            "tool_call_update",
            toolCallId=f"call-{number}",
            status="completed",
            content=content,
        )


def line(session, size):
    for _ in range(int(size) // 100):
        say(session, "x" * 100)


def hostile(session):
    say(session, HOSTILE)
    say(session, HOSTILE, "agent_thought_chunk")
    update(session, "session_info_update", title=HOSTILE)
    update(
        session,
        "tool_call",
        toolCallId=HOSTILE,
        title=HOSTILE,
        kind=HOSTILE,
        status=HOSTILE,
        locations=[{"path": "term://touch hacked"}, {"path": HOSTILE, "line": -4}, 7],
        content=[
            {"type": "content", "content": {"type": "text", "text": HOSTILE}},
            {"type": "diff", "path": HOSTILE, "newText": HOSTILE},
            {"type": "unheard of"},
            None,
        ],
        rawInput={HOSTILE: [HOSTILE]},
    )
    update(session, "plan", entries=[{"content": HOSTILE, "status": HOSTILE}, "no entry"])
    update(session, "usage_update", used="many", size=None)
    update(session, "notice", severity=HOSTILE, title=HOSTILE, description=HOSTILE)
    update(
        session,
        "available_commands_update",
        availableCommands=[{"name": HOSTILE, "description": 3}, 5],
    )
    update(session, "current_mode_update", currentModeId=HOSTILE)
    update(
        session, "config_option_update", configOptions=[{"id": HOSTILE, "type": HOSTILE}, {"id": 1}]
    )
    update(session, HOSTILE)
    update(session, "agent_message_chunk", content="no block")
    send({"method": "session/update", "params": ["no", "object"]})
    send({"method": HOSTILE, "params": {}})


def huge(session, size):
    """Every text field as long as this."""
    text = "x" * int(size)
    block = {"type": "text", "text": text}
    say(session, text)
    say(session, text, "agent_thought_chunk")
    say(session, text, "user_message_chunk")
    link = {"type": "resource_link", "name": text, "title": text, "uri": "file:///" + text}
    update(session, "agent_message_chunk", content=link)
    update(session, "session_info_update", title=text)
    update(
        session,
        "tool_call",
        toolCallId="huge",
        title=text,
        kind=text,
        status=text,
        locations=[{"path": "/" + text}],
        content=[
            {"type": "content", "content": block},
            {"type": "diff", "path": "/" + text, "oldText": text, "newText": text + "y"},
        ],
        rawInput={"command": text},
    )
    update(session, "plan", entries=[{"content": text, "status": "pending", "priority": text}])
    cost = {"amount": 1, "currency": text}
    update(session, "usage_update", used=1, size=2, cost=cost)
    update(session, "notice", severity="info", title=text, description=text)
    update(session, "compaction_update", compactionId="c", status="completed", summary=[block])
    command = {"name": text, "description": text, "input": {"hint": text}}
    update(session, "available_commands_update", availableCommands=[command])
    option = {"id": "mode", "name": text, "category": "mode", "type": "select"}
    choices = [{"value": text, "name": text, "description": text}]
    options = [{**option, "currentValue": text, "options": choices}]
    update(session, "config_option_update", configOptions=options)
    say(session, "the end")


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
    """Replace every `old` in a file by `new`, after asking; written through the editor or on disk."""
    got = ask("fs/read_text_file", {"sessionId": session, "path": path})
    if "error" in got:
        return say(session, "cannot read: " + got["error"]["message"])
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
            loaded.setdefault("steered", []).append(message["params"]["prompt"])
            send({"id": message["id"], "result": {"outcome": "injected"}})
            say(session, "\nsteered: " + message["params"]["prompt"][0]["text"])
            flush()
        elif "id" in message:
            waiting.append(message)


def ask_wait(session, path):
    """Ask for permission, and take the question back."""
    global asked
    asked += 1
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


def garbage(session):
    for line in (
        "this is no JSON",
        "[1,2]",
        "42",
        '{"half":',
        "\x1b[31mred\x1b[0m",
        "\xff\xfe",
        "{}",
    ):
        sys.stdout.write(line + "\n")
    say(session, "still here")


def long(session, size):
    sys.stdout.write("x" * int(size) + "\n")
    say(session, "after it")


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
made = 0
logged_in = CONDUCT != "login"


def respond(method, params):
    """The result of a request, or an error as an exception's two arguments."""
    global made, logged_in
    if method == "initialize":
        return initialized()
    if method == "authenticate":
        logged_in = True
        return {}
    if method in ("session/new", "session/fork"):
        if not logged_in:
            raise ValueError(-32000, "log in first")
        made += 1
        if CONDUCT == "bare":
            return {"sessionId": f"s-{made}"}
        return {"sessionId": f"s-{made}", "configOptions": OPTIONS}
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
