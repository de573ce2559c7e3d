"""DeepSeek V3.2 to V4.1: Claude's tags with a mark of DeepSeek's own in each.

What sglang's and vLLM's parsers for deepseek_v32, deepseek_v4 and deepseek_v41 read. V3.2 has its
calls in `function_calls`, V4 in `tool_calls`; V4.1 has a space behind the mark, and `calls`. Some
services double the bars of the mark.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.deepseek import STOP
from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools
from acp_agent.models.dialects.xml_calls import TagReader, Tags, written_calls

_MARK = "｜DSML｜"
_WRITTEN = "tool_calls"  # as V4 writes it
_MARKS = tuple(
    (mark, names)
    for bars in (_MARK, "｜｜DSML｜｜")
    for mark, names in ((bars, ("function_calls", _WRITTEN)), (f"{bars} ", ("calls",)))
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
        whole=("", ""),
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
        # A mark with a space behind it begins like the one without.
        _, reader = max((one for one in _READERS if text.startswith(one[0])), key=_length)
        return reader.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "## Tools\n\nYou have access to these tools:\n\n"
            f"{described_json(tools)}\n\n"
            "To call some of them, end your answer with a block like this one. Write a text as it "
            'is, with string="true"; anything else as JSON, with string="false".\n'
            f'<{_MARK}{_WRITTEN}>\n<{_MARK}invoke name="TOOL">\n'
            f'<{_MARK}parameter name="PARAMETER" string="true">VALUE</{_MARK}parameter>\n'
            f"</{_MARK}invoke>\n</{_MARK}{_WRITTEN}>"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        written = written_calls(
            calls,
            lambda key, value, is_text: (
                f'<{_MARK}parameter name="{key}" string="{"true" if is_text else "false"}">'
                f"{value}</{_MARK}parameter>\n"
            ),
        )
        inner = "".join(
            f'<{_MARK}invoke name="{name}">\n{values}</{_MARK}invoke>\n' for name, values in written
        )
        return f"<{_MARK}{_WRITTEN}>\n{inner}</{_MARK}{_WRITTEN}>"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f"<tool_result>{text}</tool_result>" for _, _, text in results)


def _length(reader: tuple[str, TagReader]) -> int:
    return len(reader[0])
