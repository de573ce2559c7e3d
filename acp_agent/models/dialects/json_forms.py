"""Forms with calls as JSON: Hermes and the Qwen family, code blocks, Llama 3, Mistral."""

from __future__ import annotations

import re

from acp_agent.models.dialects import json_calls, json_text
from acp_agent.models.dialects.form import (
    MORE,
    NO_END,
    SURE,
    Block,
    More,
    Tools,
    Verdict,
    WrittenCall,
    broken_call,
    match_mark,
    skip_space,
)
from acp_agent.models.dialects.json_calls import names_tool, read_arguments, read_calls
from acp_agent.models.dialects.python_calls import read_python_calls

# Hermes, Qwen 2.5 and Qwen 3, SmolLM 3, Granite 4: a JSON object between two tags.
#
# These are the chat templates of Qwen/Qwen3-8B and NousResearch/Hermes-3-Llama-3.1-8B.

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class Hermes:
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`."""

    openers: tuple[str, ...] = (OPEN,)
    bare = ""
    ends: tuple[str, ...] = (CLOSE,)
    strays: tuple[str, ...] = (CLOSE,)
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        return json_calls.read_region(text, OPEN, CLOSE, tools, final=final)


# Granite, Phi, Nemotron, Jamba, Hunyuan, Cohere, InternLM, LFM2, Llama 4, LM Studio, Olmo 3,
# MiniMax M1, Qwen 2.5 Coder, LongCat, Apertus, GigaChat: calls as JSON or Python between tags.

_MESSAGE_ENDS = ("", "<|message_sep|>", "<|message_sep|>\n\n")  # GigaChat, before the role
_TAGS = {
    "<tool_calls>": "</tool_calls>",
    "<tools>": "</tools>",
    "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>",
    "<longcat_tool_call>": "</longcat_tool_call>",
    "<TOOLCALL>": "</TOOLCALL>",
    "[TOOL_REQUEST]": "[END_TOOL_REQUEST]",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|tools_prefix|>": "<|tools_suffix|>",
    "<|function_call|>": "<|/function_call|>",
    **{f"{end}function call<|role_sep|>": "<|message_sep|>" for end in _MESSAGE_ENDS},
    "<|python_start|>": "<|python_end|>",
    "<|START_ACTION|>": "<|END_ACTION|>",
    "<|action_start|>": "<|action_end|>",
}
_PLUGIN = "<|plugin|>"  # InternLM writes this after the opener
_INNER = (OPEN, "<function=", "<function name=")  # Hunyuan 3 has its calls in a list of tags
_PYTHON = re.compile(r"\[?\s*[\w.]*\(?|\[?\s*[\w.]+\(.*", re.DOTALL)
_PYTHON_NAME = re.compile(r"\[?\s*(\w+)\(")
_MAX_CLOSING_TAGS = 20  # the closing tags that a text in a call may contain


class Tagged(Hermes):
    """`<|tool_call|>[{"name": …, "arguments": {…}}]<|/tool_call|>`, and similar tags."""

    openers = tuple(_TAGS)
    ends = tuple(_TAGS.values())
    strays = tuple(_TAGS.values())

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        opener = next(opener for opener in _TAGS if text.startswith(opener))
        closer = _TAGS[opener]
        at = skip_space(text, len(opener))
        follows = match_mark(text, at, (_PLUGIN, *_INNER), final=final)
        if isinstance(follows, More):
            return follows
        if follows == _PLUGIN:
            at = skip_space(text, at + len(_PLUGIN))
        elif follows is not None:
            return Block(at, ())
        if not _PYTHON.fullmatch(text, at):
            return json_calls.read_region(text, text[:at], closer, tools, final=final)
        end = at
        for _ in range(_MAX_CLOSING_TAGS):
            end = text.find(closer, end)
            if end < 0:
                break
            calls = read_python_calls(text[at:end], tools)
            if calls:
                return Block(end + len(closer), tuple(calls))
            end += 1
        if not final:
            match = _PYTHON_NAME.match(text, at)
            return None if end >= 0 else SURE if match and match[1] in tools else MORE
        calls = read_python_calls(text[at:], tools)
        return Block(len(text), tuple(calls)) if calls else None


# Llama 3.1 to 3.3: the answer is JSON, with semicolons between several calls.
#
# https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/. Without a tag, JSON at the
# beginning of an answer is a call only if it has the form of a call of a known tool.

_TAG = "<|python_tag|>"
_LLAMA_BAD = 'Write calls as {"name": …, "parameters": {…}}. This one was not run.'


class Llama:
    """`{"name": …, "parameters": {…}}`, after `<|python_tag|>` or as the whole answer."""

    openers = (_TAG,)
    bare = "{["
    ends = ("}", "]")
    strays = ("<|eom_id|>", "<|eot_id|>")
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        if not text.startswith(_TAG):
            return _call(text, 0, tools, tagged=False, final=final)
        at = skip_space(text, len(_TAG))
        if at == len(text):
            return Block(at, ()) if final else MORE
        if text[at] in "{[":
            return _call(text, at, tools, tagged=True, final=final)
        # A call of the code interpreter, or Python code for it: there is no interpreter.
        return Block(len(text), (broken_call(_LLAMA_BAD, text[at:], tools),)) if final else SURE


def _call(text: str, at: int, tools: Tools, *, tagged: bool, final: bool) -> Verdict:
    """Return the verdict for the call, or list of calls, at a position.

    Without a tag before it, the JSON may be something else. A semicolon after the call is included,
    so that the rest of the text begins with the next call.
    """
    is_call = True if tagged else names_tool(text, at, tools, final=final)
    if isinstance(is_call, More):
        return MORE
    if not is_call:
        return None
    end = json_text.value_end(text, at)
    if end is None:
        return Block(len(text), (broken_call(NO_END, text[at:], tools),)) if final else SURE
    calls = read_calls(text[at:end], tools, strict=not tagged)
    if not calls:
        return None
    after = skip_space(text, end)
    if after == len(text) and not final:
        return SURE
    return Block(after + 1 if text[after : after + 1] == ";" else end, tuple(calls))


# Mistral: a control token, then a list of calls, or a name and its arguments.
#
# Mistral 7B v0.3 and Nemo write the list. Mistral Small 3.2, Magistral and Devstral write name and
# arguments, with one token per call (the tokenizers v3 and v11 of mistral-common). Magistral's
# reasoning is between other tokens (v13).

_OPEN = "[TOOL_CALLS]"
_THINK, _THOUGHT = "[THINK]", "[/THINK]"
_NAMED_CALL = re.compile(
    r"\s*([\w.:/-]{1,128})\s*(?:\[CALL_ID\]\s*\w{1,64}\s*)?(?:\[ARGS\]\s*)?(?=\{)"
)
_PARTIAL_NAMED_CALL = re.compile(
    r"\s*[\w.:/-]{0,128}\s*(?:\[[A-Z_]{0,7}(?:\][\s\w]{0,66})?){0,2}\s*"
)
_MISTRAL_BAD = 'Calls are written [TOOL_CALLS][{"name": …, "arguments": {…}}]. It was not run.'


class Mistral:
    """`[TOOL_CALLS][{"name": …, "arguments": {…}}]` or `[TOOL_CALLS]name[ARGS]{…}`."""

    openers = (_OPEN, _THINK)
    bare = ""
    ends = ("}", "]")
    strays = ("[/TOOL_CALLS]", _THOUGHT)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        if text.startswith(_THINK):
            return Block(len(_THINK), (), (_THOUGHT,))
        at = skip_space(text, len(_OPEN))
        name_match = None if text[at : at + 1] in {"[", "{"} else _NAMED_CALL.match(text, at)
        if name_match is None and text[at : at + 1] not in {"[", "{"}:
            if not final and _PARTIAL_NAMED_CALL.fullmatch(text, at):
                return SURE
            end = len(text) if (line := text.find("\n", at)) < 0 else line
            if end == len(text) and not final:
                return SURE
            problem = NO_END if end == len(text) else _MISTRAL_BAD
            return Block(end, (broken_call(problem, text[at:end], tools),))
        start = at if name_match is None else name_match.end()
        json_end = json_text.value_end(text, start)
        if json_end is None:
            if not final:
                return SURE
            unfinished = broken_call(NO_END, text[at:], tools)
            if name_match is not None and name_match[1] in tools:
                unfinished = WrittenCall(
                    name=name_match[1], arguments=unfinished.arguments, problem=unfinished.problem
                )
            return Block(len(text), (unfinished,))
        json_source = text[start:json_end]
        if name_match is not None:
            return Block(json_end, (read_arguments(name_match[1], json_source),))
        return Block(json_end, tuple(read_calls(json_source, tools)))
