"""Find where a call, reasoning or control tokens begin in a text, and judge the words before."""

from __future__ import annotations

import re
from functools import cache

from acp_agent.models.dialects.form import marks_pattern, proper_prefixes

MAX_LEAD_LENGTH = (
    400  # characters before a call; after more text, only a tag at a line start counts
)
_MAX_END_LENGTH = 200  # characters of control tokens

MARK = re.compile(r"[<\[◁](?=[\w\s|｜/{]|\Z)|\](?=\Z|<\Z|<\]\Z|<\]m)|(?:^|\n)[ \t]*(?=[`{A])")
SPECIAL = re.compile(r"[<\[\]◁`{A\n]")
# Opening and closing tags of reasoning.
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
# Words that only mention a call.
_QUOTES = re.compile(
    r"\b(?:you (?:can|could|may|might|should|would|need)|example|e\.g\.|format|syntax|instead of"
    r"|looks? like|like this|such as|(?:will|'ll|’ll|am) not)\b|\bwon't\b|`$|例如|比如|格式|不会",
    re.IGNORECASE,
)
# Words that may mention a call, if the last sentence does not announce a step of the model.
_HEDGES = re.compile(r"\b(?:could|would|might|means|if|not)\b|n't\b|可以|如果|不要", re.IGNORECASE)
_ANNOUNCED_STEP = re.compile(
    r"\b(?:I(?:'ll|’ll| will| am going| need to| want to)|let(?: me|'s|’s))\b|我|现在",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]*[.:!?。：！？]*\s*$")
# JSON alone does not mark a call, so the words before it must announce one.
ANNOUNCES = re.compile(
    r"\b(?:I(?:'ll|’ll| will| am going| need| want)|let(?: me|'s|’s)|now|first|next|\w+ing)\b"
    r"|我|现在",
    re.IGNORECASE,
)
# Text with which a model continues that invents the results of its call.
_INVENTED_RESULTS = (
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
def opener_patterns(begins_line: bool, is_near: bool) -> tuple[re.Pattern[str], frozenset[str]]:
    """Return a pattern for the opening tags that count at a place, and all prefixes of these."""
    from acp_agent.models.dialects.driver import READERS  # noqa: PLC0415 - rarely needed

    forms = [form for form in READERS if begins_line or is_near or form.control]
    marks = tuple(mark for form in forms for mark in form.openers)
    if begins_line:  # some chat templates open the reasoning, so the answer only closes it
        marks += (*THOUGHTS, *THOUGHTS.values())
    return marks_pattern(marks), proper_prefixes(marks)


def only_mentions_calls(lead: str) -> bool:
    """Return whether the words before a call only mention it."""
    recent_words = lead[-MAX_LEAD_LENGTH:]
    sentence = _SENTENCE.search(recent_words)
    last = sentence[0] if sentence else recent_words
    hedges = _HEDGES.search(last) is not None and not _ANNOUNCED_STEP.search(last)
    return hedges or _QUOTES.search(recent_words) is not None


def find_end_tokens(text: str) -> int:
    """Return where the control tokens at the end of a text begin; the last may be incomplete."""
    at = text.rfind("<")
    if text[at:] not in proper_prefixes(END_TOKENS) and text[at:].rstrip() not in END_TOKENS:
        return len(text)
    window_start = max(0, len(text) - _MAX_END_LENGTH)
    while (preceding := text[window_start:at].rstrip()).endswith(END_TOKENS):
        at = window_start + preceding.rindex("<")
    return at


def may_follow_calls(text: str) -> bool:
    """Return whether a text after calls can be ignored: only tags, or invented results."""
    invents = any(mark.startswith(text) or text.startswith(mark) for mark in _INVENTED_RESULTS)
    return invents or (len(text) <= _MAX_END_LENGTH and _LONE_TAGS.fullmatch(text) is not None)


def half_mark(text: str, mark: str) -> int:
    """Return where an incomplete mark at the end of a text begins."""
    sizes = (size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size]))
    return len(text) - next(sizes, 0)
