"""`acp-agent completion SHELL`: print a shell script that completes our commands.

The scripts are short: they call `acp-agent completion --answer SHELL WORD...`, and so follow the
program's version, its language, and the user's sessions and models. The scripts of shtab are
static, and those for bash break file names with blanks and `--model=…`. argcomplete imports the
completed command, which takes several times longer than a user should wait after Tab.
"""

from __future__ import annotations

import os
import sys

SHELLS = ("bash", "zsh", "fish")


def run(argv: list[str]) -> int:
    """Print a shell's script, or its candidates; return the exit status."""
    if argv[:1] == ["--answer"]:
        from acp_agent.cli.completion.candidates import answer  # noqa: PLC0415 - one of the two

        sys.stdout.write(answer(argv[1:], os.environ))
        return 0
    from importlib.resources import files  # noqa: PLC0415 - Tab must not wait for it

    from acp_agent.cli.parser import Parser  # noqa: PLC0415 - likewise

    parser = Parser(
        prog="acp-agent completion",
        description="Print a script that completes acp-agent's commands, options, sessions and "
        "models in a shell. docs/installing.md says where to put it.",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    shell: str = parser.parse_args(argv).shell
    script = files(__package__).joinpath("scripts", f"acp-agent.{shell}").read_text("utf-8")
    sys.stdout.write(script)
    return 0
