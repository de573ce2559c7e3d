"""Forms with calls as tags of control tokens: DeepSeek V3.2 to V4.1, and Kimi K3."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import (
    MAX_TAG_LENGTH,
    MORE,
    Block,
    Tools,
    Verdict,
    describe_tools,
)
from acp_agent.models.dialects.token_calls import STOP
from acp_agent.models.dialects.xml_calls import TagReader, Tags, format_calls

# DeepSeek V3.2 to V4.1: Claude's tags with a mark of DeepSeek in each.
#
# The parsers of sglang and vLLM for deepseek_v32, deepseek_v4 and deepseek_v41 read the same. V3.2
# has its calls in `function_calls`, V4 in `tool_calls`. V4.1 has a space after the mark, and
# `calls`. Some services double the bars of the mark.

_MARK = "｜DSML｜"
_WRAPPER = "tool_calls"  # as in V4
_MARKS = tuple(
    (mark, names)
    for bars in (_MARK, "｜｜DSML｜｜")
    for mark, names in ((bars, ("function_calls", _WRAPPER)), (f"{bars} ", ("calls",)))
)
_CLOSERS = tuple(
    f"</{mark}{name}>" for mark, names in _MARKS for name in (*names, "invoke", "parameter")
)
_OPENERS = tuple(
    opener
    for mark, names in _MARKS
    for opener in (*(f"<{mark}{name}>" for name in names), f'<{mark}invoke name="')
)


def _tags(mark: str, names: Sequence[str]) -> Tags:
    return Tags(
        wrappers=tuple((f"<{mark}{name}>", f"</{mark}{name}>") for name in names),
        call=f'<{mark}invoke name="',
        call_end=f"</{mark}invoke>",
        argument=f'<{mark}parameter name="',
        argument_end=f"</{mark}parameter>",
        json_tags=("", ""),
        control=True,
        marks=(*_OPENERS, *_CLOSERS, STOP),
    )


_READERS = tuple((f"<{mark}", TagReader(_tags(mark, names))) for mark, names in _MARKS)


class Dsml:
    """`<｜DSML｜tool_calls><｜DSML｜invoke name="…"><｜DSML｜parameter name="…" string=…>…`."""

    openers = _OPENERS
    bare = ""
    ends = tuple(closer for closer in _CLOSERS if not closer.endswith("parameter>"))
    strays = (*_CLOSERS, STOP)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        # The longest mark counts: one with a space begins like the one without.
        _, reader = max((entry for entry in _READERS if text.startswith(entry[0])), key=_length)
        return reader.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "## Tools\n\nYou have access to these tools:\n\n"
            f"{describe_tools(tools)}\n\n"
            "To call some of them, end your answer with a block like this one. Write a text as it "
            'is, with string="true"; anything else as JSON, with string="false".\n'
            f'<{_MARK}{_WRAPPER}>\n<{_MARK}invoke name="TOOL">\n'
            f'<{_MARK}parameter name="PARAMETER" string="true">VALUE</{_MARK}parameter>\n'
            f"</{_MARK}invoke>\n</{_MARK}{_WRAPPER}>"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        formatted = format_calls(
            calls,
            lambda key, value, is_text: (
                f'<{_MARK}parameter name="{key}" string="{"true" if is_text else "false"}">'
                f"{value}</{_MARK}parameter>\n"
            ),
        )
        inner = "".join(
            f'<{_MARK}invoke name="{name}">\n{values}</{_MARK}invoke>\n'
            for name, values in formatted
        )
        return f"<{_MARK}{_WRAPPER}>\n{inner}</{_MARK}{_WRAPPER}>"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f"<tool_result>{text}</tool_result>" for _, _, text in results)


def _length(reader: tuple[str, TagReader]) -> int:
    return len(reader[0])


# Kimi K3: tags of three control tokens, around reasoning, the answer and the calls.
#
# As in the parsers of vLLM and sglang for kimi_k3, `<|open|>NAME ATTRIBUTES<|sep|>` opens an
# element, and `<|close|>NAME<|sep|>` closes it. Values are not escaped, and each has a type.

_OPEN, _CLOSE, _SEP = "<|open|>", "<|close|>", "<|sep|>"


def _close(name: str) -> str:
    return f"{_CLOSE}{name}{_SEP}"


_TOOLS = f"{_OPEN}tools{_SEP}"
_NAMES = ("tools", "call", "argument", "json", "think", "response", "message")
_STRAYS = (
    *map(_close, _NAMES),
    _SEP,
    "<|end_of_msg|>",
)
_READER = TagReader(
    Tags(
        wrappers=((_TOOLS, _close("tools")),),
        call=f'{_OPEN}call tool="',
        call_end=_close("call"),
        argument=f'{_OPEN}argument key="',
        argument_end=_close("argument"),
        tag_end=_SEP,
        json_tags=(f'{_OPEN}json type="object"{_SEP}', _close("json")),
        control=True,
        marks=(*_STRAYS, _TOOLS, _OPEN),
    )
)


class KimiK3:
    """`<|open|>tools<|sep|><|open|>call tool="…" index="1"<|sep|><|open|>argument key="…" …`."""

    openers = (_OPEN,)
    bare = ""
    ends = (_close("tools"), _close("call"))
    strays = _STRAYS
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        end = text.find(_SEP, 0, MAX_TAG_LENGTH)
        if end < 0:
            if len(text) < MAX_TAG_LENGTH and not final:
                return MORE
            return Block(len(text) if _may_be_tag(text[len(_OPEN) :]) else len(_OPEN), ())
        name = text[len(_OPEN) : end].partition(" ")[0].strip()
        if name in {"tools", "call"}:
            return _READER.read(text, tools, final=final) or Block(end + len(_SEP), ())
        thought = (_close("think"),) if name == "think" else ()
        return Block(end + len(_SEP), (), thought)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            f"# Tools\n{describe_tools(tools)}\n\n"
            "To call some of them, end your answer with a block like this one, numbered from 1. "
            "The type is one of string, number, boolean, null, object, array; a string is written "
            "as it is, anything else as JSON.\n"
            f'{_TOOLS}{_OPEN}call tool="TOOL" index="1"{_SEP}'
            f'{_OPEN}argument key="PARAMETER" type="string"{_SEP}VALUE{_close("argument")}'
            f"{_close('call')}{_close('tools')}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        formatted = format_calls(
            calls,
            lambda key, value, is_text: (
                f'{_OPEN}argument key="{key}" type="{_type(value, is_text)}"{_SEP}'
                f"{value}{_close('argument')}"
            ),
        )
        inner = "".join(
            f'{_OPEN}call tool="{name}" index="{number}"{_SEP}{values}{_close("call")}'
            for number, (name, values) in enumerate(formatted, 1)
        )
        return f"{_TOOLS}{inner}{_close('tools')}"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f"## Result of {name}\n{text}" for _, name, text in results)


def _may_be_tag(text: str) -> bool:
    """Return whether the rest of an answer may be the beginning of a tag."""
    words, mark, after = text.partition("<")
    if not _SEP.startswith(mark + after):
        return False
    name, space, _ = words.partition(" ")
    return (
        name in _NAMES if space or mark else any(candidate.startswith(name) for candidate in _NAMES)
    )


def _type(value: str, is_text: bool) -> str:
    """Return the type to declare for a value."""
    if is_text:
        return "string"
    kinds = {"{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
    return kinds.get(value[:1], "number")
