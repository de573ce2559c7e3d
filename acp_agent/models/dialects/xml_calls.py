"""Read calls written as tags, with a tag for every argument and its value as bare text.

These forms do not escape values, so a value may contain such tags. A value ends only at a closing
tag that is followed by text that is allowed there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    MAX_TAG_LENGTH,
    MORE,
    NO_END,
    SURE,
    Block,
    CutError,
    Tools,
    Verdict,
    WrittenCall,
    broken_call,
    expect_mark,
    skip_space,
    strip_partial_mark,
)
from acp_agent.models.dialects.json_calls import read_arguments

_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_STRAY = "There is text between the arguments of the call: it was not run. Write it again."


class Tags(Struct, frozen=True, kw_only=True):
    """The tags of one form.

    Attributes:
        wrappers: the opening and closing tags around all calls of an answer.
        call: the beginning of the tag that opens a call, up to the name.
        argument: the beginning of the tag that opens an argument, up to the name.
        quoted: whether names are in quotation marks.
        framed: whether values are on separate lines.
        json_tags: the tags around arguments that are one JSON object; None if the form has none.
        control: whether the tags are control tokens, so that their content is always a call.
        marks: texts that are removed between calls.
        cdata: whether a value may be a CDATA section.
    """

    wrappers: tuple[tuple[str, str], ...]
    call: str
    call_end: str
    argument: str
    argument_end: str
    quoted: bool = True
    framed: bool = False
    tag_end: str = ">"
    json_tags: tuple[str, str] | None = None
    control: bool = False
    marks: tuple[str, ...] = ()
    cdata: bool = False


class TagReader:
    """Reads the calls of one form."""

    def __init__(self, tags: Tags) -> None:
        self._tags = tags
        self._marks = re.compile("|".join(map(re.escape, (tags.call_end, *tags.marks))))
        name = r'([^"<>\s]{1,128})"' if tags.quoted else r'"?([^"<>\s]{1,128})"?'
        attributes = r'([^<>"]*(?:"[^"<>]*"[^<>"]*)*)' if tags.quoted else r"(\s*)"
        attributes += re.escape(tags.tag_end)
        self._call = re.compile(re.escape(tags.call) + name + attributes)
        self._argument = re.compile(re.escape(tags.argument) + name + attributes)

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form.read`."""
        at, closer = 0, ""
        for opener, end in self._tags.wrappers:
            if text.startswith(opener):
                at, closer = skip_space(text, len(opener)), end
        content: list[WrittenCall | str] = []
        sure = False
        try:
            while True:
                if closer and content and expect_mark(text, at, (closer,), final=final):
                    return Block(at + len(closer), tuple(content))
                if not expect_mark(text, at, (self._tags.call,), final=final):
                    if not content:
                        return Block(at, ()) if self._tags.control and closer else None
                    # Other content between calls is text. Without a wrapper, the calls end here.
                    later = self._next_position(text, at, closer, final=final)
                    between = text[at:later]
                    if closer and later == len(text):
                        between = strip_partial_mark(between, (closer, self._tags.call))
                    if between.strip():
                        content.append(self._marks.sub("", between))
                    if later == len(text) or not closer:
                        return Block(later, tuple(content))
                    at = later
                    continue
                opening = self._match_tag(self._call, text, at, final=final)
                if opening is None:
                    return self._no_call(text, at, content, closer, final=final)
                is_known = self._tags.control or opening[1] in tools
                if not closer and not content and not is_known:
                    return None
                sure = True
                call, at = self._read_call(text, opening, tools, final=final)
                content.append(call)
                if not closer:
                    return Block(at, tuple(content))
                at = skip_space(text, at)
                if final and at == len(text):
                    return Block(at, tuple(content))
        except CutError:
            return SURE if sure else MORE

    def _no_call(
        self, text: str, at: int, content: Sequence[WrittenCall | str], closer: str, *, final: bool
    ) -> Verdict:
        """Return the verdict for text before a tag that should open a call but does not."""
        control = self._tags.control
        short = len(text) - at < MAX_TAG_LENGTH
        if control and final and short and self._tags.tag_end not in text[at:]:
            return Block(len(text), tuple(content))  # the answer ends with an incomplete tag
        if control and not content:
            return Block(at + (0 if closer else len(self._tags.call)), ())
        return Block(at, tuple(content)) if content else None

    def _read_call(
        self, text: str, opening: re.Match[str], tools: Tools, *, final: bool
    ) -> tuple[WrittenCall, int]:
        """Return one call and its end."""
        tags, name = self._tags, opening[1]
        arguments: dict[str, object] = {}
        at = skip_space(text, opening.end())
        if tags.json_tags is not None and expect_mark(
            text, at, (tags.json_tags[0] + "{",), final=final
        ):
            return self._read_json_call(text, opening, at, tools, tags.json_tags, final=final)
        while True:
            if expect_mark(text, at, (tags.call_end,), final=final):
                return (
                    WrittenCall(name=name, arguments=json_text.encode(arguments)),
                    at + len(tags.call_end),
                )
            argument = None
            if expect_mark(text, at, (tags.argument,), final=final):
                argument = self._match_tag(self._argument, text, at, final=final)
            if argument is None:
                end = text.find(tags.call_end, at)
                if end < 0 and not final:
                    raise CutError
                problem = _STRAY if end >= 0 else NO_END
                end = len(text) if end < 0 else end + len(tags.call_end)
                return broken_call(problem, text[opening.start() : end], tools), end
            value_end, at = self._value(text, argument.end(), final=final)
            if value_end < 0:
                return broken_call(NO_END, text[opening.start() :], tools), len(text)
            value = text[argument.end() : value_end]
            if tags.framed:
                inner = value.removeprefix("\n")
                # Seed-OSS writes none around a value, so one at the end of lines is part of them.
                is_framed = inner != value or "\n" not in value[:-1]
                value = inner.removesuffix("\n") if is_framed else inner
            if tags.cdata and value.startswith(_CDATA) and value.endswith(_CDATA_END):
                value = value[len(_CDATA) : -len(_CDATA_END)]
            arguments[argument[1]] = _value(tools, name, argument, value)

    def _read_json_call(
        self,
        text: str,
        opening: re.Match[str],
        at: int,
        tools: Tools,
        json_tags: tuple[str, str],
        *,
        final: bool,
    ) -> tuple[WrittenCall, int]:
        """Return a call whose arguments are one JSON object, and its end."""
        json_start = at + len(json_tags[0])
        end = json_text.value_end(text, json_start)
        if end is None:
            if not final:
                raise CutError
            return broken_call(NO_END, text[opening.start() :], tools), len(text)
        follows = skip_space(text, end)
        for mark in filter(None, (json_tags[1], self._tags.call_end)):
            if final and follows == len(text):
                break
            if not expect_mark(text, follows, (mark,), final=final):
                close = text.find(self._tags.call_end, follows)
                if close < 0 and not final:
                    raise CutError
                problem = _STRAY if close >= 0 else NO_END
                close = len(text) if close < 0 else close + len(self._tags.call_end)
                return broken_call(problem, text[opening.start() : close], tools), close
            follows = skip_space(text, follows + len(mark))
        call = read_arguments(opening[1], text[json_start:end])
        return call, follows

    def _value(self, text: str, start: int, *, final: bool) -> tuple[int, int]:
        """Return the end of a value and the start of the text after it; -1 if it has no end."""
        tags = self._tags
        at = start
        while True:
            end = text.find(tags.argument_end, at)
            if end < 0:
                if not final:
                    raise CutError
                return self._last_value(text, start)
            follows = skip_space(text, end + len(tags.argument_end))
            if final and follows == len(text):
                return end, follows
            if expect_mark(text, follows, (tags.argument, tags.call_end), final=final):
                return end, follows
            at = end + 1

    def _last_value(self, text: str, start: int) -> tuple[int, int]:
        """Return the end of a value without its tag: all other tags follow, each on its line."""
        tags = self._tags
        for _, closer in tags.wrappers if tags.framed else ():
            ending = f"\n{tags.call_end}\n{closer}"
            end = len(text.rstrip()) - len(ending)
            if end >= start and text.startswith(ending, end):
                return end + 1, end + 1
        return -1, len(text)

    def _next_position(self, text: str, at: int, closer: str, *, final: bool) -> int:
        """Return where the next call or the end of the wrapper begins."""
        if not closer:
            return at
        positions = [
            position for mark in (self._tags.call, closer) if (position := text.find(mark, at)) >= 0
        ]
        if not positions and not final:
            raise CutError
        return min(positions, default=len(text))

    def _match_tag(
        self, tag: re.Pattern[str], text: str, at: int, *, final: bool
    ) -> re.Match[str] | None:
        match = tag.match(text, at, at + MAX_TAG_LENGTH)
        short = len(text) - at < MAX_TAG_LENGTH and self._tags.tag_end not in text[at:]
        if match is None and short and not final:
            raise CutError
        return match


def _value(tools: Tools, name: str, argument: re.Match[str], text: str) -> object:
    if 'string="true"' in argument[2] or 'type="string"' in argument[2]:
        return text
    if 'string="false"' in argument[2] or 'type="' in argument[2]:
        value = json_text.decode(text)
        return text if value is json_text.NOTHING else value
    return tools.convert_argument(name, argument[1], text)
