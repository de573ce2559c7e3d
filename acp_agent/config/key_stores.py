"""Where API keys are stored: a private file, or the system's keyring (package `keyring`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from acp_agent.errors import ConfigError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.posix import is_private, locked, make_private, write_private

LOCK_SECONDS = 5.0

_log = logging.getLogger(__name__)
SERVICE = "acp-agent"
WAIT_SECONDS = 20.0  # the system may ask the user to unlock the keyring
T = TypeVar("T")


class StoredKeys(Struct, kw_only=True):
    """Content of the file: keys by provider, and the providers whose keys are in the keyring."""

    version: Literal[1] = 1
    keys: dict[str, str] = {}
    keyring: list[str] = []

    def __repr__(self) -> str:
        return f"StoredKeys({', '.join(self.providers())})"

    def providers(self) -> list[str]:
        """Return the providers with a key, sorted."""
        return sorted({*self.keys, *self.keyring})

    def forget(self, provider: str) -> None:
        """Remove the entry of `provider`."""
        self.keys.pop(provider, None)
        self.keyring = [name for name in self.keyring if name != provider]


def read_stored_keys(path: Path) -> StoredKeys:
    """Return the keys in `path`, or none if there is no file. Makes the file private.

    Raises:
        ConfigError: the file is unreadable, damaged, or owned by another user.
    """
    try:
        if path.is_dir():
            raise ConfigError(f"{path} is not a file; move it away")
        if not is_private(path):
            make_private(path)
            _log.warning(
                "%s could be read by other users; now only you can. Replace its keys if "
                "someone else uses this machine",
                path,
            )
        return decode_json(path.read_bytes(), StoredKeys)
    except (FileNotFoundError, NotADirectoryError):
        return StoredKeys()
    except OSError as error:
        raise ConfigError(
            f"cannot use the keys in {path} ({describe_os_error(error)}); make the file "
            "readable only by you"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        # The parser's own message could quote a key.
        raise ConfigError(
            f"{path} is damaged; move it away and run 'acp-agent login' again"
        ) from None


@contextmanager
def edit_stored_keys(path: Path) -> Iterator[StoredKeys]:
    """Yield the keys in `path` for changes, then write them; one process at a time.

    Blocks for up to LOCK_SECONDS while another process changes the file.

    Raises:
        ConfigError: the file cannot be read or written; it is unchanged.
    """
    try:
        with locked(path, LOCK_SECONDS):
            stored = read_stored_keys(path)
            yield stored
            write_private(path, msgspec.json.encode(stored))
    except TimeoutError:
        raise ConfigError(f"another process holds {path}; try again") from None
    except OSError as error:
        raise ConfigError(
            f"cannot write {path} ({describe_os_error(error)}); free some space, or set "
            "ACP_AGENT_HOME to another folder"
        ) from None


def read_key(provider: str) -> str | None:
    """Return the key of `provider`, or None. Imports heavy modules and may wait: use a thread.

    Raises:
        ConfigError: the package is not installed, or the keyring does not answer.
    """
    keyring = _keyring()

    def read() -> str | None:
        password: str | None = keyring.get_password(SERVICE, provider)
        return password

    return _run_with_timeout(read)


def write_key(provider: str, key: str) -> None:
    """Store `key` for `provider`. Raises ConfigError as `read_key` does."""
    keyring = _keyring()
    _run_with_timeout(lambda: keyring.set_password(SERVICE, provider, key))


def remove_key(provider: str) -> None:
    """Delete the key of `provider`, if there is one. Raises ConfigError as `read_key` does."""
    keyring = _keyring()
    if read_key(provider) is not None:
        _run_with_timeout(lambda: keyring.delete_password(SERVICE, provider))


def _keyring() -> ModuleType:
    try:
        import keyring  # noqa: PLC0415 - optional, and heavy
    except ImportError:
        raise ConfigError(
            "the package 'keyring' is not installed; install 'acp-agent-server[keyring]', "
            "or log in again without --keyring"
        ) from None
    return keyring


def _run_with_timeout(work: Callable[[], T]) -> T:
    """Run `work` in a thread with a time limit: a locked keyring may wait forever."""
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001 - backends raise anything; reported below
            failure.append(error)

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS)
    if result:
        return result[0]
    # The text of a backend's error is not shown, because it may contain a key.
    reason = type(failure[0]).__name__ if failure else f"no answer in {WAIT_SECONDS:g} s"
    raise ConfigError(
        f"the system's keyring does not work ({reason}); unlock it, or log in again "
        "without --keyring"
    )
