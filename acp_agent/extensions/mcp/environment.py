"""The environment that a server's program is started with: what any program needs, and no more."""

from __future__ import annotations

from collections.abc import Mapping

from acp_agent.config.secret_names import is_secret_name
from acp_agent.platform.programs import absolute_folders

MARK = "ACP_AGENT_MCP_SERVER"  # the variable that tells whose a process is

_PASSED_ON = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NODE_EXTRA_CA_CERTS",
        "PATH",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    }
)
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})


def server_environ(
    environ: Mapping[str, str], given: tuple[tuple[str, str], ...], mark: str
) -> dict[str, str]:
    """The variables for a server's program.

    A server is somebody else's program: of the user's environment it gets what every program needs
    to start, and besides only what the editor gave for it. A proxy is passed on unless its address
    has a password.

    Args:
        environ: the user's environment.
        given: the editor's variables for this server, secrets among them; the last one of a name
            wins.
        mark: by which its processes are found, those too that left its group.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if not is_secret_name(name)
        and (
            name in _PASSED_ON
            or name.startswith("LC_")
            or (name.upper() in _PROXIES and "@" not in value)
        )
    }
    if "PATH" in passed:  # the program is looked up in the project's folder
        passed["PATH"] = absolute_folders(passed["PATH"])
    return passed | {"TERM": "dumb", "NO_COLOR": "1"} | dict(given) | {MARK: mark}
