"""The logins to MCP servers: tokens by address, in a private file or the system's keyring.

Several processes share the file: it is replaced atomically under a lock.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from acp_agent.errors import ConfigError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.posix import (
    is_private,
    locked,
    make_private,
    try_lock,
    write_private,
)

_LOCK_SECONDS = 5.0
_CLIENT_SECRET = "client_secret"  # noqa: S105 - the name of a field
_KEYRING = "mcp "  # prefix of the keyring entries


class Login(Struct, frozen=True, kw_only=True):
    """The result of a login at an authorization server.

    Attributes:
        tokens: the response of the token endpoint (RFC 6749); empty in the file if they are in the
            keyring.
        client: this program's registration there (RFC 7591).
        metadata: the authorization server's metadata (RFC 8414).
        expires_at: when the access token expires, in seconds since 1970; None if unknown.
        keyring: whether the tokens are in the keyring.
        scope: scopes that a request lacked, for the next login.
    """

    tokens: dict[str, Any] = field(default_factory=dict)
    client: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    expires_at: float | None = None
    keyring: bool = False
    scope: str = ""

    def __repr__(self) -> str:
        return "Login(...)"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that must not be shown."""
        names = ("access_token", "refresh_token", "id_token")
        values = [self.tokens.get(name) for name in names] + [self.client.get("client_secret")]
        return tuple(value for value in values if isinstance(value, str) and value)


class _File(Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    logins: dict[str, Login] = field(default_factory=dict)


class LoginStore:
    """The logins of one user. Every method blocks: use a thread.

    Args:
        path: a JSON file; it and its folder may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, url: str) -> Login | None:
        """Return the login to a server, or None. Raises ConfigError."""
        login = self._read().logins.get(url)
        if login is None or not login.keyring:
            return login
        from acp_agent.config.key_stores import read_key  # noqa: PLC0415 - optional

        try:
            tokens = msgspec.json.decode(read_key(_KEYRING + url) or "{}", type=dict[str, Any])
        except msgspec.DecodeError:
            tokens = {}
        secret = tokens.pop(_CLIENT_SECRET, None)
        client = login.client if secret is None else login.client | {_CLIENT_SECRET: secret}
        return msgspec.structs.replace(login, tokens=tokens, client=client) if tokens else None

    def set(self, url: str, login: Login) -> None:
        """Save the login to a server, replacing an older one. Raises ConfigError."""
        if login.keyring:
            from acp_agent.config.key_stores import write_key  # noqa: PLC0415 - optional

            client = dict(login.client)
            secret = client.pop(_CLIENT_SECRET, None)
            tokens = login.tokens if secret is None else login.tokens | {_CLIENT_SECRET: secret}
            write_key(_KEYRING + url, msgspec.json.encode(tokens).decode())
            login = msgspec.structs.replace(login, tokens={}, client=client)
        self._change(lambda logins: logins | {url: login})

    def delete(self, url: str) -> bool:
        """Delete the login to a server; return whether there was one. Raises ConfigError."""
        login = self._read().logins.get(url)
        if login is None:
            return False
        if login.keyring:
            from acp_agent.config.key_stores import remove_key  # noqa: PLC0415 - optional

            remove_key(_KEYRING + url)
        self._change(lambda logins: {name: saved for name, saved in logins.items() if name != url})
        return True

    def try_refreshing(self, url: str) -> int | None:
        """Take the lock for refreshing the tokens of a server; None if another process holds it.

        Returns the descriptor; closing it releases the lock. If the lock file cannot be opened, the
        descriptor locks nothing.
        """
        name = hashlib.sha256(url.encode()).hexdigest()[:16]
        try:
            descriptor = os.open(
                self._path.with_name(f"{self._path.name}.{name}.lock"),
                os.O_RDWR | os.O_CREAT,
                0o600,
            )
        except OSError:
            return os.open(os.devnull, os.O_RDONLY)
        if try_lock(descriptor):
            return descriptor
        os.close(descriptor)
        return None

    def _read(self) -> _File:
        try:
            content = self._path.read_bytes()
            if not is_private(self._path):
                make_private(self._path)
            return decode_json(content, _File)
        except (FileNotFoundError, NotADirectoryError):
            return _File()
        except OSError as error:
            raise ConfigError(
                f"cannot use the logins in {self._path} ({describe_os_error(error)}); make the "
                "file readable only by you"
            ) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ConfigError(
                f"{self._path} is damaged; move it away and log in again: acp-agent mcp login"
            ) from None

    def _change(self, change: Callable[[dict[str, Login]], dict[str, Login]]) -> None:
        try:
            with locked(self._path, _LOCK_SECONDS):
                changed = _File(logins=change(self._read().logins))
                write_private(self._path, msgspec.json.encode(changed) + b"\n")
        except TimeoutError:
            raise ConfigError(f"another process holds {self._path} for too long") from None
        except OSError as error:
            raise ConfigError(
                f"cannot keep the login in {self._path} ({describe_os_error(error)}); check the "
                "folder"
            ) from None
