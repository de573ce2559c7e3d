"""The entry point. Imports only what the chosen command needs."""

from __future__ import annotations

import os
import sys

from acp_agent.platform import module_cache

TYPE_CHECKING = False  # `typing` is imported after `module_cache.use`
if TYPE_CHECKING:
    from collections.abc import Callable

HOME_VARIABLE = "ACP_AGENT_HOME"  # duplicates `acp_agent.config.paths`, to avoid its import

COMMANDS = {
    "setup": "Add the agent to your editor: acp-agent setup zed",
    "run": 'Run one prompt in the terminal: acp-agent run "fix the failing test"',
    "chat": "Chat with this agent, or another one with --command, in the terminal",
    "flow": "Run a workflow: acp-agent flow run FILE",
    "watch": "Run a workflow when files change or on a schedule: acp-agent watch FILE",
    "login": "Save a provider's API key",
    "logout": "Delete a provider's saved key",
    "models": "List the available models",
    "skills": "List the skills of a folder and their errors",
    "agents": "List the agents of a folder and their errors",
    "mcp": "List, add, test and import MCP servers",
    "a2a": "Offer this agent to programs that speak A2A: acp-agent a2a serve",
    "hooks": "List and test the hooks of a folder: acp-agent hooks test PreToolUse",
    "plugin": "Add, list, update and remove plugins: acp-agent plugin add SOURCE",
    "policy": 'List, test and import permission rules: acp-agent policy test "make"',
    "audit": "Show the permission decisions of a session",
    "trust": "Trust the skills, hooks and other files of a folder",
    "sessions": "List, show, export, record, repair and delete sessions",
    "replay": "Run a recorded session as a test: acp-agent replay FILE",
    "view": "Show a session as a web page",
    "usage": "Show token usage and cost by day, model or project",
    "doctor": "Check the setup and say how to fix problems",
    "config": "Show the configuration or its path",
    "tour": "Watch the agent work in a small sample project",
    "serve": "Serve the protocol over WebSocket and HTTP: acp-agent serve --listen 127.0.0.1:8000",
    "completion": "Print a shell completion script: acp-agent completion bash",
    "version": "Show the version",
}

# The module and function of a command; the default is `run` in the module of its name.
_ENTRY_POINTS = {
    "setup": ("editors.command", "run"),
    "skills": ("definitions", "run_skills"),
    "agents": ("definitions", "run_agents"),
    "mcp": ("mcp.command", "run"),
    "a2a": ("a2a.command", "run"),
    "hooks": ("hooks.command", "run"),
    "flow": ("flow.command", "run"),
    "watch": ("flow.watch", "run"),
    "plugin": ("plugins.command", "run"),
    "policy": ("policy.command", "run"),
    "audit": ("policy.audit", "run"),
    "logout": ("login", "run_logout"),
    "replay": ("recording", "run"),
    "version": ("main", "run_version"),
    "help": ("main", "run_help"),
}

_PRINT = ("-p", "--print")  # the options of other agents for `run`

_MARGIN = len("acp-agent completion ")  # columns before a command's description


def main(argv: list[str] | None = None) -> int:
    """Run `acp-agent`; return the exit status.

    Without a command, or with `acp`, it serves the protocol on stdin and stdout. Unknown flags are
    then tolerated unless stdin is a terminal, because hosts append flags of their own.
    """
    try:
        _open_closed_streams()
        if argv is None:
            module_cache.use()
        _fix_home()
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:  # raised before a command handles it
        return 130


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller closed, as with `>&-`.

    Before any other file is opened, which would take the stream's descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: PTH123, SIM115 - open until the end
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _fix_home() -> None:
    """Make a relative ACP_AGENT_HOME absolute, for agents started in other folders."""
    home = os.environ.get(HOME_VARIABLE, "").strip()
    if home and home[0] not in "/~":
        try:
            os.environ[HOME_VARIABLE] = os.path.abspath(home)  # noqa: PTH100 - pathlib takes time
        except FileNotFoundError:
            return  # the current folder no longer exists; reported when it is needed


