"""What each provider's API refuses of a conversation: the rules that a history must keep.

Written from the APIs' documentation, apart from the code that writes the requests. A body that
keeps them gives an empty list, any other the sentences that say what is wrong with it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")  # "tool_use.id: String should match pattern"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OPENAI_ID_LIMIT = 64  # characters of a call_id
_GEMINI_EXCUSE = "skip_thought_signature_validator"

Body = Mapping[str, Any]


def violations(api: str, body: Body, *, own: str) -> list[str]:
    """What the API would refuse. `own` begins every signature that this API made."""
    rules: dict[str, Callable[[Body, str], list[str]]] = {
        "anthropic": _anthropic,
        "openai": _openai,
        "deepseek": _openai,
        "openai_responses": _responses,
        "gemini": _gemini,
    }
    return rules[api](body, own)


def _anthropic(body: Body, own: str) -> list[str]:
    wrong: list[str] = []
    messages = body["messages"]
    if not messages or messages[0]["role"] != "user":
        wrong.append("messages: the first must be the user's")
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if at and messages[at - 1]["role"] == role:
            wrong.append(f"{at}: roles must alternate")
        if not content:
            wrong.append(f"{at}: content is empty")
        kinds = [block["type"] for block in content]
        if role == "user":
            results = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
            if sorted(results) != sorted(open_calls):
                wrong.append(f"{at}: results {results} for the calls {open_calls}")
            if kinds[: len(results)] != ["tool_result"] * len(results):
                wrong.append(f"{at}: results must come first")
        elif open_calls:
            wrong.append(f"{at}: calls without a result")
        open_calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if role == "assistant" and kinds and kinds[-1] in {"thinking", "redacted_thinking"}:
            wrong.append(f"{at}: the final block of an answer cannot be thinking")
        for block in content:
            wrong.extend(f"{at}: {what}" for what in _anthropic_block(block, role, own))
    if messages and messages[-1]["role"] != "user":
        wrong.append("the last message must be the user's")
    if open_calls:
        wrong.append("calls without a result at the end")
    return wrong + _anthropic_thinking(body)


def _anthropic_thinking(body: Body) -> list[str]:
    """What it refuses of a request that lets the model think."""
    wrong: list[str] = []
    kind = body.get("thinking", {}).get("type")
    if kind in {"enabled", "adaptive"} and body.get("temperature", 1) != 1:
        wrong.append("`temperature` may only be set to 1 when thinking is enabled")
    if kind == "enabled":
        if body["max_tokens"] <= body["thinking"]["budget_tokens"]:
            wrong.append("`max_tokens` must be greater than `thinking.budget_tokens`")
        conversation: list[Body] = [{"content": [{"type": "thinking"}]}, *body["messages"]]
        answer, last = conversation[-2:]
        goes_on = any(block["type"] == "tool_result" for block in last["content"])
        if goes_on and answer["content"][0]["type"] not in {"thinking", "redacted_thinking"}:
            wrong.append("Expected `thinking` or `redacted_thinking`, but found `tool_use`")
    return wrong


def _anthropic_block(block: Body, role: str, own: str) -> list[str]:
    match block["type"]:
        case "text":
            return [] if block["text"].strip() else ["text must be more than white space"]
        case "thinking":
            signed = role == "assistant" and block["signature"].startswith(own)
            return [] if signed else ["invalid signature in a thinking block"]
        case "redacted_thinking":
            return [] if block["data"].startswith(own) else ["invalid redacted thinking"]
        case "tool_use":
            fits = _ANTHROPIC_ID.fullmatch(block["id"]) and _NAME.fullmatch(block["name"])
            return [] if fits and isinstance(block["input"], dict) else ["a tool_use is malformed"]
        case "image":
            return [] if _is_base64(block["source"]["data"]) else ["an image is no base64"]
        case "tool_result":
            return [
                what for inner in block["content"] for what in _anthropic_block(inner, role, own)
            ]
        case kind:
            return [f"{kind} is no type of block"]


def _openai(body: Body, own: str) -> list[str]:
    wrong: list[str] = []
    waiting: set[str] = set()
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                wrong.append(f"{at}: a result without its call")
            waiting.discard(message["tool_call_id"])
            if not isinstance(message["content"], str):
                wrong.append(f"{at}: a result holds more than text")
            continue
        if waiting:
            wrong.append(f"{at}: calls without a result: {sorted(waiting)}")
            waiting = set()
        if role not in {"system", "user", "assistant"}:
            wrong.append(f"{at}: {role} is no role")
        calls = message.get("tool_calls", [])
        if "tool_calls" in message and (role != "assistant" or not calls):
            wrong.append(f"{at}: tool_calls is empty, or not an assistant's")
        if not calls and not message.get("content"):
            wrong.append(f"{at}: content is missing")
        for call in calls:
            waiting.add(call["id"])
            if len(call["id"]) > _OPENAI_ID_LIMIT or not isinstance(_decoded(call), dict):
                wrong.append(f"{at}: a call's id or arguments cannot be used")
            extra = str(call.get("extra_content", own))
            if own not in extra:
                wrong.append(f"{at}: a call has the signature of another API")
        unknown = set(message) - {"role", "content", "tool_calls", "tool_call_id"}
        unknown -= {"reasoning_content", "reasoning_details"}
        if unknown:
            wrong.append(f"{at}: unknown fields {sorted(unknown)}")
        if calls and body.get("thinking") and not message.get("reasoning_content"):
            wrong.append(f"{at}: reasoning_content is missing beside calls")  # DeepSeek, Kimi
    if waiting:
        wrong.append("calls without a result at the end")
    return wrong


def _decoded(call: Body) -> Any:
    import json

    return json.loads(call["function"]["arguments"])


def _responses(body: Body, own: str) -> list[str]:
    import json

    wrong: list[str] = []
    if body.get("store") is not False:
        wrong.append("store must be false")
    called: set[str] = set()
    answered: set[str] = set()
    items = body["input"]
    for at, item in enumerate(items):
        match item["type"]:
            case "message":
                parts = {part["type"] for part in item["content"]}
                allowed = {"user": {"input_text", "input_image"}, "assistant": {"output_text"}}
                if not parts or not parts <= allowed[item["role"]]:
                    wrong.append(f"{at}: {sorted(parts)} in a message of {item['role']}")
            case "reasoning":
                if not item["encrypted_content"].startswith(own):
                    wrong.append(f"{at}: the encrypted content could not be verified")
                after = items[at + 1] if at + 1 < len(items) else {"type": "nothing"}
                follows = after["type"] in {"reasoning", "function_call"}
                if not follows and (after["type"], after.get("role")) != ("message", "assistant"):
                    wrong.append(f"{at}: reasoning without its required following item")
            case "function_call":
                called.add(item["call_id"])
                if len(item["call_id"]) > _OPENAI_ID_LIMIT or not isinstance(
                    json.loads(item["arguments"]), dict
                ):
                    wrong.append(f"{at}: a call's id or arguments cannot be used")
            case "function_call_output":
                if item["call_id"] not in called - answered:
                    wrong.append(f"{at}: No tool call found for function call output")
                answered.add(item["call_id"])
            case kind:
                wrong.append(f"{at}: {kind} is no type of item")
    if called != answered:
        wrong.append(f"No tool output found for {sorted(called - answered)}")
    return wrong


def _gemini(body: Body, own: str) -> list[str]:
    wrong: list[str] = []
    waiting: list[str] = []
    contents = body["contents"]
    if not contents or contents[0]["role"] != "user":
        wrong.append("the first content must be the user's")
    for at, content in enumerate(contents):
        role, parts = content["role"], content["parts"]
        if at and contents[at - 1]["role"] == role:
            wrong.append(f"{at}: roles must alternate")
        if not parts:
            wrong.append(f"{at}: parts must not be empty")
        names = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        if names != waiting:
            wrong.append(f"{at}: the responses {names} for the calls {waiting}")
        calls = [part for part in parts if "functionCall" in part]
        waiting = [part["functionCall"]["name"] for part in calls]
        if calls and "thoughtSignature" not in calls[0]:
            wrong.append(f"{at}: Function call is missing a thought_signature")
        for part in parts:
            signature = part.get("thoughtSignature", own)
            excused = signature == _GEMINI_EXCUSE and "functionCall" in part
            if not signature.startswith(own) and not excused:
                wrong.append(f"{at}: Corrupted thought signature")
            if len(set(part) & {"text", "functionCall", "functionResponse", "inlineData"}) != 1:
                wrong.append(f"{at}: a part must have one of its kinds of data")
            if "functionCall" in part and not isinstance(part["functionCall"]["args"], dict):
                wrong.append(f"{at}: args must be an object")
            if "inlineData" in part and not _is_base64(part["inlineData"]["data"]):
                wrong.append(f"{at}: the data is no base64")
            if part.get("text") == "" and "thoughtSignature" not in part:
                wrong.append(f"{at}: required oneof field 'data' must have one initialized field")
    if contents and contents[-1]["role"] != "user":
        wrong.append("the last content must be the user's")
    return wrong


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except binascii.Error:
        return False
