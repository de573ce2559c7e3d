"""What `acp-agent chat` shows of hostile and large texts: nothing drives the terminal or hides."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.chat_person import READY, quit_chat
from tests.support.scripted_agent import scripted_agent
from tests.support.terminal_screen import CTRL_C, ENTER, terminal

EVIL = "\x1b]0;title\x07\x1b[2J\x9b1mred\x08 <script>alert(1)</script> \u202egnp.exe"


async def test_texts_of_the_agent_are_inert_wherever_they_are(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(
        tmp_path,
        f"EVIL = {EVIL!r}\n"
        """
INITIALIZE = {"agentInfo": {"name": EVIL, "title": EVIL, "version": "1"}}
SESSION = {"configOptions": [{"type": "select", "id": "mode", "name": EVIL, "category": "mode",
    "currentValue": "m", "options": [{"value": "m", "name": "M" + EVIL}]}]}

def turn(say):
    say.update({"sessionUpdate": "session_info_update", "title": EVIL})
    say.update({"sessionUpdate": "available_commands_update", "availableCommands":
        [{"name": "evil", "description": EVIL}]})
    say.update({"sessionUpdate": "plan", "entries":
        [{"content": EVIL, "priority": "high", "status": "in_progress"}]})
    say.update({"sessionUpdate": "agent_thought_chunk", "content": say.text("think " + EVIL)})
    say.speak("# speak " + EVIL + "\\n\\n```" + EVIL + "\\ncode " + EVIL + "\\n```\\n")
    call = {"toolCallId": "c", "title": "call " + EVIL, "kind": "edit",
        "locations": [{"path": "/etc/" + EVIL}], "rawInput": {EVIL: EVIL},
        "content": [{"type": "diff", "path": "/outside/" + EVIL, "newText": EVIL},
                    {"type": "content", "content": say.text("output " + EVIL)}]}
    say.update({"sessionUpdate": "tool_call", **call})
    said = say.ask("session/request_permission", {"toolCall": call, "options":
        [{"optionId": "o", "name": "Sure " + EVIL, "kind": "allow_once"}]})
    say.update({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"})
    say.update({"sessionUpdate": "notice", "severity": "error", "title": "notice " + EVIL})
    return "end_turn"
""",
    )
    async with terminal(home, tmp_path, "chat", "--command", agent, rows=40) as person:
        await person.see(READY)
        person.type("go" + ENTER)
        await person.see("[y] Sure", "\\u202egnp.exe")
        person.type("?")
        await person.see('"\\u001b]0;title')
        person.type("y")
        await person.see("! notice", "/outside/")
        await person.miss("Working")
        await quit_chat(person)
        assert b"\x1b]" not in person.raw
        assert b"\x1b[2J" not in person.raw
        assert b"\xc2\x9b" not in person.raw
        assert b"\x08" not in person.raw
        assert "\u202e".encode() not in person.raw
        assert person.text.count("<script>") >= 6


async def test_a_flood_and_a_thousand_calls_leave_the_keys_working(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        def turn(say):
            for number in range(1000):
                say.update({"sessionUpdate": "tool_call", "toolCallId": f"c{number}",
                            "title": f"Call {number}", "status": "in_progress"})
            say.ask("elicitation/create", {"mode": "form", "message": "More?",
                "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}})
            for number in range(1000):
                say.update({"sessionUpdate": "tool_call_update", "toolCallId": f"c{number}",
                            "status": "completed"})
            for number in range(1000):
                say.speak(f"word {number}\\n" * 5 + ("\\n" if number % 9 == 0 else ""))
            say.speak("\\n\\nx" * 3 + "y" * 30000)
            say.speak("\\n\\n**The end.**")
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("go" + ENTER)
        await person.see("... 996 more calls", "? More?", "Esc declines")
        person.type("enough" + ENTER)
        person.type("still here")
        await person.see_row("> still here")
        await person.see("The end.")
        await person.miss("Working")
        person.type(CTRL_C)
        await quit_chat(person)


async def test_a_warning_is_shown_if_a_file_changed_since_its_diff(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("now = 2\n")
    agent = scripted_agent(
        tmp_path,
        f"FOLDER = {str(tmp_path)!r}\n"
        """
def turn(say):
    diff = {"path": FOLDER + "/a.py", "oldText": "now = 1\\n", "newText": "now = 3\\n"}
    call = {"toolCallId": "c", "title": "Edit a.py", "kind": "edit",
        "content": [{"type": "diff", **diff}]}
    said = say.ask("session/request_permission", {"toolCall": call, "options":
        [{"optionId": "o", "name": "Sure", "kind": "allow_once"}]})
    say.speak(said["outcome"]["outcome"])
    return "end_turn"
""",
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("go" + ENTER)
        await person.see("! a.py has changed since this edit was proposed.", "-now = 1", "+now = 3")
        person.type(CTRL_C)
        await person.see("cancelled")
        await quit_chat(person)


async def test_a_long_paste_is_sent_whole_and_shown_by_its_ends(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        def turn(say):
            text = say.prompt[0]["text"]
            say.speak(f"heard {len(text.splitlines())} lines, the last {text.splitlines()[-1]}")
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        await person.paste_slowly(
            "\n".join(f"line {number} of what is pasted" for number in range(5000))
        )
        await person.see("line 4999 of what")
        person.type(ENTER)
        await person.see("heard 5000 lines, the last line 4999 of what is pasted")
        await person.see("> line 0 of what", "... 4970 more lines", "line 4998 of what")
        assert "line 2000 of" not in person.text
        await quit_chat(person)


async def test_hidden_characters_of_a_paste_are_shown_before_it_is_sent(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(tmp_path, "")
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.paste("!rm \u202egnp.exe\u200b\x1b]52;c;QQ==\x07 a\tb\u00adc")
        person.type("d\x1b[D\x1b[D\x1b[DX")
        before, behind = "> !rm \\u202egnp.exe\\u200b\\x1b]52;c;QQ==\\x07 a    bX", "\\u00adcd"
        await person.see_row(before + behind)
        assert person.column == len(before)
        person.type(CTRL_C)
        await person.see_row(">")
        await quit_chat(person)
        assert "\u202e".encode() not in person.raw
        assert b"\x1b]" not in person.raw


async def test_a_permission_can_be_answered_in_eight_rows_of_twenty_columns(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        def turn(say):
            kinds = ("allow_once", "allow_always", "reject_once", "reject_always")
            said = say.ask("session/request_permission", {
                "toolCall": {"toolCallId": "c", "title": "Do harm, " + "and more " * 20},
                "options": [{"optionId": kind, "kind": kind, "name": f"{kind} of all that there is"}
                            for kind in kinds]})
            say.speak("said " + said["outcome"]["optionId"])
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent, columns=20, rows=8) as person:
        await person.see("lists commands")
        person.type("go" + ENTER)
        await person.see("? Permission:", "[y] allow_once", "[a]", "[n]", "[d]", "[?]")
        person.type("n")
        await person.see("said reject_once")
        await quit_chat(person)


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm-256color"}, True), ({"NO_COLOR": "1"}, False)],
)
async def test_code_and_changes_have_colours_where_they_are_wanted_and_only_ours(
    home: Path, tmp_path: Path, variables: dict[str, str], coloured: bool
) -> None:
    agent = scripted_agent(
        tmp_path,
        f"EVIL, FOLDER = {EVIL!r}, {str(tmp_path)!r}\n"
        """
def turn(say):
    say.speak("Before.\\n\\n```python\\nimport this  # " + EVIL + "\\n```\\n")
    diff = {"type": "diff", "path": FOLDER + "/a.py", "oldText": "x = 1\\n",
        "newText": "class Fine:  # " + EVIL + "\\n"}
    say.update({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit", "kind": "edit",
        "status": "completed", "content": [diff]})
    return "end_turn"
""",
    )
    async with terminal(home, tmp_path, "chat", "--command", agent, environ=variables) as person:
        await person.see(READY)
        person.type("go" + ENTER)
        await person.see("import this", "class Fine:", "\\u202egnp.exe")
        await person.miss("Working")
        await quit_chat(person)
    for word in (b"import", b"class"):
        assert (b"\x1b[35m" + word in person.raw) == coloured
    assert not re.search(rb"\x1b\[[0-9;]*[34]8;", person.raw)  # the terminal's own palette
    assert not re.search(rb"\x1b[\]]|\x1b\[2J|\x08", person.raw)


def test_syntax_colours_are_imported_with_the_first_answer() -> None:
    code = """
import sys
from acp_agent.cli.chat import terminal
from acp_agent.cli.chat.rendering import Renderer
late = ("pygments", "rich.markdown", "markdown_it", "pygments.lexers.python")
shown = [[name in sys.modules for name in late]]
for text in ("words", "```python\\nimport this\\n```"):
    Renderer("standard").markdown(text, 80)
    shown.append([name in sys.modules for name in late])
print(shown)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    no, yes = False, True
    assert done.stdout.strip() == str([[no] * 4, [yes, yes, yes, no], [yes] * 4])
