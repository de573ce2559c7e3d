"""What is said of a failure, word by word."""

import os
import resource

import httpx2
import msgspec
import pytest
from msgspec import structs

from acp_agent.models import failures
from acp_agent.models.base import Failed
from acp_agent.models.providers import Provider
from tests.support.model_asking import ask, driver_for, gather
from tests.support.model_server import ModelServer, answer

PROVIDER = Provider(
    id="deepseek",
    name="DeepSeek",
    api="openai",
    base_url="https://api.example/v1",
    key="plain words",
    key_env=("DEEPSEEK_API_KEY",),
)


def said(status: int, message: str, provider: Provider = PROVIDER) -> str:
    body = b'{"error": {"message": "%s"}}' % message.encode()
    return failures.from_status(provider, status, {}, body, model="m").message


def test_an_error_never_repeats_the_users_key() -> None:
    assert "plain words" not in said(400, "not with the key plain words here")
    keyless = structs.replace(PROVIDER, key=None)
    for key in (
        "sk-proj-0123456789abcdef",
        "sk-test****************cdef",
        "AIzaSyA1234567890abcdef",
    ):
        assert key not in said(400, f"not with {key} here", keyless)
        assert "not with *** here" in said(400, f"not with {key} here", keyless)


def test_the_error_for_a_refused_key_says_where_to_set_another() -> None:
    assert said(401, "Incorrect API key: pla***rds") == (
        "DeepSeek refused the API key (HTTP 401). "
        "Run `acp-agent login deepseek` or set DEEPSEEK_API_KEY."
    )


def test_the_error_for_a_too_long_conversation_says_what_helps() -> None:
    told = said(400, "This model's maximum context length is 5")
    assert told.startswith("The conversation is too long for m at DeepSeek (HTTP 400)")
    assert told.endswith("Shorten it with /compact, or choose a model with a larger window.")


def test_a_long_explanation_is_cut() -> None:
    assert len(said(400, "word " * 1000)) < 400


def _said(message: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message}})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error":{"code":"context_length_exceeded","message":"x"}}', "overflow"),
        (400, b'{"error":{"message":"This model\'s maximum context length is 5"}}', "overflow"),
        (413, b'{"error":{"type":"request_too_large","message":"x"}}', "overflow"),
        (413, b"<html><h1>Payload Too Large</h1></html>", "overflow"),
        (400, b'{"message":"Range of input length should be [1, 9]"}', "overflow"),
        (400, _said("input length and `max_tokens` exceed context limit: 9 + 2 > 10"), "overflow"),
        (
            400,
            _said("The input token count (9) exceeds the maximum number of tokens allowed (8)."),
            "overflow",
        ),
        (400, _said("prompt token count of 9 exceeds the limit of 8"), "overflow"),
        (400, _said("Your request exceeded model token limit: 8"), "overflow"),
        (
            400,
            _said("This model's maximum prompt length is 8 but the request contains 9"),
            "overflow",
        ),
        (
            400,
            _said("The decoder prompt (length 9) is longer than the maximum model length of 8"),
            "overflow",
        ),
        (400, _said("Please reduce the length of the messages or completion."), "overflow"),
        (400, _said("Prompt 超长"), "overflow"),
        (400, _said("Prompt exceeds max length"), "overflow"),
        (422, _said("`inputs` tokens + `max_new_tokens` must be <= 8. Given: 9"), "overflow"),
        (422, _said("`inputs` must have less than 8 tokens. Given: 9"), "overflow"),
        (
            400,
            _said(
                "Unable to submit request because the input token count is 9 but model only "
                "supports up to 8."
            ),
            "overflow",
        ),
        (400, _said("Input length 9 exceeds the maximum allowed input length of 8."), "overflow"),
        (400, _said("Input length (9 tokens) exceeds the maximum allowed length (8)."), "overflow"),
        (400, _said("Number of input tokens exceeds maximum length."), "overflow"),
        (400, _said("Input token length too long"), "overflow"),
        (
            400,
            b'[{"error":{"code":400,"message":"The input token count (9) exceeds the limit"}}]',
            "overflow",
        ),
        (500, _said("Context size has been exceeded."), "overflow"),
        (500, _said("Something else has been exceeded."), "server"),
        (403, _said("You have reached your daily token limit"), "auth"),
        (
            400,
            _said("max_tokens: 9 > 8, which is the maximum allowed number of output tokens"),
            "bad_request",
        ),
        (429, b'{"error":{"type":"tokens","message":"too many tokens per minute"}}', "rate_limit"),
        (429, b'{"error":{"code":"insufficient_quota","message":"x"}}', "quota"),
        (400, b'{"type":"error","error":{"type":"billing_error","message":"x"}}', "quota"),
        (429, '{"error":{"code":"1113","message":"余额不足"}}'.encode(), "quota"),
        (403, b'{"error":{"message":"model is not for you"}}', "auth"),
        (404, b"not json", "not_found"),
        (418, b"[1]", "bad_request"),
        (599, b"", "server"),
        (400, b'{"detail":"wrong"}', "bad_request"),
        (400, b'{"error":"wrong"}', "bad_request"),
        (400, b'{"code":"DataInspectionFailed","message":"x"}', "refused"),
        (400, b'{"object":"error","message":"x","code":"context_length_exceeded"}', "overflow"),
        (400, b'{"message":"x","type":"billing_error","code":{"novel":1}}', "quota"),
    ],
)
def test_recorded_errors_of_providers_are_understood(status: int, body: bytes, kind: str) -> None:
    failed = failures.from_status(PROVIDER, status, {}, body, model="m")
    assert failed.kind == kind