def _main(argv: list[str]) -> int:
    first = argv[0] if argv else ""
    if first in COMMANDS:
        return _run(first, argv[1:])
    if "--login" in argv:  # an editor starts the login of `initialize` this way
        return _run("login", [])
    if first.startswith("-") and any(word.partition("=")[0] in _PRINT for word in argv):
        return _run("run", _print_arguments(argv))
    if first in {"help", "-h", "--help"}:
        return _run("help", [])
    if first in {"-V", "--version"}:
        return _run("version", [])
    if first and not first.startswith("-") and first != "acp":
        from acp_agent.cli.localization import translate  # noqa: PLC0415 - only where something is said

        message = translate("unknown command {command}; see acp-agent --help", command=repr(first))
        sys.stderr.write(f"acp-agent: {message}\n")
        return 2
    from acp_agent.cli.serve import serve  # noqa: PLC0415 - only what the command needs

    return serve([word for word in argv if word != "acp"])


def _print_arguments(argv: list[str]) -> list[str]:
    """Return the arguments of `run` for a command line with `-p PROMPT` or `--print PROMPT`."""
    values = (word.partition("=")[2] if word.partition("=")[0] in _PRINT else word for word in argv)
    return [word for word in values if word]


def _run(command: str, argv: list[str]) -> int:
    from acp_agent.cli.output import run_guarded  # noqa: PLC0415 - serving does without

    try:
        return run_guarded(lambda: entry_point(command)(argv))
    except FileNotFoundError:
        if _has_folder():
            raise
        from acp_agent.cli.localization import translate  # noqa: PLC0415 - only where something is said

        message = translate("the current directory no longer exists; change to another one")
        sys.stderr.write(f"acp-agent: {message}\n")
        return 1


def _has_folder() -> bool:
    """Return whether the current folder exists."""
    try:
        os.getcwd()  # noqa: PTH109 - what others see as the error that is looked into
    except FileNotFoundError:
        return False
    return True


def entry_point(command: str) -> Callable[[list[str]], int]:
    """Import the module of a command and return the function that runs it."""
    from importlib import import_module  # noqa: PLC0415 - serving does without

    module, function = _ENTRY_POINTS.get(command, (command, "run"))
    run: Callable[[list[str]], int] = getattr(import_module(f"acp_agent.cli.{module}"), function)
    return run


def run_version(argv: list[str]) -> int:
    """Print the version; return the exit status."""
    from acp_agent import __version__  # noqa: PLC0415 - only what the command needs
    from acp_agent.cli.output import say  # noqa: PLC0415 - likewise
    from acp_agent.cli.parser import Parser  # noqa: PLC0415 - likewise

    Parser(prog="acp-agent version", description=COMMANDS["version"]).parse_args(argv)
    say(f"acp-agent {__version__}")
    return 0


def run_help(_: list[str]) -> int:
    """Print the commands; return the exit status."""
    from shutil import get_terminal_size  # noqa: PLC0415 - only where something is said

    from acp_agent.cli.localization import translate  # noqa: PLC0415 - likewise
    from acp_agent.cli.output import wrap  # noqa: PLC0415 - likewise

    columns = max(20, get_terminal_size().columns - _MARGIN)
    lines = [
        translate("acp-agent: a coding agent for editors that speak the Agent Client Protocol."),
        "",
        "acp-agent [--model PROVIDER/NAME] [--trace FILE]",
        f"    {translate('Serve the protocol on stdin and stdout, as editors start it.')}",
        "",
        "acp-agent -p PROMPT",
        f"    {translate('Short for acp-agent run PROMPT; takes the same options.')}",
        "",
        *(
            f"acp-agent {name:<10} "
            + f"\n{'':{_MARGIN}}".join(wrap(translate(description), columns))
            for name, description in COMMANDS.items()
        ),
        "",
        translate("Run acp-agent COMMAND --help for the options of a command."),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
