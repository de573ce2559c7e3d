"""Forms with calls as tags: Claude's form, MiniMax M2, Qwen3-Coder, GLM."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp_agent.models.dialects import json_text
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
    describe_functions,
    describe_tools,
    match_mark,
    skip_space,
)
from acp_agent.models.dialects.json_forms import CLOSE, OPEN, tool_responses
from acp_agent.models.dialects.xml_calls import TagReader, Tags, format_calls

# The tags of Claude's form, which other models have adopted.

_INVOKE_READER = TagReader(
    Tags(
        wrappers=(("<function_calls>", "</function_calls>"),),
        call='<invoke name="',
        call_end="</invoke>",
        argument='<parameter name="',
        argument_end="</parameter>",
    )
)


class Invoke:
    """`<function_calls><invoke name="…"><parameter name="…">…</parameter></invoke>…`."""

    openers = ("<function_calls>", '<invoke name="')
    bare = ""
    ends = ("</function_calls>", "</invoke>")
    strays = ("</function_calls>", "</invoke>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _INVOKE_READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        functions = describe_functions(tools, "<function>", "</function>")
        return (
            "You can call these functions:\n"
            f"<functions>\n{functions}\n</functions>\n\n"
            "To call some of them, write a block like this one and end your answer with it. Write "
            "texts and numbers as they are, lists and objects as JSON.\n"
            '<function_calls>\n<invoke name="FUNCTION">\n<parameter name="PARAMETER">VALUE'
            "</parameter>\n</invoke>\n</function_calls>"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return f"<function_calls>\n{invocations(calls)}</function_calls>"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        inner = "".join(
            f"<result>\n<name>{name}</name>\n<output>{text}</output>\n</result>\n"
            for _, name, text in results
        )
        return f"<function_results>\n{inner}</function_results>"


def invocations(calls: Sequence[tuple[int, str, str]]) -> str:
    """Return calls as `invoke` tags, with a line for each tag and each argument."""
    formatted = format_calls(
        calls, lambda key, value, _: f'<parameter name="{key}">{value}</parameter>\n'
    )
    return "".join(f'<invoke name="{name}">\n{values}</invoke>\n' for name, values in formatted)


# MiniMax M2: `invoke` tags in another wrapper (the template of MiniMaxAI/MiniMax-M2).

_MINIMAX_OPEN, _MINIMAX_CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"
_MINIMAX_READER = TagReader(
    Tags(
        wrappers=((_MINIMAX_OPEN, _MINIMAX_CLOSE),),
        call='<invoke name="',
        call_end="</invoke>",
        argument='<parameter name="',
        argument_end="</parameter>",
    )
)


class MiniMax:
    """`<minimax:tool_call><invoke name="…"><parameter name="…">…</parameter></invoke>…`."""

    openers = (_MINIMAX_OPEN,)
    bare = ""
    ends = (_MINIMAX_CLOSE,)
    strays = (_MINIMAX_CLOSE, "</invoke>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _MINIMAX_READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\nYou may call one or more tools to assist with the user query.\n"
            "Here are the tools available in JSONSchema format:\n\n"
            f"<tools>\n{describe_functions(tools, '<tool>', '</tool>')}\n</tools>\n\n"
            "When making tool calls, use XML format to invoke tools and pass parameters:\n\n"
            f'{_MINIMAX_OPEN}\n<invoke name="tool-name">\n<parameter name="param-key">param-value'
            f"</parameter>\n</invoke>\n{_MINIMAX_CLOSE}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return f"{_MINIMAX_OPEN}\n{invocations(calls)}{_MINIMAX_CLOSE}"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f"<response>{text}</response>" for _, _, text in results)


# Qwen3-Coder, Qwen 3.5, Nemotron 3: a tag for every argument, with its value on separate lines.
#
# This is the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct. These models sometimes omit the
# outer tag, which is accepted if the tool is known.

_QWEN_CODER_READER = TagReader(
    Tags(
        wrappers=((OPEN, CLOSE),),
        call="<function=",
        call_end="</function>",
        argument="<parameter=",
        argument_end="</parameter>",
        quoted=False,
        framed=True,
        json_tags=("", ""),  # Llama models write JSON there
    )
)


class QwenCoder:
    """`<tool_call><function=…><parameter=…>…</parameter></function></tool_call>`."""

    openers = (OPEN, "<function=")
    bare = ""
    ends = (CLOSE, "</function>")
    strays = (CLOSE, "</function>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _QWEN_CODER_READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\n\nYou have access to the following functions:\n\n"
            f"<tools>\n{describe_tools(tools)}\n</tools>\n\n"
            "If you choose to call a function ONLY reply in the following format with NO "
            "suffix:\n\n"
            f"{OPEN}\n<function=example_function_name>\n<parameter=example_parameter>\nvalue\n"
            f"</parameter>\n</function>\n{CLOSE}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        formatted = format_calls(
            calls, lambda key, value, _: f"<parameter={key}>\n{value}\n</parameter>\n"
        )
        return "\n".join(
            f"{OPEN}\n<function={name}>\n{values}</function>\n{CLOSE}" for name, values in formatted
        )

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return tool_responses(results)


# GLM 4.5 to 5: the tool's name, then pairs of keys and values (template of zai-org/GLM-4.6).

_KEY, _KEY_END, _VALUE, _VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
_NAME = re.compile(r"\s*([\w.:/-]{1,128})\s*(?=<)")
_PART_OF_NAME = re.compile(r"\s*[\w.:/-]{0,128}\s*")
_STRAY = "Only pairs of keys and values may follow the name. The call was not run; write it again."


class Glm:
    """`<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`."""

    openers = (OPEN,)
    bare = ""
    ends = (CLOSE,)
    strays = (CLOSE, "</arg_value>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        name_match = _NAME.match(text, len(OPEN))
        if name_match is None:
            is_partial_name = _PART_OF_NAME.fullmatch(text, len(OPEN))
            return MORE if is_partial_name and not final else None
        mark = match_mark(text, name_match.end(), (_KEY, CLOSE), final=final)
        if not isinstance(mark, str):
            return mark
        arguments: dict[str, object] = {}
        at = name_match.end()
        while mark == _KEY:
            pair = _pair(text, at, final=final)
            if pair is None:
                break
            if isinstance(pair, More):
                return SURE
            key, value, at = pair
            arguments[key] = tools.convert_argument(name_match[1], key, value)
            at = skip_space(text, at)
            follows = match_mark(text, at, (_KEY, CLOSE), final=final)
            if isinstance(follows, More):
                return SURE
            mark = follows or ""
        if mark == CLOSE:
            call = WrittenCall(name=name_match[1], arguments=json_text.encode(arguments))
            return Block(at + len(CLOSE), (call,))
        close = text.find(CLOSE, at)
        if close < 0 and not final:
            return SURE
        end = len(text) if close < 0 else close
        problem = NO_END if close < 0 else _STRAY
        name = name_match[1] if name_match[1] in tools else broken_call("", "", tools).name
        invalid_call = WrittenCall(
            name=name, arguments=text[len(OPEN) : end].strip(), problem=problem
        )
        return Block(end if close < 0 else close + len(CLOSE), (invalid_call,))

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n"
            f"<tools>\n{describe_tools(tools)}\n</tools>\n\n"
            "For each function call, output the function name and arguments within the following "
            f"XML format:\n{OPEN}{{function-name}}\n{_KEY}{{arg-key-1}}{_KEY_END}\n"
            f"{_VALUE}{{arg-value-1}}{_VALUE_END}\n...\n{CLOSE}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        formatted = format_calls(
            calls, lambda key, value, _: f"{_KEY}{key}{_KEY_END}\n{_VALUE}{value}{_VALUE_END}\n"
        )
        return "\n".join(f"{OPEN}{name}\n{values}{CLOSE}" for name, values in formatted)

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return tool_responses(results)


def _pair(text: str, at: int, *, final: bool) -> tuple[str, str, int] | More | None:
    """Return a key, its value as written, and their end, or None if there is no pair."""
    key_end = text.find(_KEY_END, at)
    if key_end < 0:
        return None if final else MORE
    start = skip_space(text, key_end + len(_KEY_END))
    mark = match_mark(text, start, (_VALUE,), final=final)
    if not isinstance(mark, str):
        return mark
    start += len(_VALUE)
    seek = start
    while True:
        end = text.find(_VALUE_END, seek)
        if end < 0:
            return None if final else MORE
        after = end + len(_VALUE_END)
        follows = match_mark(text, skip_space(text, after), (_KEY, CLOSE), final=final)
        if isinstance(follows, More):
            return MORE
        if follows is not None or (final and not text[after:].strip()):
            return text[at + len(_KEY) : key_end].strip(), text[start:end], after
        seek = end + 1
