"""What a provider's error response means: the kind of failure, its message, when to try again."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

from acp_agent.models.base import FailureKind

# The words with which providers say more than their status does, in lower case.
_BY_WORD: dict[str, FailureKind] = {
    "authentication_error": "auth", "permission_error": "auth", "invalid_api_key": "auth",
    "billing_error": "quota", "insufficient_quota": "quota", "insufficient balance": "quota",
    "insufficient_balance": "quota", "exceeded your current quota": "quota", "余额不足": "quota",
    "arrearage": "quota",
    "rate_limit_error": "rate_limit", "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "overloaded", "engine_overloaded": "overloaded",
    "server_is_overloaded": "overloaded", "slow_down": "overloaded",
    "timeout_error": "timeout", "api_error": "server", "server_error": "server",
    "not_found_error": "not_found", "model_not_found": "not_found",
    "invalid_request_error": "bad_request",
    # Google's, which says 400 to a bad key.
    "api key not valid": "auth", "api_key_invalid": "auth", "unauthenticated": "auth",
    "permission_denied": "auth", "resource_exhausted": "rate_limit",
    "deadline_exceeded": "timeout", "invalid_argument": "bad_request",
    # Amazon's, in the middle of a stream.
    "throttlingexception": "rate_limit", "serviceunavailableexception": "overloaded",
    "modeltimeoutexception": "timeout", "internalserverexception": "server",
    "modelstreamerrorexception": "server", "validationexception": "bad_request",
}  # fmt: skip
_UNAVAILABLE = "UNAVAILABLE"  # too common a word to be looked for in what is said

OVERFLOW = re.compile(
    r"context[_ ](length|window|size|limit)|maximum context|exceed_context_size"
    r"|(prompt|input|input length|token length) (is )?too (long|large)|request_too_large"
    r"|too many (input )?tokens|range of input length|reduce the length of the (messages|prompt)"
    r"|model token limit"  # Kimi; a mere "token limit" may be that of a day
    r"|token count\b.*\bexceeds the (maximum number of tokens|limit)"  # Gemini and others
    r"|token count is \d+ but (the )?model only supports"  # Vertex AI
    r"|maximum (prompt|model|input) length|prompt (超长|exceeds max)"  # xAI, vLLM, Zhipu
    r"|input (length|tokens)\b.{0,60}\bmaximum (allowed )?(input )?length"  # SGLang, Poolside, Nova
    r"|`inputs` (tokens|must have less than)",  # Text Generation Inference
    re.IGNORECASE,
)
# What the request says is not allowed: OpenAI and Azure, Alibaba, DeepSeek, Zhipu.
_REFUSED = re.compile(
    r"content_filter|invalid_prompt|\w+_policy(_violation)?|data_?inspection_?failed"
    r"|content exists risk|1301",
    re.IGNORECASE,
)
# Codes of OpenAI's for what asking again cannot change (`ResponseError.code` of its API).
_UNCHANGING = re.compile(r"data_residency_mismatch|\w*image\w*")


class Problem(msgspec.Struct, frozen=True):
    """An error as providers write it."""

    message: str | None = None
    type: str | None = None
    code: str | int | float | None = None
    status: str | int | None = None  # Google's word for it (google.rpc.Code)
    details: object = None  # Google's
    metadata: object = None  # OpenRouter's: what the service behind it said, as `raw`


class _Body(msgspec.Struct, frozen=True):
    error: Problem | str | None = None
    message: str | None = None
    detail: str | None = None
    type: object = None  # of an error without an envelope, as the code
    code: object = None


def read_problem(body: bytes) -> Problem:
    """The error in the body of an answer; without a message where it is a page for people."""
    try:
        read = msgspec.json.decode(body, type=_Body | list[_Body])
    except (ValueError, RecursionError):  # the latter where it nests without end
        text = body[:2000].decode("utf-8", "replace").strip()
        return Problem(message="" if text.startswith("<") else text)
    if isinstance(read, list):  # Gemini's where it speaks OpenAI's API
        read = read[0] if read else _Body()
    if isinstance(read.error, Problem):
        return read.error
    return Problem(
        message=read.error or read.message or read.detail or "",
        type=read.type if isinstance(read.type, str) else None,
        code=read.code if isinstance(read.code, str | int | float) else None,
    )


def at_its_source(problem: Problem) -> Problem:
    """What the service behind a router said, where the router has passed it on.

    The router's own words are then no more than that there was an error.
    https://openrouter.ai/docs/api/reference/errors-and-debugging
    """
    raw = problem.metadata.get("raw") if isinstance(problem.metadata, dict) else None
    if not isinstance(raw, str | dict):
        return problem
    inner = read_problem(raw.encode() if isinstance(raw, str) else msgspec.json.encode(raw))
    if not inner.message:
        return problem
    return msgspec.structs.replace(
        inner,
        type=inner.type or problem.type,
        code=inner.code if isinstance(inner.code, str) else problem.code,
    )


def kind_of(problem: Problem, default: FailureKind) -> FailureKind:
    """The kind of failure that a problem is; `default` is what its status says."""
    said = (problem.type, problem.code, problem.status, problem.message)
    words = " ".join(str(part) for part in said if part)
    if problem.status == _UNAVAILABLE:
        return "overloaded"
    if any(_REFUSED.fullmatch(str(part)) for part in (problem.code, problem.type, problem.message)):
        return "refused"
    lowered = words.lower()
    found: list[FailureKind] = [kind for word, kind in _BY_WORD.items() if word in lowered]
    # Tokens a minute are no window.
    if "rate_limit" not in {default, *found} and OVERFLOW.search(words):
        return "overflow"
    if "quota" in found:
        return "rate_limit" if default == "rate_limit" and _passes(problem) else "quota"
    # A status says more than a general word beside it, unless it is general itself.
    general = default in {"bad_request", "server"}
    if general and _UNCHANGING.fullmatch(str(problem.code)):
        return "bad_request"
    return next(iter(found), default) if general else default


def _passes(problem: Problem) -> bool:
    """Whether a quota is one of a minute: Gemini speaks of plan and billing there, too."""
    asked = delay_of(problem, "rate_limit")
    return asked is not None and "PerDay" not in str(problem.details)


def delay_of(problem: Problem, kind: FailureKind, asked: float | None = None) -> float | None:
    """How long to wait, where a header has `asked` for it or the error's body does."""
    if asked is not None or kind not in {"rate_limit", "overloaded"}:
        return asked
    told = delay_from_details(problem.details)
    return delay_from_words(problem.message or "") if told is None else told


# How long a provider asks the client to wait, in seconds.

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


def delay_from_headers(headers: Mapping[str, str]) -> float | None:
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


def delay_from_details(details: object) -> float | None:
    """From the details of one of Google's errors, which comes without a header.

    https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
    """
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(_RETRY_INFO):
            return _duration(str(detail.get("retryDelay", "")))
    return None


def delay_from_words(message: str) -> float | None:
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
