"""The environment that commands run in: the user's, without keys and with nothing that waits.

Left out are variables whose name ends in one of `SECRET_ENDINGS`: a command that the model writes
needs no credential to build or to test, and `env | curl` would give them all away. A variable that
only names a file or a socket (SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS, KUBECONFIG) stays, and
so does every program's own configuration, so that git, cloud tools and package managers that are
logged in keep working.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

SECRET_ENDINGS = (
    "API_KEY",
    "API_KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "SECRET_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "ENCRYPTION_KEY",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
)

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


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a credential: a whole-word ending, in any case."""
    upper = name.upper()
    return any(upper == ending or upper.endswith("_" + ending) for ending in SECRET_ENDINGS)


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
    return passed | QUIET
