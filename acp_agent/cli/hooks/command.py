"""`acp-agent hooks list`, `test` and `setup`: list the hooks, try one, prepare a folder."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import get_args

import msgspec

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.cli.parser import Parser, add_folder
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.errors import InvalidInputError
from acp_agent.hooks.event_fields import common_fields, is_for
from acp_agent.hooks.sources import FoundHooks
from acp_agent.hooks.tool_names import hook_name, program_tool_name
from acp_agent.hooks.types import Hook, HookAnswer, without_unallowed_decision
from acp_agent.platform import posix
from acp_agent.sandbox.sandbox import Sandbox
from acp_agent.session.confinement import Confinement
from acp_agent.session.hook_session import hook_runner
from acp_agent.session.sandboxes import SharedSandboxes

_EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
_SAMPLES: dict[HookEvent, JsonObject] = {
    "UserPromptSubmit": {"prompt": "Say hello."},
    "UserPromptExpansion": {
        "expansion_type": "slash_command",
        "command_name": "skill:review",
        "command_args": "",
        "prompt": "/skill:review",
    },
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "Stop": {"stop_hook_active": False},
    "Notification": {"message": "ls", "notification_type": "permission_prompt"},
}


def run(argv: list[str]) -> int:
    """List hooks, or test those of an event; return the exit status."""
    parser = Parser(prog="acp-agent hooks", description="List, test and run hooks.")
    actions = parser.add_subparsers(dest="action")
    listing = actions.add_parser("list", help="list the hooks of a folder and their errors")
    test = actions.add_parser("test", help="run the hooks of an event with sample data")
    test.add_argument(
        "event", choices=_EVENTS, metavar="EVENT", help="the event, such as PreToolUse"
    )
    test.add_argument("--tool", default="Bash", help="the tool of the call (default: Bash)")
    test.add_argument(
        "--input",
        default="",
        metavar="JSON",
        help="the call's arguments or the event's data, as a JSON object",
    )
    setup = actions.add_parser("setup", help="run the hooks that prepare a folder")
    setup.add_argument(
        "--maintenance", action="store_true", help="run those for maintenance instead"
    )
    for action in (listing, test, setup):
        action.add_argument("--json", action="store_true", help="print JSON")
        add_folder(action)
    options = parser.parse_args(argv)
    if options.action == "setup":
        trigger = "maintenance" if options.maintenance else "init"
        options.event, options.tool = "Setup", ""
        options.input = msgspec.json.encode({"trigger": trigger}).decode()
    posix.forbid_inspection()  # the hooks must not read our environment
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    options.cwd = options.cwd.resolve()
    setup = load_user_config()
    hooks = setup.hooks(options.cwd)
    failed = _list(hooks, options) if options.action == "list" else _test(hooks, setup, options)
    for problem in hooks.problems:
        complain(f"{problem.path}: {translate_rendered(problem.why)}")
    is_broken = any(not problem.is_foreign for problem in hooks.problems)
    return FAILED if failed or is_broken else 0


def _list(hooks: FoundHooks, options: argparse.Namespace) -> bool:
    if options.json:
        say_json(
            {
                "hooks": [msgspec.to_builtins(hook) for hook in hooks.hooks],
                "problems": [msgspec.to_builtins(problem) for problem in hooks.problems],
                "untrusted": [f"{item.folder}/{item.path}" for item in hooks.untrusted],
            }
        )
        return False
    if hooks.hooks:
        rows = [
            (configured.event, configured.matcher or "*", configured.name, configured.source)
            for configured in hooks.hooks
        ]
        say_table(("Event", "For", "Runs", "From"), rows)
    else:
        say(translate("No hooks found."))
    _say_untrusted(hooks)
    return False


def _say_untrusted(hooks: FoundHooks) -> None:
    for item in hooks.untrusted:
        say(translate("{file} is not used until you trust it: acp-agent trust", file=item.path))


def _test(hooks: FoundHooks, setup: UserConfig, options: argparse.Namespace) -> bool:
    arguments = _input(options.input)
    event: HookEvent = options.event
    tool = program_tool_name(options.tool)
    matched = tool if "Tool" in event or "Permission" in event else ""
    event_data = common_fields(event, "test", options.cwd, setup.config.mode) | _SAMPLES.get(
        event, {}
    )
    if matched:
        call: JsonObject = {"tool_name": hook_name(tool), "tool_use_id": "test"}
        call |= {"tool_input": arguments or {"command": "ls"}, "tool_response": ""}
        event_data |= {"tool_calls": [call]} if event == "PostToolBatch" else call
    else:
        event_data |= arguments
        kinds = ("source", "reason", "trigger", "command_name")
        matched = next((str(event_data[name]) for name in kinds if event_data.get(name)), "")
    matching = [hook for hook in hooks.hooks if is_for(hook, event, matched)]
    answers = asyncio.run(_ask(matching, event_data, setup, options.cwd))
    if options.json:
        say_json([msgspec.to_builtins(answer) for answer in answers])
    elif not answers:
        say(translate("No hooks for this event."))
        _say_untrusted(hooks)
    for answer in answers if not options.json else ():
        say(answer.by.name if answer.by is not None else "")
        for name, value in _set_fields(answer).items():
            say(f"  {name}: {value}")
    return any(answer.failure for answer in answers)


def _input(text: str) -> JsonObject:
    """Return the object in the argument. Raises InvalidInputError if it is not a JSON object."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, object])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"--input: expected a JSON object ({error})") from None


def _set_fields(answer: HookAnswer) -> dict[str, object]:
    """Return the fields that a hook set in its response."""
    built: dict[str, object] = msgspec.to_builtins(answer)
    fields = {name: value for name, value in built.items() if name != "by" and value}
    return fields or {"permission": "—"}


async def _ask(
    hooks: list[Hook], event_data: JsonObject, setup: UserConfig, cwd: Path
) -> list[HookAnswer]:
    sandboxes = SharedSandboxes()
    confinement = Confinement(
        config=setup.config.sandbox,
        sandboxes=sandboxes,
        environ=setup.environ,
        home=Path.home(),
        program_files=setup.paths.program_files,
    )
    search_path = setup.environ.get("PATH")
    backend = await asyncio.to_thread(sandboxes.find, setup.config.sandbox, search_path, str(cwd))
    policy = confinement.policy((cwd,), sandboxes.temporary("services"))
    sandbox = None if backend is None else Sandbox(backend, policy)
    from acp_agent.cli.hooks.asking import CommandHelpers  # noqa: PLC0415 - imports the models

    helpers = CommandHelpers(setup)
    runner = hook_runner(cwd, setup.config, setup.environ, sandbox, lambda: helpers)
    try:
        return [without_unallowed_decision(await runner.run(hook, event_data)) for hook in hooks]
    finally:
        await sandboxes.aclose()
