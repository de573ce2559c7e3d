"""Interpret a provider's error response: the kind of failure, its message and the retry delay."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

from acp_agent.models.base import FailureKind
from acp_agent.platform.decoding import decode_json

# Words in error responses that are more specific than the HTTP status, in lower case.
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
    # Google, which answers a bad key with status 400.
    "api key not valid": "auth", "api_key_invalid": "auth", "unauthenticated": "auth",
    "permission_denied": "auth", "resource_exhausted": "rate_limit",
    "deadline_exceeded": "timeout", "invalid_argument": "bad_request",
    # Amazon, in the middle of a stream.
    "throttlingexception": "rate_limit", "serviceunavailableexception": "overloaded",
    "modeltimeoutexception": "timeout", "internalserverexception": "server",
    "modelstreamerrorexception": "server", "validationexception": "bad_request",
}  # fmt: skip
_UNAVAILABLE = "UNAVAILABLE"  # too common a word to search for in messages

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
# The content of the request is not allowed: OpenAI and Azure, Alibaba, DeepSeek, Zhipu.
_REFUSED = re.compile(
    r"content_filter|invalid_prompt|\w+_policy(_violation)?|data_?inspection_?failed"
    r"|content exists risk|1301",
    re.IGNORECASE,
)
# Codes of OpenAI for errors that a retry cannot fix (`ResponseError.code` of its API).
_UNCHANGING = re.compile(r"data_residency_mismatch|\w*image\w*")
# "34s", "1.5s", "6m0s", "120ms", "2 minutes": durations of Google, of Go, and in OpenAI's messages.
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)[a-z]*\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_IN_WORDS = re.compile(
    r"\b(?:try again|retry|wait)\b[^.\d]{0,20}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?)\b\s*"
    r"|\d+(?:\.\d+)?(?:ms|s|m|h)(?=\d))+)",
    re.IGNORECASE,
)
_MAX_SEARCHED = 400  # characters of a message that are searched
_RETRY_INFO = "google.rpc.RetryInfo"


class Problem(msgspec.Struct, frozen=True):
    """The error object of a provider's response."""

    message: str | None = None
    type: str | None = None
    code: str | int | float | None = None
    status: str | int | None = None  # Google's name of the error (google.rpc.Code)
    details: object = None  # Google's
    metadata: object = None  # OpenRouter's; `raw` is the error of the upstream service


class _Body(msgspec.Struct, frozen=True):
    error: Problem | str | None = None
    message: str | None = None
    detail: str | None = None
    type: object = None  # `type` and `code` of an error without the `error` object
    code: object = None


def read_problem(body: bytes) -> Problem:
    """Return the error in the body of an answer; its message is empty for an HTML page."""
    try:
        read = decode_json(body, _Body | list[_Body])
    except (ValueError, RecursionError):  # RecursionError: JSON that is nested too deeply
        text = body[:2000].decode("utf-8", "replace").strip()
        return Problem(message="" if text.startswith("<") else text)
    if isinstance(read, list):  # Gemini with OpenAI's API
        read = read[0] if read else _Body()
    if isinstance(read.error, Problem):
        return read.error
    return Problem(
        message=read.error or read.message or read.detail or "",
        type=read.type if isinstance(read.type, str) else None,
        code=read.code if isinstance(read.code, str | int | float) else None,
    )


def upstream_problem(problem: Problem) -> Problem:
    """Return the error of the upstream service if a router passed it on, else the error itself.

    In that case the router's own message only says that there was an error.
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


def failure_kind(problem: Problem, default: FailureKind) -> FailureKind:
    """Return the kind of failure of an error; `default` is the kind for its HTTP status."""
    fields = (problem.type, problem.code, problem.status, problem.message)
    words = " ".join(str(part) for part in fields if part)
    if problem.status == _UNAVAILABLE:
        return "overloaded"
    if any(_REFUSED.fullmatch(str(part)) for part in (problem.code, problem.type, problem.message)):
        return "refused"
    lowered = words.lower()
    kinds: list[FailureKind] = [kind for word, kind in _BY_WORD.items() if word in lowered]
    # A limit of tokens per minute is not an overflow of the context window.
    if "rate_limit" not in {default, *kinds} and OVERFLOW.search(words):
        return "overflow"
    if "quota" in kinds:
        return "rate_limit" if default == "rate_limit" and _is_temporary_quota(problem) else "quota"
    # A specific status takes precedence over the words; a general status does not.
    is_general = default in {"bad_request", "server"}
    if is_general and _UNCHANGING.fullmatch(str(problem.code)):
        return "bad_request"
    return next(iter(kinds), default) if is_general else default


def _is_temporary_quota(problem: Problem) -> bool:
    """Return whether a quota is per minute: Gemini mentions plan and billing for these too."""
    delay = retry_delay(problem, "rate_limit")
    return delay is not None and "PerDay" not in str(problem.details)


def retry_delay(
    problem: Problem, kind: FailureKind, header_delay: float | None = None
) -> float | None:
    """Return the seconds to wait, as requested by a header or given in the error, or None."""
    if header_delay is not None or kind not in {"rate_limit", "overloaded"}:
        return header_delay
    detail_delay = delay_from_details(problem.details)
    return delay_from_words(problem.message or "") if detail_delay is None else detail_delay


# Parsing of the delay that a provider requests, in seconds.


def delay_from_headers(headers: Mapping[str, str]) -> float | None:
    """Return the delay in `retry-after-ms` or Retry-After (RFC 9110, section 10.2.3), or None."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    if header is None:
        return None
    seconds = _number(header)
    if seconds is not None:
        return seconds
    duration = _duration(header.strip().lower())
    if duration is not None:
        return duration
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def delay_from_details(details: object) -> float | None:
    """Return the delay in the details of an error of Google, which sends no header, or None.

    https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
    """
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(_RETRY_INFO):
            return _duration(str(detail.get("retryDelay", "")))
    return None


def delay_from_words(message: str) -> float | None:
    """Return the delay in an error message, or None. An example: "try again in 11.054s"."""
    match = _IN_WORDS.search(message[:_MAX_SEARCHED])
    return None if match is None else _duration(match[1].strip().lower())


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


def _duration(text: str) -> float | None:
    """Return the sum of the parts of a duration, or None if the text is not a duration."""
    total, at = 0.0, 0
    while part := _PART.match(text, at):
        total += float(part[1]) * _SECONDS[part[2]]
        at = part.end()
    return total if at and at == len(text) else None
