"""Forms with calls as tags of control tokens: DeepSeek V3.2 to V4.1, and Kimi K3."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import (
    MAX_TAG_LENGTH,
    MORE,
    Block,
    Tools,
    Verdict,
)
from acp_agent.models.dialects.token_calls import STOP
from acp_agent.models.dialects.xml_calls import TagReader, Tags

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
        """See `form.CallReader`."""
        # The longest mark counts: one with a space begins like the one without.
        _, reader = max((entry for entry in _READERS if text.startswith(entry[0])), key=_length)
        return reader.read(text, tools, final=final)


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
        """See `form.CallReader`."""
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


def _may_be_tag(text: str) -> bool:
    """Return whether the rest of an answer may be the beginning of a tag."""
    words, mark, after = text.partition("<")
    if not _SEP.startswith(mark + after):
        return False
    name, space, _ = words.partition(" ")
    return (
        name in _NAMES if space or mark else any(candidate.startswith(name) for candidate in _NAMES)
    )
