"""Sessions of the real agent with a scripted model, recorded: what `tests/replay/records` has.

`python -m tests.replay.recorded_sessions FOLDER [NAME]` records them again.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from acp_agent.events import AnyEvent, ChildWorked, SystemPromptWritten
from acp_agent.replay.record import Record, Step, read_record, write_lines
from tests.cli.cli_process import acp_agent
from tests.extensions.mcp_session import echo, program
from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor, Json
from tests.support.model_server import (
    Call,
    CallPiece,
    CallStart,
    Cite,
    Cut,
    ModelServer,
    Search,
    Stall,
    Status,
    answer,
)
from tests.support.warm_parent import shared_parent

READ = Call("read", {"path": "greeting.py"})
EDIT = Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Good day"})
TOUCH = Call("shell", {"command": "touch made.txt"})
AGENT = """---
name: explore
description: Finds its way in code that nobody knows.
---
You look around and say where things are.
"""
CONFIG = """
[models."openai/gpt-5"]
context_window = 200_000
max_output_tokens = 16_000
thought_levels = ["low", "high"]

[limits]
max_retries = 2
"""


SEARCHING = """
[web_search]
service = "provider"

[providers.searching]
api = "anthropic"
base_url = "{url}/v1"

[models."searching/some-model"]
vision = true
"""


class Scene:
    """A session that is being made: the model's server, the client, and what the user does."""

    def __init__(self, server: ModelServer, agent: AgentProcess, folder: Path) -> None:
        self.server = server
        self.agent = agent
        self.editor = agent.editor
        self.folder = folder
        self.session = ""

    async def say(self, *words: str | Json, error: bool = False) -> None:
        """Prompt, and wait for the end of the turn."""
        asked = self.agent.post_prompt(self.session, *words)
        response = await self.agent.answer(asked)
        assert ("error" in response) == error, response

    async def stop_at(self, words: str, kind: str) -> None:
        """Prompt, and stop the turn as soon as an update of a kind came."""
        asked = self.agent.post_prompt(self.session, words)
        await self.agent.expect_update(self.session, kind)
        self.agent.cancel(self.session)
        await self.agent.answer(asked)


Play = Callable[[Scene], Awaitable[None]]
SCENES: dict[str, Play] = {}


def scene(play: Play) -> Play:
    """Add a session to those that are recorded, by the name of its function."""
    SCENES[play.__name__] = play
    return play


@scene
async def edit(at: Scene) -> None:
    at.server.add(
        answer("I look. ", READ, Call("list", {"path": "."})),
        answer(EDIT, Call("write", {"path": "new/a.txt", "content": "one\ntwo\n"})),
        answer(Call("shell", {"command": "cat new/a.txt"})),
        answer(Call("todo", {"items": [{"content": "look", "status": "completed"}]})),
        answer("Done, ", "all of it."),
        answer(Call("edit", {"path": "greeting.py", "old": "Good day", "new": "Hi"})),
        answer("Shorter."),
    )
    await at.say("Edit it.")
    await at.say("Shorter, please.")


@scene
async def refused(at: Scene) -> None:
    at.editor.permission = "reject_once"
    at.server.add(answer(EDIT, TOUCH), answer(TOUCH), answer("So be it."))
    await at.say("Edit it.")
    at.editor.permission = "allow_always"
    at.server.add(answer(EDIT), answer("It is."))
    await at.say("Now you may.")
    at.server.add(answer(Call("edit", {"path": "greeting.py", "old": "day", "new": "night"})))
    at.server.add(answer("Good night."))
    await at.say("And again.")


@scene
async def failing_tool(at: Scene) -> None:
    at.server.add(
        answer(Call("edit", {"path": "greeting.py", "old": "no such text", "new": "x"})),
        answer(Call("read", {"path": "gone.py"}), Call("read", {"path": "../../outside.txt"})),
        answer(Call("shell", {"command": "echo so; exit 3"})),
        answer(
            Call("nothing", {}), Call("read", '{"pa'), Call("read", {"path": "greeting.py", "x": 1})
        ),
        answer("It failed."),
    )
    await at.say("Try.")


@scene
async def cut_answer(at: Scene) -> None:
    at.server.add(
        answer("The first half, ", stop="max_tokens"),
        answer("and the second."),
        answer(
            CallStart(0, "write"), CallPiece(0, '{"path": "a.txt", "content": "lon'),
            stop="max_tokens",
        ),
        answer("In parts then."),
        answer(),
        answer("Not empty."),
    )  # fmt: skip
    await at.say("Say much.")
    await at.say("Write much.")
    await at.say("Say nothing.")