@pytest.mark.parametrize(
    "raw",
    [
        "prompt is too long: 9 tokens > 8 maximum",
        '{"type":"error","error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}',
        {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}},
    ],
)
def test_the_error_of_the_service_behind_a_router_is_understood_and_shown(raw: object) -> None:
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}
    body = msgspec.json.encode({"error": error})
    answered = failures.from_status(PROVIDER, 400, {}, body, model="m")
    streamed = failures.from_event(PROVIDER, error, model="m")
    for failed in (answered, streamed):
        assert failed.kind == "overflow"
        assert "9 tokens > 8 maximum" in failed.message
        assert failed.status == 400


@pytest.mark.parametrize(
    ("inner", "kind", "seconds"),
    [
        ({"message": "The response was filtered", "code": "content_filter"}, "refused", None),
        ({"message": "It may be unsafe", "code": "1301"}, "refused", None),
        ({"message": "It is over", "code": "insufficient_quota"}, "quota", None),
        (
            {
                "code": 429,
                "message": "Resource has been exhausted",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "34s"}],
            },
            "rate_limit",
            34,
        ),
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_the_codes_and_waits_of_the_service_behind_a_router_count(
    inner: dict[str, object], kind: str, seconds: float | None, as_text: bool
) -> None:
    raw = {"error": inner}
    passed_on = msgspec.json.encode(raw).decode() if as_text else raw
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": passed_on}}
    body = msgspec.json.encode({"error": error})
    for failed in (
        failures.from_status(PROVIDER, 400, {}, body, model="m"),
        failures.from_event(PROVIDER, error, model="m"),
        failures.from_page(PROVIDER, body, model="m"),
    ):
        assert (failed.kind, failed.retry_after, failed.status) == (kind, seconds, 400)


def test_an_endlessly_nested_error_is_reported_and_not_raised() -> None:
    body = b'{"error":{"message":"x","details":' + b"[" * 9_000
    assert failures.from_status(PROVIDER, 400, {}, body, model="m").kind == "bad_request"


@pytest.mark.parametrize("metadata", [None, [], "x", {"raw": ""}, {"raw": "<html>"}, {"raw": 5}])
def test_the_message_of_a_router_is_shown_if_it_passes_on_no_other(metadata: object) -> None:
    error = {"message": "Provider returned error", "code": 502, "metadata": metadata}
    body = msgspec.json.encode({"error": error})
    failed = failures.from_status(PROVIDER, 502, {}, body, model="m")
    assert (failed.kind, failed.status) == ("server", 502)
    assert "Provider returned error" in failed.message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "content_filter", "message": "The response was filtered"}, "refused"),
        ({"code": "invalid_prompt", "message": "Your prompt was flagged"}, "refused"),
        ({"code": "data_inspection_failed", "message": "Input data may be"}, "refused"),
        ({"code": "DataInspectionFailed", "message": "Input data may be"}, "refused"),
        ({"code": "invalid_request_error", "message": "Content Exists Risk"}, "refused"),
        (
            {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"},
            "refused",
        ),
        ({"code": "1300", "message": "read about content_filter"}, "bad_request"),
        ({"message": "messages.3: invalid_prompt is no field"}, "bad_request"),
    ],
)
def test_a_request_refused_for_its_content_has_its_own_error(
    error: dict[str, object], kind: str
) -> None:
    body = msgspec.json.encode({"error": error})
    assert failures.from_status(PROVIDER, 400, {}, body, model="m").kind == kind


