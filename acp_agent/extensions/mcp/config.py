"""The configuration of an MCP server in a session, its secrets, and its environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.config.secrets import is_secret_name
from acp_agent.content import JsonObject
from acp_agent.platform.posix import absolute_folders

# Takes a program with its arguments, its environment, its folder and its options.
Launcher = Callable[[Sequence[str], Mapping[str, str], str, "ServerOptions"], Awaitable["Launched"]]
Deliver = Callable[[str, str, JsonObject | None], None]

# Headers without secrets; any other header may carry a credential.
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
MARK = "ACP_AGENT_MCP_SERVER"  # variable that marks a server's processes
_PASSED_VARIABLES = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "NODE_EXTRA_CA_CERTS", "PATH", "SHELL",
        "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    }
)  # fmt: skip
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})


class Channel(Protocol):
    """A connection to servers that a client runs itself: MCP over ACP."""

    async def request(
        self, server_id: str, request_id: str, method: str, params: JsonObject | None
    ) -> JsonObject:
        """Send a request; return `{"result": …}` or `{"error": {"code", "message", "data"}}`.

        Cancelling the call cancels the request.

        Raises:
            ConnectionError: the client has disconnected.
        """

    def listen(self, server_id: str, deliver: Deliver) -> Callable[[], None]:
        """Pass a server's notifications to `deliver` (request id, method, params).

        Returns:
            A function that stops this.
        """


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Options for the use of a server.

    Attributes:
        enabled: whether it is started by default; the user can change that during the session.
        allowed: the only tools that are offered; None: all.
        denied: tools that are not offered.
        start_timeout: seconds until it must be connected; None: the default limit.
        call_timeout: seconds that a call may take; None: the default limit.
        secrets: values from the environment that must not be shown.
        sandbox: whether a program runs confined; None: the default for all servers.
        hosts: the hosts that it may reach when confined.
        plugin: the folder of the plugin that it belongs to.
        data: the plugin's data folder, which it may change when confined.
        sampling: whether it may ask for answers of a model, which the user approves.
    """

    source: Literal["editor", "user", "project"] = "editor"
    enabled: bool = True
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    start_timeout: float | None = None
    call_timeout: float | None = None
    secrets: tuple[str, ...] = ()
    sandbox: bool | None = None
    hosts: tuple[str, ...] = ()
    plugin: str = ""
    data: str = ""
    sampling: bool = False

    def offers(self, tool: str) -> bool:
        """Return whether a tool of this name is offered to the model."""
        return tool not in self.denied and (self.allowed is None or tool in self.allowed)


_FROM_EDITOR = ServerOptions()


class Launched(Protocol):
    """How a program is started, and the resources that it needs while it runs."""

    @property
    def argv(self) -> Sequence[str]:
        """The program and its arguments."""

    @property
    def environ(self) -> Mapping[str, str]:
        """Its environment."""

    @property
    def descriptors(self) -> Sequence[int]:
        """The file descriptors that it inherits."""

    def close_descriptors(self) -> None:
        """Close the inherited descriptors after the program was started."""

    async def aclose(self) -> None:
        """Release the resources."""


class ProgramServer(Struct, frozen=True, kw_only=True):
    """A program that speaks over its stdin and stdout. `cwd` is "" for the session's folder."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""
    options: ServerOptions = _FROM_EDITOR


class HttpServer(Struct, frozen=True, kw_only=True):
    """A server over streamable HTTP, or with `sse` over the older HTTP transport."""

    name: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    sse: bool = False
    options: ServerOptions = _FROM_EDITOR


class ChannelServer(Struct, frozen=True, kw_only=True):
    """A server that the client runs, reached over the protocol's connection."""

    name: str
    server_id: str
    channel: Channel
    options: ServerOptions = _FROM_EDITOR


class SavedLogins(Struct, frozen=True):
    """The file of the user's logins to servers; `learn` receives values that must not be shown."""

    path: Path
    learn: Callable[[Sequence[str]], None]

    def stamp(self) -> int:
        """Return a number that changes with the file; 0 without a file."""
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return 0


ServerConfig = ProgramServer | HttpServer | ChannelServer


def identity(server: ServerConfig) -> str:
    """Return a digest of what a permanent permission covers: the command line, or the address.

    A digest, because an address or an argument may contain a credential. The name is included only
    for a server of the editor; otherwise it says nothing about the server behind it.
    """
    values: tuple[str, ...]
    match server:
        case ProgramServer():
            values = ("program", server.command, *server.args)
            if server.cwd:
                values = (*values, f"in {server.cwd}")
        case HttpServer():
            values = ("http", server.url)
        case ChannelServer():
            values = ("client", server.name)
    import hashlib  # noqa: PLC0415 - 2 ms that only a session with servers pays

    return hashlib.sha256("\0".join(values).encode("utf-8", "replace")).hexdigest()


def all_values(server: ServerConfig) -> tuple[str, ...]:
    """Return all values that may be secret: messages about the server must not contain them."""
    match server:
        case ProgramServer():
            # Not secret, shown in messages.
            plugin_folders = {server.options.plugin, server.options.data}
            values = (value for _, value in server.env if value not in plugin_folders)
            return (*values, *server.options.secrets)
        case HttpServer():
            headers = [value for _, value in server.headers]
            address = _url_secrets(server.url)
            return (*_with_words(headers), *address, *server.options.secrets)
        case ChannelServer():
            return ()


def credentials(server: ServerConfig) -> tuple[str, ...]:
    """Return values that are certainly secret: they are removed from all output of the session.

    A variable counts by its name: the path of a folder in a variable must stay readable elsewhere
    in the session.
    """
    match server:
        case ProgramServer():
            secret_values = [value for name, value in server.env if is_secret_name(name)]
            return (*secret_values, *server.options.secrets)
        case HttpServer():
            values = [value for name, value in server.headers if name.lower() not in _PLAIN_HEADERS]
            return (*_with_words(values), *_url_secrets(server.url), *server.options.secrets)
        case ChannelServer():
            return ()


def _with_words(values: list[str]) -> list[str]:
    """Return the values, and for `Bearer abc` also `abc`."""
    return [*values, *(value.rpartition(" ")[2] for value in values if " " in value)]


def _url_secrets(url: str) -> list[str]:
    """Return the password and the query of an address."""
    try:
        url_parts = urlsplit(url)
        return [text for text in (url_parts.password, url_parts.query) if text]
    except ValueError:
        return []


def server_environ(
    environ: Mapping[str, str], variables: tuple[tuple[str, str], ...], mark: str
) -> dict[str, str]:
    """Return the environment of a server's program.

    A server is a third-party program: from the user's environment it gets only what every program
    needs to start, plus the variables that the editor provides for it. A proxy is passed on unless
    its address has a password.

    Args:
        variables: the editor's variables for this server, including secrets; the last one of a name
            wins.
        mark: identifies its processes, including those that left its process group.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if not is_secret_name(name)
        and (
            name in _PASSED_VARIABLES
            or name.startswith("LC_")
            or (name.upper() in _PROXIES and "@" not in value)
        )
    }
    if "PATH" in passed:  # the program is searched in the project's folder
        passed["PATH"] = absolute_folders(passed["PATH"])
    return passed | {"TERM": "dumb", "NO_COLOR": "1"} | dict(variables) | {MARK: mark}
