"""Takes secrets out of wire messages by the names of the fields that hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

HIDDEN = "[secret]"
STRING_LIMIT = 20_000  # characters kept of one string; pictures are of no use in a bug report

# Names of fields, without case, `-` and `_`, whose text is a secret.
_SECRET_NAMES = frozenset(
    {
        "apikey", "xapikey", "token", "accesstoken", "refreshtoken", "idtoken", "authtoken",
        "bearertoken", "sessiontoken", "authorization", "proxyauthorization", "password", "passwd",
        "passphrase", "secret", "clientsecret", "secretkey", "privatekey", "cookie", "setcookie",
        "credential", "credentials",
    }
)  # fmt: skip

# Fields with variables or HTTP headers, as lists of {name, value} or as objects: values are hidden
# whatever their name, since users keep keys under names of their own.
_PAIRS = frozenset({"env", "headers", "httpheaders", "environment"})


def redact(value: Json, scrub: Callable[[str], str]) -> Json:
    """A copy of `value` without what its fields' names say is secret.

    Every other text goes through `scrub`, and is cut where it is very long.
    """
    if isinstance(value, str):
        return _shortened(value, scrub)
    if isinstance(value, list):
        return [redact(item, scrub) for item in value]
    if isinstance(value, dict):
        return {key: _field(key, item, scrub) for key, item in value.items()}
    return value


def _field(key: str, value: Json, scrub: Callable[[str], str]) -> Json:
    name = key.lower().replace("-", "").replace("_", "")
    if name in _SECRET_NAMES:
        return _hidden(value)
    if name in _PAIRS:
        if isinstance(value, dict):
            return {inner: _hidden(item) for inner, item in value.items()}
        if isinstance(value, list):
            return [_pair(item, scrub) for item in value]
    return redact(value, scrub)


def _pair(item: Json, scrub: Callable[[str], str]) -> Json:
    if isinstance(item, dict) and "value" in item:
        return {**item, "value": _hidden(item["value"])}
    return redact(item, scrub)


def _hidden(value: Json) -> Json:
    """`value` with every text in it hidden; that there is one, and its shape, stays visible."""
    if isinstance(value, str):
        return HIDDEN if value else ""
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if isinstance(value, dict):
        return {key: _hidden(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool) else HIDDEN


def _shortened(text: str, scrub: Callable[[str], str]) -> str:
    if len(text) <= STRING_LIMIT:
        return scrub(text)
    # Somewhat more than is kept is scrubbed, so that the cut leaves no half of a secret.
    kept = scrub(text[: STRING_LIMIT + 1_000])[:STRING_LIMIT]
    return f"{kept}... ({len(text) - STRING_LIMIT} more characters)"