def test_a_limit_of_tokens_a_minute_is_no_overflow_in_a_stream_either() -> None:
    problem = {"code": "rate_limit_exceeded", "message": "Too many tokens per minute"}
    assert failures.from_event(PROVIDER, problem, model="m").kind == "rate_limit"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-4"}, 0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "30s"}, 30),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "Sun, 06 Nov 999999 08:49:37 GMT"}, None),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    failed = failures.from_status(PROVIDER, 429, headers, b"", model="m")
    assert failed.retry_after == seconds


def _googles(message: str, *details: object) -> dict[str, object]:
    return {
        "code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": list(details),
    }  # fmt: skip


_SOON = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074s"}
_DAILY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
_PLAN = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("error", "kind", "seconds"),
    [
        (_googles("Resource has been exhausted", _SOON), "rate_limit", 34.074),
        (_googles(_PLAN, _SOON), "rate_limit", 34.074),
        (_googles(f"{_PLAN} Please retry in 12.5s."), "rate_limit", 12.5),
        (_googles(_PLAN, _DAILY, _SOON), "quota", None),
        (_googles(_PLAN), "quota", None),
        (_googles("Slow", "x", {"@type": "google.rpc.RetryInfo"}), "rate_limit", None),
        (
            {"code": "rate_limit_exceeded", "message": "Please try again in 1m0.5s. Visit us."},
            "rate_limit",
            60.5,
        ),
        ({"code": "slow_down", "message": "Retry after 20 seconds"}, "overloaded", 20),
        ({"code": "rate_limit_exceeded", "message": "Try again in 120ms."}, "rate_limit", 0.12),
        ({"code": "rate_limit_exceeded", "message": "Try again at 5"}, "rate_limit", None),
    ],
)
def test_the_time_to_wait_is_read_where_only_the_error_says_it(
    error: dict[str, object], kind: str, seconds: float | None
) -> None:
    body = msgspec.json.encode({"error": error})
    answered = failures.from_status(PROVIDER, 429, {}, body, model="m")
    streamed = failures.from_event(PROVIDER, error, model="m")
    if kind != "overloaded":  # a status says more than a word
        assert (answered.kind, answered.retry_after) == (kind, seconds)
    assert (streamed.kind, streamed.retry_after) == (kind, seconds)


@pytest.mark.parametrize(
    "code",
    ["invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_too_large"],
)
def test_a_failure_that_a_retry_cannot_fix_is_not_retried(code: str) -> None:
    failed = failures.from_event(PROVIDER, {"code": code, "message": "No."}, model="m")
    assert failed.kind not in failures.RETRYABLE


@pytest.mark.parametrize("key", ["two-lines-of\na-secret", "schlüssel-123456"])
async def test_a_key_that_no_header_can_carry_is_neither_quoted_nor_retried(key: str) -> None:
    async with ModelServer() as server, httpx2.AsyncClient() as client:
        with pytest.raises((httpx2.HTTPError, ValueError)) as raised:
            await client.get(server.url, headers={"Authorization": f"Bearer {key}"})
    broken = structs.replace(PROVIDER, key=key)
    failed = failures.from_exception(broken, raised.value, model="m", answer_started=False)
    assert failed.kind not in failures.RETRYABLE
    assert "secret" not in failed.message
    assert failed.message == (
        "DeepSeek cannot be asked: its key or one of its headers has line breaks or unusual "
        "characters. Set DEEPSEEK_API_KEY again, or run `acp-agent login deepseek`."
    )


def test_an_answer_that_cannot_be_decompressed_is_asked_for_again() -> None:
    broken = httpx2.DecodingError("invalid bit length")
    failed = failures.from_exception(PROVIDER, broken, model="m", answer_started=True)
    assert failed.kind in failures.RETRYABLE


def test_an_unexpected_error_is_reported_and_not_raised() -> None:
    failed = failures.from_exception(
        PROVIDER, KeyError("plain words"), model="m", answer_started=False
    )
    assert failed.kind == "bad_request"
    assert "KeyError" in failed.message
    assert "plain words" not in failed.message


async def test_the_limit_of_open_files_is_no_fault_of_the_network(server: ModelServer) -> None:
    server.add(answer("Never asked for."))
    driver = driver_for("openai", server)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        got = await gather(driver.stream(ask()))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        await driver.aclose()
    assert isinstance(got.last, Failed)
    assert got.last.kind not in failures.RETRYABLE
    assert "raise the limit of open files (ulimit -n)" in got.last.message
    assert "network" not in got.last.message