@scene
async def retries(at: Scene) -> None:
    at.server.add(
        Status(code=529, headers={"Retry-After": "0"}),
        answer("Half an ", Cut()),
        answer("answer."),
        Status(code=400, message="this cannot be done"),
        answer("Later."),
    )
    await at.say("Talk.")
    await at.say("Fail.", error=True)
    await at.say("Go on.")


@scene
async def subagents(at: Scene) -> None:
    tasks = [
        Call("task", {"agent": "explore", "title": f"find {name}", "task": f"Where is {name}?"})
        for name in ("the greeting", "the end")
    ]
    at.server.add(answer(tasks[0]), answer("Let me see. ", READ, TOUCH), answer("In greeting.py."))
    at.server.add(answer("It is in greeting.py."))
    await at.say("Find it.")
    at.server.otherwise = answer("Nowhere.")
    at.server.add(answer(*tasks))
    await at.say("Find both.")


@scene
async def compaction(at: Scene) -> None:
    at.server.add(answer("A long answer. " * 400), answer("Another one. " * 300))
    await at.say("Say much.")
    await at.say("More.")
    at.server.add(answer("The user asked for much, and got it."))
    await at.say("/compact")
    at.server.add(answer("After that."))
    await at.say("Go on.")


@scene
async def cancelled(at: Scene) -> None:
    at.server.add(answer("Half an ", Stall()))
    await at.stop_at("Talk.", "agent_message_chunk")
    at.server.add(answer(Call("shell", {"command": "printf be''gun; sleep 300"}), READ))
    asked = at.agent.post_prompt(at.session, "Run it.")
    await at.agent.expect_update(
        at.session, "tool_call_update", lambda update: "begun" in str(update)
    )
    at.agent.cancel(at.session)
    await at.agent.answer(asked)
    at.editor.permission = _never
    at.server.add(answer("May I? ", EDIT))
    asked = at.agent.post_prompt(at.session, "Edit it.")
    await at.agent.expect(lambda message: message.get("method") == "session/request_permission")
    at.agent.cancel(at.session)
    await at.agent.answer(asked)
    at.server.add(answer("Go on."))
    await at.say("Go on.")


async def _never(_: Json) -> Json:
    await asyncio.Event().wait()
    raise AssertionError


@scene
async def modes(at: Scene) -> None:
    async def choose(option: str, value: str) -> None:
        params = {"sessionId": at.session, "configId": option, "value": value}
        await at.agent.request("session/set_config_option", params)

    at.server.add(answer(EDIT), answer("I may not."))
    await choose("mode", "plan")
    await at.say("Edit it.")
    at.server.add(answer(EDIT), answer(TOUCH), answer("Done."))
    await choose("mode", "full")
    await choose("thought_level", "high")
    await at.say("Edit it now.")


@scene
async def steered(at: Scene) -> None:
    stall = Stall()
    at.server.add(answer("I begin ", stall, "and go on. ", READ), answer("As you say."))
    first = at.agent.post_prompt(at.session, "Talk.")
    await at.agent.expect_update(at.session, "agent_message_chunk")
    second = at.agent.post_prompt(at.session, "In French, please.")
    await at.agent.request("session/list", {})  # the second prompt was taken in by now
    stall.release()
    await at.agent.answer(first)
    await at.agent.answer(second)


@scene
async def linked_files(at: Scene) -> None:
    uri = (at.folder / "greeting.py").as_uri()
    link = {"type": "resource_link", "uri": uri, "name": "greeting.py"}
    at.server.add(answer("I see it."))
    await at.say("Look at this.", link)
    at.server.add(answer(Call("read", {"path": "sub/b.py"})), answer("Read."))
    await at.say("And that.")


@scene
async def servers_tools(at: Scene) -> None:
    server = program("echo")
    at.session = await at.agent.new_session(at.folder, mcpServers=[server])
    at.server.add(answer(echo("one"), echo("two")), answer("Said."))
    await at.say("Say it.")
    at.editor.permission = "reject_once"
    at.server.add(answer(echo("three")), answer("Not said."))
    await at.say("Again.")


@scene
async def all_at_once(at: Scene) -> None:
    at.session = await at.agent.new_session(at.folder, mcpServers=[program("echo")])
    task = Call("task", {"agent": "explore", "title": "find it", "task": "Where is it?"})
    at.server.add(
        answer("I ask. ", echo("one"), task),
        answer("Let me see. ", Cut()),
        answer("Let me see. ", READ, TOUCH),
        answer("In greeting.py."),
        Status(code=529, headers={"Retry-After": "0"}),
        answer("Half an ", Cut()),
        answer(EDIT, echo("two")),
        answer("Done."),
    )
    await at.say("Find it, and greet.")
    at.editor.permission = "reject_once"
    at.server.add(answer(TOUCH, echo("three"), task), answer("I may not."), answer("As you say."))
    await at.say("Again.")


