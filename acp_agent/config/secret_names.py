"""Which environment variables hold a credential, by their names."""

from __future__ import annotations

_ENDINGS = (
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
_AFTER_A_WORD = tuple(f"_{ending}" for ending in _ENDINGS)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a credential: a whole-word ending, in any case."""
    upper = name.upper()
    return upper in _ENDINGS or upper.endswith(_AFTER_A_WORD)
