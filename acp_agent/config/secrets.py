"""API keys from the environment, the key file and the keyring, and names of secret variables."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NoReturn, final

from msgspec import Struct

from acp_agent.config.key_stores import StoredKeys, edit_stored_keys, read_stored_keys
from acp_agent.errors import ConfigError, InvalidInputError

_ENDINGS = (
    "API_KEY", "API_KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "SECRET_KEY",
    "ACCESS_KEY", "PRIVATE_KEY", "ENCRYPTION_KEY", "PASSWORD", "PASSWD", "PASSPHRASE",
)  # fmt: skip
_WORD_ENDINGS = tuple(f"_{ending}" for ending in _ENDINGS)
_MIN_LENGTH = 8  # characters; replacing shorter values would damage ordinary words
_log = logging.getLogger(__name__)


@final
class Secret:
    """A key. Only `reveal` returns it; printing, formatting, logging and pickling do not."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


@lru_cache(maxsize=1024)  # asked of all variables before each write to the journal
def is_secret_name(name: str) -> bool:
    """Return whether a variable's name marks a credential, by its whole-word ending in any case."""
    upper = name.upper()
    return upper in _ENDINGS or upper.endswith(_WORD_ENDINGS)


class Origin(Struct, frozen=True):
    """Where a key comes from; `name` is the variable, the file or the name of the keyring."""

    kind: Literal["environment", "file", "keyring"]
    name: str


class Secrets:
    """The keys of one user. Safe to use from several threads.

    The file marks the providers whose keys are in the keyring. Without a mark the keyring is never
    used, because importing it takes longer than the whole start.
    """

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self._lock = threading.RLock()
        self._file: StoredKeys | None = None
        self._keyring_secrets: dict[str, Secret] = {}  # keys from the keyring, by provider
        self._known_secrets: set[Secret] = set()

    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        """Return the key of `provider`, or None.

        The first variable of `key_env` that is set wins, then the file, then the keyring. Reading
        the keyring may wait for the user to unlock it, so use a thread.

        Raises:
            ConfigError: the key file is damaged or cannot be made private.
        """
        secret = (
            self._from_environment(key_env)
            or self._from_file(provider)
            or self._from_keyring(provider)
        )
        if secret is None:
            return None
        with self._lock:
            self._known_secrets.add(secret)
        return secret.reveal()

    def origin(self, provider: str, key_env: Sequence[str]) -> Origin | None:
        """Return where `get` would find the key, without reading the keyring.

        Raises:
            ConfigError: as with `get`.
        """
        for name in key_env:
            if self._environ.get(name, "").strip():
                return Origin("environment", name)
        with self._lock:
            stored = self._stored()
        if provider in stored.keys:
            return Origin("file", str(self._path))
        return Origin("keyring", "keyring") if provider in stored.keyring else None

    def stored(self) -> list[str]:
        """Return the providers with a key in the file or the keyring, sorted.

        Raises:
            ConfigError: as with `get`.
        """
        with self._lock:
            return self._stored().providers()

    def set(self, provider: str, key: str, *, keyring: bool = False) -> None:
        """Store the key of `provider`, replacing an older one. Blocks: use a thread.

        Raises:
            InvalidInputError: the key has an invalid form.
            ConfigError: the key cannot be stored; the stored keys are unchanged.
        """
        key = check_key(key)
        if keyring:
            from acp_agent.config.key_stores import write_key  # noqa: PLC0415 - optional

            write_key(provider, key)
        with edit_stored_keys(self._path) as stored:
            leaves_keyring = provider in stored.keyring and not keyring
            stored.forget(provider)
            if keyring:
                stored.keyring.append(provider)
            else:
                stored.keys[provider] = key
        self.refresh()
        if leaves_keyring:
            from acp_agent.config.key_stores import remove_key  # noqa: PLC0415 - optional

            try:
                remove_key(provider)
            except ConfigError as error:
                _log.warning("the older key of %s is still in the keyring: %s", provider, error)

    def delete(self, provider: str) -> bool:
        """Delete the key of `provider`; return whether there was one. Blocks: use a thread.

        Raises:
            ConfigError: the key cannot be removed.
        """
        stored = read_stored_keys(self._path)
        if provider not in stored.providers():
            return False
        if provider in stored.keyring:
            from acp_agent.config.key_stores import remove_key  # noqa: PLC0415 - optional

            remove_key(provider)
        with edit_stored_keys(self._path) as stored:
            stored.forget(provider)
        self.refresh()
        return True

    def learn(self, values: Iterable[str]) -> None:
        """Add values to treat as secrets until the process ends."""
        with self._lock:
            self._known_secrets.update(Secret(value) for value in values if value)

    def refresh(self) -> None:
        """Drop cached keys: the user may have logged in from another process."""
        with self._lock:
            self._file = None
            self._keyring_secrets.clear()

    def values(self) -> list[str]:
        """Return every secret known so far, longest first, for removal from logs and outputs.

        Besides the keys these are the values of environment variables with a secret name.
        """
        with self._lock:
            values = {secret.reveal() for secret in self._known_secrets}
            if self._file is not None:
                values.update(self._file.keys.values())
            variables = list(self._environ.items())
        values.update(value.strip() for name, value in variables if is_secret_name(name))
        return sorted(
            (value for value in values if len(value) >= _MIN_LENGTH), key=len, reverse=True
        )

    def _from_environment(self, key_env: Sequence[str]) -> Secret | None:
        for name in key_env:
            value = self._environ.get(name, "").strip()
            if value:
                return Secret(value)
        return None

    def _from_file(self, provider: str) -> Secret | None:
        with self._lock:
            value = self._stored().keys.get(provider)
        return Secret(value) if value else None

    def _from_keyring(self, provider: str) -> Secret | None:
        with self._lock:
            if provider not in self._stored().keyring or provider in self._keyring_secrets:
                return self._keyring_secrets.get(provider)
        from acp_agent.config.key_stores import read_key  # noqa: PLC0415 - optional

        try:
            value = read_key(provider)  # without the lock: it may wait for the user
        except ConfigError as error:
            _log.warning("the key of %s cannot be read: %s", provider, error)
            return None
        with self._lock:
            if value:
                self._keyring_secrets[provider] = Secret(value)
            return self._keyring_secrets.get(provider)

    def _stored(self) -> StoredKeys:
        if self._file is None:
            self._file = read_stored_keys(self._path)
        return self._file


def check_key(key: str) -> str:
    """Validate `key` and return it without the spaces around it.

    Raises:
        InvalidInputError: it is empty, or has characters that an HTTP header cannot carry.
    """
    key = key.strip()
    if not key:
        raise InvalidInputError("the key is empty; paste the provider's key", field="key")
    if len(key) > 8_192 or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInputError(
            "this is not a key: it has spaces, line breaks or unusual characters; copy it again",
            field="key",
        )
    return key
