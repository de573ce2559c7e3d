"""Turns in which the strange agent says what no agent should: too much, or what is harmful."""

import sys

from strange_wire import say, send, update

HOSTILE = (
    "<script>alert(1)</script> \x1b[2J\x1b]0;title\x07 %{system('touch hacked')} "
    "\u202egnp.exe \x00\x07\x9b | call system('touch hacked') vim: set ft=lua modeline:"
)


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
