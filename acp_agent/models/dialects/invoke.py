"""The tags of Claude's own form, which other models learnt from it."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.signatures import described_functions
from acp_agent.models.dialects.tools import Tools
from acp_agent.models.dialects.xml_calls import TagReader, Tags, written_calls

_READER = TagReader(
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
        return _READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        functions = described_functions(tools, "<function>", "</function>")
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
    """Calls as `invoke` tags, a line each and one for each argument."""
    written = written_calls(
        calls, lambda key, value, _: f'<parameter name="{key}">{value}</parameter>\n'
    )
    return "".join(f'<invoke name="{name}">\n{values}</invoke>\n' for name, values in written)
