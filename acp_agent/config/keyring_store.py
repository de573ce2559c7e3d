"""Store API keys in the system's keyring, through the optional package `keyring`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from acp_agent.errors import ConfigError

SERVICE = "acp-agent"
WAIT_SECONDS = 20.0  # the system may ask the user to unlock the keyring

T = TypeVar("T")


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
