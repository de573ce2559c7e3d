"""Forms with calls between control tokens: DeepSeek V3, R1 and V3.1, and Kimi K2."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from msgspec import Struct

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    NO_END,
    SURE,
    Block,
    CutError,
    More,
    Tools,
    Verdict,
    WrittenCall,
    broken_call,
    expect_mark,
    marks_pattern,
    skip_space,
    strip_partial_mark,
)
from acp_agent.models.dialects.json_calls import read_arguments
from acp_agent.models.dialects.xml_calls import TagReader, Tags

_FENCES = ("```json", "```")
_BAD = "The arguments of the call are not valid JSON. Write it again."


class Tokens(Struct, frozen=True, kw_only=True):
    """The tokens of one form, and a function that extracts the tool's name.

    `stop` is the token at the end of an answer, which some servers pass on. `arguments` are the
    tokens of which one separates the name from the arguments. `stray_tokens` are tokens of other
    spellings, which are removed from the text between calls.
    """

    open: tuple[str, ...]
    close: tuple[str, ...]
    call: str
    call_end: str
    arguments: tuple[str, ...]
    stop: str
    name: Callable[[str], str]
    stray_tokens: tuple[str, ...] = ()


_STEP_CALL = '<steptml:invoke name="'
_STEP_READER = TagReader(
    Tags(
        wrappers=(),
        call=_STEP_CALL,
        call_end="</steptml:invoke>",
        argument='<steptml:parameter name="',
        argument_end="</steptml:parameter>",
        control=True,
    )
)


class TokenReader:
    """Reads the calls of one form. Control tokens never occur in text, so every match is a call."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        marks = (*tokens.open, *tokens.close, tokens.call, tokens.call_end, *tokens.arguments)
        marks += (tokens.stop, *tokens.stray_tokens)
        self._separator = marks_pattern(tokens.arguments)
        self._all_marks = marks
        self._marks = marks_pattern(marks)

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form.read`."""
        tokens = self._tokens
        opener = next((mark for mark in tokens.open if text.startswith(mark)), "")
        at = skip_space(text, len(opener))
        content: list[WrittenCall | str] = []
        try:
            while True:
                mark = expect_mark(text, at, (tokens.call, *tokens.close), final=final)
                if mark == tokens.call:
                    call, at = self._read_call(text, at, tools, final=final)
                    content.append(call)
                    at = skip_space(text, at)
                elif mark is not None:
                    return Block(at + len(mark), tuple(content))
                elif at == len(text) or not opener:
                    return Block(at, tuple(content))
                else:
                    # Text between calls, or after the last call of an unclosed section.
                    marks = (tokens.call, *tokens.close)
                    positions = [
                        position
                        for candidate in marks
                        if (position := text.find(candidate, at)) >= 0
                    ]
                    if not positions and not final:
                        return SURE
                    end = min(positions, default=len(text))
                    between = (
                        text[at:end]
                        if positions
                        else strip_partial_mark(text[at:], self._all_marks)
                    )
                    if between.strip():
                        content.append(self._marks.sub("", between))
                    at = end
        except CutError:
            return SURE

    def _read_call(
        self, text: str, at: int, tools: Tools, *, final: bool
    ) -> tuple[WrittenCall | str, int]:
        """Return one call and its end."""
        tokens = self._tokens
        start = at + len(tokens.call)
        separator = self._separator.search(text, start)
        stop = text.find(tokens.call_end, start)
        if separator is None or 0 <= stop < separator.start():
            return self._broken_call(text, start, stop, tools, final=final)
        if expect_mark(text, skip_space(text, separator.end()), (_STEP_CALL,), final=final):
            return self._tags(text, skip_space(text, separator.end()), tools, final=final)
        name, at = self._name(text, start, separator, final=final)
        fence = expect_mark(text, at, _FENCES, final=final)
        if fence == "```" and not final and "```json".startswith(text[at:]):
            raise CutError
        if fence is not None:
            at = skip_space(text, at + len(fence))
        if expect_mark(text, at, (tokens.call_end,), final=final) is not None:
            return read_arguments(name, ""), at + len(tokens.call_end)
        end = json_text.value_end(text, at) if text[at : at + 1] == "{" else None
        if end is None:
            if text[at : at + 1] in {"", "{"}:
                return self._broken_call(text, start, -1, tools, final=final)
            return self._broken_call(
                text, start, text.find(tokens.call_end, at), tools, final=final
            )
        close = skip_space(text, end)
        if fence is not None and expect_mark(text, close, ("```",), final=final) is not None:
            close = skip_space(text, close + len("```"))
        if expect_mark(text, close, (tokens.call_end,), final=final) is not None:
            return read_arguments(name, text[at:end]), close + len(tokens.call_end)
        if final and close == len(text):
            return read_arguments(name, text[at:end]), close
        return self._broken_call(text, start, text.find(tokens.call_end, at), tools, final=final)

    def _tags(
        self, text: str, at: int, tools: Tools, *, final: bool
    ) -> tuple[WrittenCall | str, int]:
        """Return a call of Step 3, which is written as tags, and its end."""
        verdict = _STEP_READER.read(text[at:], tools, final=final)
        if isinstance(verdict, More):
            raise CutError
        if verdict is None or not verdict.content:
            return "", len(text)
        end = skip_space(text, at + verdict.end)
        if expect_mark(text, end, (self._tokens.call_end,), final=final) is not None:
            end += len(self._tokens.call_end)
        return verdict.content[0], end

    def _name(
        self, text: str, start: int, separator: re.Match[str], *, final: bool
    ) -> tuple[str, int]:
        """Return the tool's name and the start of the arguments."""
        head = text[start : separator.start()].strip()
        at = skip_space(text, separator.end())
        if head != "function" or self._tokens.name(head) != head:
            return self._tokens.name(head), at
        # DeepSeek V3 and R1: the kind of tool, then a line with its name, then fenced arguments.
        line = text.find("\n", at)
        if at == len(text) or (line < 0 and text[at] != "{"):
            if not final:
                raise CutError
            line = len(text)
        if text[at : at + 1] == "{":
            return head, at
        return text[at:line].strip(), skip_space(text, line)

    def _broken_call(
        self, text: str, start: int, stop: int, tools: Tools, *, final: bool
    ) -> tuple[WrittenCall, int]:
        """Return an unreadable call, up to its end token or the end of the text."""
        if stop < 0 and not final:
            raise CutError
        end = len(text) if stop < 0 else stop
        head = self._separator.split(text[start:end], 1)[0].strip()
        name = self._tokens.name(head)
        call = broken_call(NO_END if stop < 0 else _BAD, text[start:end], tools)
        if name in tools:
            call = WrittenCall(name=name, arguments=call.arguments, problem=call.problem)
        return call, end if stop < 0 else stop + len(self._tokens.call_end)


