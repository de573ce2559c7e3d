"""Where a call, reasoning or the end of an answer may begin in a text, and what words say of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from acp_agent.models.dialects.form import Tools, any_of, beginnings

LONGEST_LEAD = 400  # characters before a call; behind more, only a tag on a line of its own counts
_LONGEST_PYTHON = 64 * 1024
_LONGEST_END = 200  # characters of control tokens

MARK = re.compile(r"[<\[◁]|(?:^|\n)[ \t]*(?=[`{])")
SPECIAL = re.compile(r"[<\[◁`{\n]")
# Tags around reasoning, with their ends.
THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "◁think▷": "◁/think▷",
}
# Words that speak of a call, and do not make it.
_QUOTES = re.compile(
    r"\b(?:you (?:can|could|may|might|should|would|need)|example|e\.g\.|format|syntax|instead of"
    r"|looks? like|like this|such as|(?:will|'ll|’ll|am) not)\b|\bwon't\b|`$|例如|比如|格式|不会",
    re.IGNORECASE,
)
# Words that may: in a last sentence that does not announce a step of the model's own.
_HEDGES = re.compile(r"\b(?:could|would|might|means|if|not)\b|n't\b|可以|如果|不要", re.IGNORECASE)
_OWN_STEP = re.compile(
    r"\b(?:I(?:'ll|’ll| will| am going| need to| want to)|let(?: me|'s|’s))\b|我|现在",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]*[.:!?。：！？]*\s*$")
# JSON is no markup for calls: the announcement must say that one is made.
ANNOUNCES = re.compile(
    r"\b(?:I(?:'ll|’ll| will| am going| need| want)|let(?: me|'s|’s)|now|first|next|\w+ing)\b"
    r"|我|现在",
    re.IGNORECASE,
)
_PYTHON = re.compile(
    r"\s*(?:```(?:tool_code|tool_call)\s*\n)?\s*\[?\s*(?:print\()?(?:default_api\.)?(\w+)\("
)
_WHOLE = ("```tool_code", "print(default_api.", "functools[")  # begin an answer that is all a call
# What a model goes on with that invents the results of its call.
_INVENTED = (
    "<tool_response",
    "<function_results",
    "<|im_start|>",
    "[TOOL_RESULTS]",
    "Observation:",
)
_LONE_TAGS = re.compile(r"(?:\s*[<\[][/|｜]?[\w:▁]*[|｜]?[>\]]?)*\s*")
END_TOKENS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|end_of_text|>", "<|endoftext|>",
    "<|end|>", "<|return|>", "<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<|observation|>",
    "<|user|>", "<｜end▁of▁sentence｜>", "<end_of_turn>", "</s>",
)  # fmt: skip


@cache
def marks_at(begins_line: bool, is_near: bool) -> tuple[re.Pattern[str], frozenset[str]]:
    """What finds the tags that count at a place, and all with which one of them begins."""
    from acp_agent.models.dialects.driver import FORMS  # noqa: PLC0415 - rarely needed

    forms = [form for form in FORMS.values() if begins_line or is_near or form.control]
    marks = tuple(mark for form in forms for mark in form.openers)
    if begins_line:  # the template of some models opens the reasoning, the answer only ends it
        marks += (*THOUGHTS, *THOUGHTS.values())
    return any_of(marks), beginnings(marks)


def speaks_of_calls(lead: str) -> bool:
    """Whether the words before a call speak of one instead of making it."""
    near = lead[-LONGEST_LEAD:]
    sentence = _SENTENCE.search(near)
    last = sentence[0] if sentence else near
    hedges = _HEDGES.search(last) is not None and not _OWN_STEP.search(last)
    return hedges or _QUOTES.search(near) is not None


def tokens_at_end(text: str) -> int:
    """Where the control tokens begin with which a text ends; the last may not be whole."""
    at = text.rfind("<")
    if text[at:] not in beginnings(END_TOKENS) and text[at:].rstrip() not in END_TOKENS:
        return len(text)
    begin = max(0, len(text) - _LONGEST_END)
    while (before := text[begin:at].rstrip()).endswith(END_TOKENS):
        at = begin + before.rindex("<")
    return at


def may_follow_calls(text: str) -> bool:
    """Whether a text behind calls says nothing: tags alone, or results that the model invents."""
    invents = any(mark.startswith(text) or text.startswith(mark) for mark in _INVENTED)
    return invents or _LONE_TAGS.fullmatch(text) is not None


def begins_python(answer: str, tools: Callable[[], Tools]) -> bool:
    """Whether all of an answer may be calls in Python."""
    text = answer.lstrip()
    if len(text) > _LONGEST_PYTHON:
        return False
    if any(text.startswith(whole) or whole.startswith(text) for whole in _WHOLE):
        return True
    begun = text.removeprefix("[").lstrip()
    if not begun or begun.isidentifier():
        return any(tool.name.startswith(begun) for tool in tools())
    found = _PYTHON.match(text[:200])
    return found is not None and found[1] in tools()
