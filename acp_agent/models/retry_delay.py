"""How long a provider asks to be left alone, wherever it says so. In seconds."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# "34s", "1.5s", "6m0s", "120ms", "2 minutes": Google's Duration, Go's, and OpenAI's words.
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)[a-z]*\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_IN_WORDS = re.compile(
    r"\b(?:try again|retry|wait)\b[^.\d]{0,20}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?)\b\s*"
    r"|\d+(?:\.\d+)?(?:ms|s|m|h)(?=\d))+)",
    re.IGNORECASE,
)
_LONGEST = 400  # characters of a message that are looked through
_RETRY_INFO = "google.rpc.RetryInfo"


def from_headers(headers: Mapping[str, str]) -> float | None:
    """From `retry-after-ms`, or Retry-After (RFC 9110, section 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if given is None:
        return None
    seconds = _number(given)
    if seconds is not None:
        return seconds
    lasting = _duration(given.strip().lower())
    if lasting is not None:
        return lasting
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def from_details(details: object) -> float | None:
    """From the details of one of Google's errors, which comes without a header.

    https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
    """
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(_RETRY_INFO):
            return _duration(str(detail.get("retryDelay", "")))
    return None


def from_words(message: str) -> float | None:
    """From what an error says, such as OpenAI's "Please try again in 11.054s."."""
    found = _IN_WORDS.search(message[:_LONGEST])
    return None if found is None else _duration(found[1].strip().lower())


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


def _duration(text: str) -> float | None:
    """The sum of the parts of a duration; None where it is none."""
    total, at = 0.0, 0
    while part := _PART.match(text, at):
        total += float(part[1]) * _SECONDS[part[2]]
        at = part.end()
    return total if at and at == len(text) else None
