"""The environment that commands run in: the user's, without keys and with nothing that waits.

Left out are variables whose name says that they hold a credential: a command that the model writes
needs no credential to build or to test, and `env | curl` would give them all away. A variable that
only names a file or a socket (SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS, KUBECONFIG) stays, and
so does every program's own configuration, so that git, cloud tools and package managers that are
logged in keep working.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from acp_agent.config.secrets import is_secret_name
from acp_agent.workspace.git_environment import added_variables

# Nothing may wait for a person: no pager, no editor, no question on a terminal. `true` as git's
# editor keeps a message that is there already and lets a commit without one fail at once.
QUIET = {
    "ACP_AGENT": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "TERM": "dumb",
    "NO_COLOR": "1",
}

_FORCED_COLOUR = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE"})


def command_environ(
    environ: Mapping[str, str], *, keep: Collection[str] = (), hide: Collection[str] = ()
) -> dict[str, str]:
    """The environment for a command.

    Args:
        environ: the user's environment.
        keep: names that are passed on although they look like credentials.
        hide: further names that are not passed on, whatever they look like.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name not in _FORCED_COLOUR
        and name not in hide
        and (name in keep or not is_secret_name(name))
    }
    return passed | QUIET | added_variables(environ, only_reads=False)