PATCH = """*** Begin Patch
*** Update File: greeting.py
@@
-    return f"Hello {name}"
+    return "Hi"
*** Add File: n.txt
+new
*** End Patch
"""


@scene
async def commands(at: Scene) -> None:
    for arguments in (("init", "-q", "-b", "main", "--template="), ("add", ".")):
        subprocess.run(["git", *arguments], cwd=at.folder, check=True, capture_output=True)
    greeting = "ls -la sub && cat greeting.py"
    lines = ("git status", greeting, "cd sub && ls", "./python3 -V", "git log")
    at.server.add(*(answer(Call("shell", {"command": line})) for line in lines), answer("Run."))
    await at.say("Run them.")
    fetch = Call("web_fetch", {"url": "http://127.0.0.1:9/x"})
    search = (Call("grep", {"pattern": "greet"}), Call("glob", {"pattern": "**/*.py"}))
    at.server.add(answer(*search, fetch, Call("apply_patch", {"patch": PATCH})), answer("So."))
    await at.say("Look and patch.")


def memory(action: str, **arguments: str) -> Call:
    return Call("memory", {"action": action, "name": "build-commands", **arguments})


@scene
async def notes(at: Scene) -> None:
    at.server.add(
        answer(memory("save", text="Build with make.")),
        answer(memory("save", text="Build with ninja.")),
        answer(memory("read")),
        answer(memory("delete")),
        answer("Remembered and forgotten."),
    )
    await at.say("Remember how to build, then forget it.")


def background(command: str) -> Call:
    return Call("shell", {"command": command, "background": True})


@scene
async def background_commands(at: Scene) -> None:
    wait = Call("background", {"action": "wait", "id": "1", "seconds": 30})
    at.server.add(answer(background("echo a; sleep 0.2; echo b")), answer(wait), answer("Ended."))
    await at.say("Start one, and wait.")
    late = background("echo c; while [ ! -e go ]; do sleep 0.02; done; echo d; touch gone; exit 3")
    at.server.add(answer(late, background("sleep 600")), answer("They run."))
    await at.say("Start two.")
    (at.folder / "go").touch()
    while not (at.folder / "gone").exists():
        await asyncio.sleep(0.01)
    await asyncio.sleep(1)  # no client of version 1 is told that it ended
    output = Call("background", {"action": "output", "id": "3"})
    stop = Call("background", {"action": "stop", "id": "3"})
    at.server.add(answer(output), answer(stop), answer("Stopped."))
    await at.say("How are they?")


@scene
async def rewinds(at: Scene) -> None:
    at.server.add(answer(EDIT), answer("Edited."), answer(READ), answer("Read."))
    await at.say("Edit it.")
    await at.say("Read it.")
    await at.say("/rewind 2")
    await at.say("/rewind 2 both")
    at.server.add(answer("Something else."))
    await at.say("Something else.")
    listed = await at.agent.request("_acp-agent/checkpoints/list", {"sessionId": at.session})
    point = {"pointId": listed["points"][0]["pointId"], "what": "conversation"}
    await at.agent.request("_acp-agent/checkpoints/restore", {"sessionId": at.session, **point})
    at.server.add(answer("From the beginning."))
    await at.say("From the beginning.")


@scene
async def forked(at: Scene) -> None:
    at.server.add(answer("One."), answer("Two."))
    await at.say("One.")
    params = {"sessionId": at.session, "cwd": str(at.folder), "mcpServers": []}
    at.session = (await at.agent.request("session/fork", params))["sessionId"]
    await at.say("Two.")


@scene
async def provider_search(at: Scene) -> None:
    pages = [("Cats *and* more", "https://cats.example/a"), ("Two", "https://b.example")]
    found = Search("cats", pages)
    choice = {"sessionId": at.session, "configId": "model", "value": "searching/some-model"}
    await at.agent.request("session/set_config_option", choice)
    cited = Cite("Cats *and* more", "https://cats.example/a")
    at.server.add(answer("I search. ", found, "They meow.", cited), answer("Bye."))
    await at.say("Search for cats.")
    await at.say("Thank you.")


