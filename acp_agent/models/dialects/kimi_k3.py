"""Kimi K3: tags of three control tokens, around reasoning, the answer and the calls alike.

What vLLM's and sglang's parsers for kimi_k3 read: `<|open|>NAME ATTRIBUTES<|sep|>` opens an element
and `<|close|>NAME<|sep|>` ends it. Values are not escaped; each says what type it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import LONGEST_TAG, MORE, Block, Verdict
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools
from acp_agent.models.dialects.xml_calls import TagReader, Tags, written_calls

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
        whole=(f'{_OPEN}json type="object"{_SEP}', _close("json")),
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
        end = text.find(_SEP, 0, LONGEST_TAG)
        if end < 0:
            if len(text) < LONGEST_TAG and not final:
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
            f"# Tools\n{described_json(tools)}\n\n"
            "To call some of them, end your answer with a block like this one, numbered from 1. "
            "The type is one of string, number, boolean, null, object, array; a string is written "
            "as it is, anything else as JSON.\n"
            f'{_TOOLS}{_OPEN}call tool="TOOL" index="1"{_SEP}'
            f'{_OPEN}argument key="PARAMETER" type="string"{_SEP}VALUE{_close("argument")}'
            f"{_close('call')}{_close('tools')}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        written = written_calls(
            calls,
            lambda key, value, is_text: (
                f'{_OPEN}argument key="{key}" type="{_type(value, is_text)}"{_SEP}'
                f"{value}{_close('argument')}"
            ),
        )
        inner = "".join(
            f'{_OPEN}call tool="{name}" index="{number}"{_SEP}{values}{_close("call")}'
            for number, (name, values) in enumerate(written, 1)
        )
        return f"{_TOOLS}{inner}{_close('tools')}"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f"## Result of {name}\n{text}" for _, name, text in results)


def _may_be_tag(rest: str) -> bool:
    """Whether what is left of an answer is the beginning of a tag."""
    words, mark, after = rest.partition("<")
    if not _SEP.startswith(mark + after):
        return False
    name, space, _ = words.partition(" ")
    return name in _NAMES if space or mark else any(known.startswith(name) for known in _NAMES)


def _type(value: str, is_text: bool) -> str:
    """The type that a value is said to have."""
    if is_text:
        return "string"
    kinds = {"{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
    return kinds.get(value[:1], "number")
