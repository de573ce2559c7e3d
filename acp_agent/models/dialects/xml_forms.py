"""Forms with calls as tags: Claude's form, MiniMax M2, Qwen3-Coder, GLM."""

from __future__ import annotations

import re

from msgspec import Struct, structs

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
    match_mark,
    skip_space,
)
from acp_agent.models.dialects.json_forms import CLOSE, OPEN
from acp_agent.models.dialects.minimax_m3 import M3_CLOSE, M3_OPEN, read_m3_calls
from acp_agent.models.dialects.xml_calls import TagReader, Tags

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
# MiniCPM 5 has other names.
_FUNCTION = '<function name="'
_FUNCTION_READER = TagReader(
    Tags(
        wrappers=(),
        call=_FUNCTION,
        call_end="</function>",
        argument='<param name="',
        argument_end="</param>",
        cdata=True,
    )
)


# Grok's name and arguments are in a tag of its own.
_GROK = '<xai:function_call name="'
_GROK_READER = TagReader(
    Tags(
        wrappers=(),
        call=_GROK,
        call_end="</xai:function_call>",
        argument='<parameter name="',
        argument_end="</parameter>",
    )
)
_READERS = {_FUNCTION: _FUNCTION_READER, _GROK: _GROK_READER}


class Invoke:
    """`<function_calls><invoke name="…"><parameter name="…">…</parameter></invoke>…`."""

    openers = ("<function_calls>", '<invoke name="', *_READERS)
    bare = ""
    ends = ("</function_calls>", "</invoke>", "</function>", "</xai:function_call>")
    strays = ("</function_calls>", "</invoke>", "</parameter>", "</function>", "</param>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        readers = (reader for opener, reader in _READERS.items() if text.startswith(opener))
        return next(readers, _INVOKE_READER).read(text, tools, final=final)


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

    openers = (_MINIMAX_OPEN, M3_OPEN)
    bare = ""
    ends = (_MINIMAX_CLOSE, "</tool_call>")
    strays = (_MINIMAX_CLOSE, M3_CLOSE, "</invoke>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        if text.startswith(M3_OPEN):
            return read_m3_calls(text, tools, final=final)
        return _MINIMAX_READER.read(text, tools, final=final)


# Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5: a tag for every argument, with its value on separate
# lines. Seed-OSS has another outer tag.
#
# This is the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct. These models sometimes omit the
# outer tag, which is accepted if the tool is known.

_SEED_OPEN, _SEED_CLOSE = "<seed:tool_call>", "</seed:tool_call>"
_QWEN_CODER_READER = TagReader(
    Tags(
        wrappers=((OPEN, CLOSE), (_SEED_OPEN, _SEED_CLOSE)),
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

    openers = (OPEN, _SEED_OPEN, "<function=")
    bare = ""
    ends = (CLOSE, _SEED_CLOSE, "</function>")
    strays = (CLOSE, _SEED_CLOSE, "</function>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        return _QWEN_CODER_READER.read(text, tools, final=final)


# GLM 4.5 to 5: the tool's name, then pairs of keys and values (template of zai-org/GLM-4.6).
# Hunyuan 3 has a tag after the name, and LongCat has other tags.


class _PairTags(Struct, frozen=True):
    """The tags of a call as pairs."""

    open: str = OPEN
    close: str = CLOSE
    key: str = "<arg_key>"
    key_end: str = "</arg_key>"
    value: str = "<arg_value>"
    value_end: str = "</arg_value>"


_TAG = re.compile("(</?)")
_GLM = _PairTags()
_LONGCAT = _PairTags(*(_TAG.sub(r"\1longcat_", tag) for tag in structs.astuple(_GLM)))
_SEPARATOR = "<tool_sep>"
_NAME = re.compile(r"\s*([\w.:/-]{1,128})\s*(?=<)")
_PART_OF_NAME = re.compile(r"\s*[\w.:/-]{0,128}\s*")
_STRAY = "Only pairs of keys and values may follow the name. The call was not run; write it again."


class Glm:
    """`<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`."""

    openers = (OPEN, _LONGCAT.open)
    bare = ""
    ends = (CLOSE, _LONGCAT.close)
    strays = (CLOSE, "</arg_value>", _LONGCAT.close, "</tool_calls>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        tags = _LONGCAT if text.startswith(_LONGCAT.open) else _GLM
        name_match = _NAME.match(text, len(tags.open))
        if name_match is None:
            is_partial_name = _PART_OF_NAME.fullmatch(text, len(tags.open))
            return MORE if is_partial_name and not final else None
        at = name_match.end()
        mark = match_mark(text, at, (tags.key, tags.close, _SEPARATOR), final=final)
        if mark == _SEPARATOR:
            at = skip_space(text, at + len(_SEPARATOR))
            mark = match_mark(text, at, (tags.key, tags.close), final=final)
        if not isinstance(mark, str):
            return mark
        arguments: dict[str, object] = {}
        while mark == tags.key:
            pair = _pair(text, at, tags, final=final)
            if pair is None:
                break
            if isinstance(pair, More):
                return SURE
            key, value, at = pair
            arguments[key] = tools.convert_argument(name_match[1], key, value)
            at = skip_space(text, at)
            follows = match_mark(text, at, (tags.key, tags.close), final=final)
            if isinstance(follows, More):
                return SURE
            mark = follows or ""
        if mark == tags.close:
            call = WrittenCall(name=name_match[1], arguments=json_text.encode(arguments))
            return Block(at + len(tags.close), (call,))
        close = text.find(tags.close, at)
        if close < 0 and not final:
            return SURE
        end = len(text) if close < 0 else close
        problem = NO_END if close < 0 else _STRAY
        name = name_match[1] if name_match[1] in tools else broken_call("", "", tools).name
        invalid_call = WrittenCall(
            name=name, arguments=text[len(tags.open) : end].strip(), problem=problem
        )
        return Block(end if close < 0 else close + len(tags.close), (invalid_call,))


def _pair(
    text: str, at: int, tags: _PairTags, *, final: bool
) -> tuple[str, str, int] | More | None:
    """Return a key, its value as written, and their end, or None if there is no pair."""
    key_end = text.find(tags.key_end, at)
    if key_end < 0:
        return None if final else MORE
    start = skip_space(text, key_end + len(tags.key_end))
    mark = match_mark(text, start, (tags.value,), final=final)
    if not isinstance(mark, str):
        return mark
    start += len(tags.value)
    seek = start
    while True:
        end = text.find(tags.value_end, seek)
        if end < 0:
            return None if final else MORE
        after = end + len(tags.value_end)
        follows = match_mark(text, skip_space(text, after), (tags.key, tags.close), final=final)
        if isinstance(follows, More):
            return MORE
        if follows is not None or (final and not text[after:].strip()):
            return text[at + len(tags.key) : key_end].strip(), text[start:end], after
        seek = end + 1