# DeepSeek V3, R1 and V3.1: control tokens around each call and around all calls.
#
# Calls are written in the short form of DeepSeek-V3.1's template. The template of DeepSeek-V3-0324
# has the kind of the tool before its name, and fenced arguments. Distilled models write the tokens
# with other bars and spaces, and Step 3 has a call as tags between tokens with underscores.

_DEEPSEEK_BEGIN, _DEEPSEEK_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_DEEPSEEK_CALL, _DEEPSEEK_CALL_END, _SEP = (
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
)
STOP = "<｜end▁of▁sentence｜>"


def _spellings(token: str) -> tuple[str, ...]:
    """Return the ways in which a token is written, the token itself first."""
    return tuple(
        token.replace("｜", bar).replace("▁", space)
        for bar in "｜|"
        for space in ("▁", "_", " ", "\\_")
    )


def _deepseek_readers() -> dict[str, TokenReader]:
    """Return the reader of each opener."""
    tokens = (_DEEPSEEK_BEGIN, _DEEPSEEK_END, _DEEPSEEK_CALL, _DEEPSEEK_CALL_END, _SEP)
    readers: dict[str, TokenReader] = {}
    for opener, closer, call, call_end, separator in zip(*map(_spellings, tokens), strict=True):
        readers[opener] = TokenReader(
            Tokens(
                open=(opener,),
                close=(closer,),
                call=call,
                call_end=call_end,
                arguments=(separator,),
                stop=STOP,
                name=lambda head: head,
                stray_tokens=tuple(itertools.chain(*map(_spellings, tokens))),
            )
        )
        if call != _KIMI_CALL:  # alone, it begins a call of Kimi
            readers[call] = readers[opener]
    return readers


_KIMI_CALL = "<|tool_call_begin|>"
_DEEPSEEK_READERS = _deepseek_readers()


class DeepSeek:
    """`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>…`."""

    openers = tuple(_DEEPSEEK_READERS)
    bare = ""
    ends = (*_spellings(_DEEPSEEK_END), *_spellings(_DEEPSEEK_CALL_END))
    strays = (*(end for end in ends if end != "<|tool_call_end|>"), *_spellings(_SEP), STOP)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        readers = _DEEPSEEK_READERS.items()
        reader = next(reader for opener, reader in readers if text.startswith(opener))
        return reader.read(text, tools, final=final)


# Kimi K2: control tokens, with the tool's name in an id.
#
# This is the chat template of moonshotai/Kimi-K2-Instruct.

_KIMI_BEGIN, _KIMI_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_KIMI_CALL_END = "<|tool_call_end|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_STOP = "<|im_end|>"
_ID = re.compile(r"(?:functions\.)?(.*?)(?::\d+)?", re.DOTALL)


def _name(call_id: str) -> str:
    """Return the tool's name; `functions.read:0` is the conversation's first call, of `read`."""
    match = _ID.fullmatch(call_id)
    return match[1] if match else call_id


_KIMI_READER = TokenReader(
    Tokens(
        # The model sometimes writes the section's tokens in the singular.
        open=(_KIMI_BEGIN, "<|tool_call_section_begin|>"),
        close=(_KIMI_END, "<|tool_call_section_end|>"),
        call=_KIMI_CALL,
        call_end=_KIMI_CALL_END,
        arguments=(_ARGUMENTS,),
        stop=_STOP,
        name=_name,
    )
)


class Kimi:
    """`<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument…`."""

    openers = (_KIMI_BEGIN, "<|tool_call_section_begin|>", _KIMI_CALL)
    bare = ""
    ends = (_KIMI_END, "<|tool_call_section_end|>", _KIMI_CALL_END)
    strays = (_KIMI_END, "<|tool_call_section_end|>", _KIMI_CALL_END, _ARGUMENTS, _STOP)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        return _KIMI_READER.read(text, tools, final=final)