@scene
async def commands_of_the_agent(at: Scene) -> None:
    asked = Call("ask_user", {"question": "Which?", "options": ["this", "that"]})
    at.server.add(answer(asked), answer("That, then."), answer("Seen."))
    for words in ("/status", "Ask me.", "That.", "/mode plan", "/budget 100k", "!echo hi; exit 2"):
        await at.say(words)


def hook(event: str, output: Json, condition: str = "") -> str:
    """A hook of the configuration that prints JSON."""
    command = f"cat > {os.devnull}; echo {shlex.quote(json.dumps(output))}"
    rule = f"if = {json.dumps(condition)}" if condition else ""
    return f"[[hooks.{event}]]\ncommand = {json.dumps(command)}\n{rule}\n"


def specific(**fields: object) -> Json:
    return {"hookSpecificOutput": fields}


HOOKS = "".join(
    [
        hook("SessionStart", specific(additionalContext="It is a small project.")),
        hook("UserPromptSubmit", specific(additionalContext="Be short.")),
        hook(
            "PreToolUse",
            specific(permissionDecision="deny", permissionDecisionReason="not that"),
            "Bash(echo forbidden)",
        ),
        hook("PreToolUse", specific(updatedInput={"command": "echo new"}), "Bash(echo old)"),
        hook("PreToolUse", specific(permissionDecision="ask"), "Bash(echo ask)"),
        hook("PermissionRequest", specific(decision={"behavior": "allow"}), "Bash(touch one)"),
        hook("PostToolUse", specific(additionalContext="It is an edit."), "Edit"),
        hook("PostToolUse", {"decision": "block", "reason": "Look again."}, "Bash(echo ask)"),
        hook("PostToolUse", {"continue": False, "stopReason": "enough"}, "Bash(echo end)"),
    ]
)


@scene
async def hooks(at: Scene) -> None:
    def shell(command: str) -> Call:
        return Call("shell", {"command": command})

    at.server.add(answer(shell("echo forbidden"), shell("echo old"), EDIT), answer("Done."))
    await at.say("Begin.")
    at.server.add(answer(shell("echo ask")), answer(shell("touch one")), answer("Done."))
    await at.say("Go on.")
    at.server.add(answer(shell("echo end")))
    await at.say("End.")


@scene
async def linked_edit(at: Scene) -> None:
    (at.folder / "link.py").symlink_to("greeting.py")
    at.server.add(answer(Call("edit", {"path": "link.py", "old": "Hello", "new": "Hi"})))
    at.server.add(answer("Done."))
    await at.say("Edit it.")
    await at.say("/model")


@scene
async def reopened(at: Scene) -> None:
    at.server.add(answer(EDIT), answer("Done."), answer("Again."))
    await at.say("Edit it.")
    await at.agent.request("session/close", {"sessionId": at.session})
    params = {"sessionId": at.session, "cwd": str(at.folder), "mcpServers": []}
    await at.agent.request("session/load", params)
    await at.say("Go on.")


@scene
async def servers_schemas(at: Scene) -> None:
    at.session = await at.agent.new_session(at.folder, mcpServers=[program("echo")])
    at.editor.permission = "allow_always"
    wrong = Call("mcp__memo__echo", {"text": 1})
    at.server.add(answer(wrong), answer(echo("one", tool="ecko")), answer(echo("two")), answer("."))
    await at.say("Say it.")


@scene
async def failed_compaction(at: Scene) -> None:
    at.server.add(*(answer(f"Answer {number}. " + "word " * 300) for number in range(4)))
    for number in range(4):
        await at.say(f"Question {number}?")
    at.server.add(Status(code=400, message="too much"))
    await at.say("/compact")
    at.server.add(answer("Still here."))
    await at.say("And now?")


@scene
async def remembered_answers(at: Scene) -> None:
    """Answers of an earlier session decide, and one that this session adds."""

    def shell(command: str) -> Call:
        return Call("shell", {"command": command})

    at.editor.permission = "allow_always"
    at.server.add(answer(EDIT, shell("make a"), shell("make b")), answer("Done."))
    await at.say("Edit it.")
    at.editor.permission = "reject_always"
    at.server.add(answer(shell("cargo build")), answer("Done."))
    await at.say("Build it.")
    await at.agent.request("session/close", {"sessionId": at.session})
    at.session = await at.agent.new_session(at.folder)
    at.editor.permission = "allow_always"
    back = Call("edit", {"path": "sub/b.py", "old": "1", "new": "2"})
    at.server.add(answer(back, shell("make a && make b"), shell("make c")), answer("Done."))
    await at.say("Edit the other.")
    at.server.add(answer(shell("make c"), shell("cargo build"), shell("make d")), answer("Done."))
    at.editor.permission = "reject_once"
    await at.say("Once more.")


