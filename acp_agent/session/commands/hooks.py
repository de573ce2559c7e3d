"""The command `/hooks`: list the hooks of the session and the files that they are from."""

from __future__ import annotations

import asyncio

from acp_agent.session.core import SessionCore
from acp_agent.session.hooks import HookSource
from acp_agent.tools.quoting import code_span, escape_markdown


async def hooks_command(core: SessionCore, source: HookSource) -> str:
    """Return the answer to `/hooks`."""
    translate = core.translate
    hook_set = await asyncio.to_thread(source.find)
    lines = [
        f"- {escape_markdown(' '.join([hook.event, hook.matcher or '*']))}: "
        f"{escape_markdown(f'{hook.label} ') if hook.label else ''}{code_span(hook.program)} "
        f"({escape_markdown(hook.source)})"
        for hook in hook_set.hooks
    ]
    lines += [
        translate("- {file} is not used until you trust it: /trust", file=code_span(item.path))
        for item in hook_set.untrusted
    ]
    lines += [
        f"- {escape_markdown(problem.path)}: {escape_markdown(translate.rendered(problem.why))}"
        for problem in hook_set.problems
    ]
    return core.clean("\n".join(lines)) or translate("There are no hooks.")