def later(
    event: str, text: str, seconds: float, condition: str = "", *, wakes: bool = False
) -> str:
    """A hook that nothing waits for."""
    said = json.dumps(specific(additionalContext=text))
    command = f"cat > {os.devnull}; sleep {seconds}; "
    command += f"echo {shlex.quote(text)} >&2; exit 2" if wakes else f"echo {shlex.quote(said)}"
    rule = f"if = {json.dumps(condition)}\n" if condition else ""
    kind = "async_rewake" if wakes else "async"
    return f"[[hooks.{event}]]\ncommand = {json.dumps(command)}\n{kind} = true\n{rule}"


LATER_HOOKS = "".join(
    [
        later("SessionStart", "The build is old.", 0),
        later("PostToolUse", "The linter is content.", 0.1, "Edit"),
        later("PostToolUse", "The tests fail.", 0.3, "Bash(echo test)", wakes=True),
        hook("UserPromptSubmit", specific(additionalContext="Be short.")),
    ]
)


@scene
async def later_hooks(at: Scene) -> None:
    """Hooks that nothing waits for: their texts reach the model while it works, or wake it."""

    def shell(command: str) -> Call:
        return Call("shell", {"command": command})

    at.server.add(answer(EDIT), answer(shell("sleep 0.5")), answer("Done."))
    await at.say("Begin.")
    at.server.add(answer(shell("echo test")), answer(shell("sleep 0.8")), answer("Fixed."))
    at.server.add(answer("Woken."), answer("Woken again."))
    await at.say("Test it.")
    at.server.add(answer("Bye."))
    await at.say("End.")


TRUSTED = 'trusted_folders = ["~/work/project"]\n'
CONFIGS = {"hooks": HOOKS, "later_hooks": LATER_HOOKS, "notes": TRUSTED}  # of single sessions


async def play(name: str, home: Path, folder: Path) -> None:
    """Have the agent run a session in `folder`, with its journal in `home`."""
    folder.mkdir(parents=True)
    (folder / "greeting.py").write_text(
        'def greet(name: str) -> str:\n    return f"Hello {name}"\n'
    )
    (folder / "sub").mkdir()
    (folder / "sub" / "AGENTS.md").write_text("Write short names here.\n")
    (folder / "sub" / "b.py").write_text("b = 1\n")
    (home / "agent" / "agents").mkdir(parents=True)
    (home / "agent" / "agents" / "explore.md").write_text(AGENT)
    (home / "agent" / "config.toml").write_text(CONFIGS.get(name, "") + CONFIG)
    editor = Editor(permission="allow_once")
    async with ModelServer() as server:
        with (home / "agent" / "config.toml").open("a") as file:
            file.write(SEARCHING.format(url=server.url))
        environ = {"ACP_AGENT_HOME": str(home / "agent"), **server.environ()}
        flags = ("--model", "openai/gpt-5")
        agent = await AgentProcess.start(
            *flags, home=home, editor=editor, environ=environ, launch=shared_parent().start
        )
        async with agent:
            at = Scene(server, agent, folder)
            await agent.initialize()
            at.session = await agent.new_session(folder)
            await SCENES[name](at)


def recorded(name: str, base: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Play a session, and return the file of its record."""
    home, folder, path = base / "home", base / "home" / "work" / "project", base / f"{name}.jsonl"
    asyncio.run(play(name, home, folder))
    variables = {"ACP_AGENT_SANDBOX": "false", **(environ or {})}  # as the agent had it
    done = acp_agent(home, "sessions", "record", "latest", "-o", str(path), environ=variables)
    assert done.returncode == 0, done.stderr
    sys.stderr.write(done.stderr)
    return path


def without_tools(record: Record) -> Record:
    """Return a record that holds when descriptions and the system prompt change."""
    steps = [
        Step(
            event=_without_prompt(step.event),
            request=None if step.request is None else replace(step.request, tools=None),
        )
        for step in record.steps
    ]
    return Record(head=replace(record.head, tools=()), steps=tuple(steps))


def _without_prompt(event: AnyEvent) -> AnyEvent:
    if isinstance(event, ChildWorked):
        return replace(event, did=_without_prompt(event.did))
    return replace(event, text="") if isinstance(event, SystemPromptWritten) else event


def main(folder: Path, *names: str) -> None:
    """Record sessions, all without names."""
    for name in names or SCENES:
        with tempfile.TemporaryDirectory() as base:
            record = without_tools(read_record(recorded(name, Path(base).resolve())))
            (folder / f"{name}.jsonl").write_text("".join(write_lines(record)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
