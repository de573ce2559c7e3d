"""The parts of `acp-agent chat` that need no terminal."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from prompt_toolkit.output import ColorDepth
from rich.console import RenderableType

from acp_agent.cli.chat import questions, terminal
from acp_agent.cli.chat.completion import matching_resources, path_completions
from acp_agent.cli.chat.conversation import ChatOptions
from acp_agent.cli.chat.frontend import Answer
from acp_agent.cli.chat.history import MAX_ENTRIES, PromptHistory
from acp_agent.cli.chat.layout import toolbar
from acp_agent.cli.chat.markdown import MAX_BLOCK_LENGTH, Blocks
from acp_agent.cli.chat.mentions import (
    content_blocks,
    dropped_files,
    mention,
    mentioned_paths,
)
from acp_agent.cli.chat.questions import assign_letters
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.session_state import (
    Calls,
    SessionState,
    ShownCall,
    remove_overwritten,
    unfenced,
)
from acp_agent.cli.chat.terminal_output import FrameOutput
from acp_agent.cli.chat.transcript import Transcript
from acp_agent.cli.output import one_line, terminal_text
from acp_agent.cli.screen import diff_lines
from protocol.v1 import types as acp

CODES = re.compile(r"\x1b\[[0-9;]*m")


def split_blocks(text: str, *, size: int) -> list[str]:
    blocks = Blocks()
    result = [
        block for at in range(0, len(text), size) for block in blocks.feed(text[at : at + size])
    ]
    return [block.text for block in (*result, *blocks.close())]


STORY = """# Title
One paragraph
on two lines.

- a list
- that is loose

  with a second paragraph
- and goes on

```python
x = 1

y = 2
```
1. first
   ```sh
   ls
   ```
2. second

The end."""


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_markdown_ends_its_blocks_where_they_end_however_it_comes_in_pieces(size: int) -> None:
    assert split_blocks(STORY, size=size) == [
        "# Title",
        "One paragraph\non two lines.",
        "- a list\n- that is loose\n\n  with a second paragraph\n- and goes on",
        "```python\nx = 1\n\ny = 2\n```",
        "1. first\n   ```sh\n   ls\n   ```\n2. second",
        "The end.",
    ]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab #`~-*>1.\n|_[]()", max_size=200), st.integers(1, 20))
def test_no_character_of_a_text_is_lost_between_its_blocks(text: str, size: int) -> None:
    def bare(of: str) -> str:
        return re.sub(r"\s", "", of)

    assert bare("".join(split_blocks(text, size=size))) == bare(text)
    for block in split_blocks(text, size=size):
        Renderer("standard").markdown(block, 20)


def test_code_without_an_end_is_shown_in_parts_that_are_all_code() -> None:
    lines = [f"line {number}" for number in range(1000)]
    blocks = Blocks()
    code_blocks = list(blocks.feed("```py\n" + "\n".join(lines) + "\n"))
    assert code_blocks
    assert all(len(block.text) <= MAX_BLOCK_LENGTH + 100 for block in code_blocks)
    assert all(
        block.text.startswith("```py\n") and block.text.endswith("```") for block in code_blocks
    )
    assert [block.joined for block in code_blocks] == [False] + [True] * (len(code_blocks) - 1)
    assert "line 999" in blocks.open


def test_html_is_text_and_links_show_where_they_lead() -> None:
    output = "\n".join(
        Renderer(None).markdown("<b>bold</b> [safe](http://evil.example) ![x](http://e/x.png)", 80)
    )
    assert "<b>bold</b>" in output
    assert "http://evil.example" in output
    assert "http://e/x.png" in output


def test_characters_that_terminals_show_differently_are_unified() -> None:
    text = "👩\u200d💻 👍\U0001f3fd 🇩🇪 ❤\ufe0f می\u200cخواهم क\u094d\u200dष"
    even = "👩💻 👍 ＤＥ ❤ می\u200cخواهم क\u094d\u200dष"
    renderer = Renderer("standard")
    for lines in (renderer.text(text, 80), renderer.markdown(text, 80), [renderer.cut(text, 80)]):
        assert CODES.sub("", "\n".join(lines)) == even


def test_entities_hide_nothing_in_markdown() -> None:
    text = "a&#x202e;b &#8203; [l&#x2066;](http://x/&#x202e;) `&#x202e;` &amp; &lt;b&gt; &#27;[31m"
    output = "\n".join(Renderer("standard").markdown(f"{text}\n\n```&#x202e;\nx\n```\n", 200))
    assert not re.search("[\u202e\u2066\u200b]|\x1b(?!\\[[0-9;]*m)", output)
    assert "a\\u202eb \\u200b" in CODES.sub("", output)
    assert "& <b>" in CODES.sub("", output)


def test_no_line_is_wider_than_the_terminal() -> None:
    from rich.cells import cell_len

    text = (
        "中文字符" * 30
        + "\n\n| a | 中文 |\n|---|---|\n| "
        + "x" * 90
        + " | y |\n\n> " * 3
        + "q" * 50
    )
    for width in (12, 40, 80):
        for line in Renderer("standard").markdown(text, width):
            assert cell_len(CODES.sub("", line)) <= width


def test_control_characters_and_marks_that_reorder_text_are_written_out() -> None:
    assert terminal_text("\x1b[31m\x07\x9b\u202e\u2066\ud800\r") == (
        "\\x1b[31m\\x07\\x9b\\u202e\\u2066\\ud800"
    )
    assert terminal_text("rm\u200b \u200f\xad\U000e0041") == "rm\\u200b \\u200f\\u00ad\\U000e0041"
    assert terminal_text("می\u200cخواهم 👩\u200d💻") == "می\u200cخواهم 👩\u200d💻"
    assert one_line("a\nb\tc" + "d" * 500, 10) == "a b cdddd…"


def test_a_prompt_links_the_files_that_it_mentions(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "two words.md").write_text("2")
    (tmp_path / "pic.png").write_bytes(b"png")
    text = 'see @a.py, (@a.py) @"two words.md" me@a.py @none @pic.png.'
    assert [path.name for path in mentioned_paths(text, tmp_path)] == [
        "a.py", "two words.md", "pic.png",
    ]  # fmt: skip
    linked = content_blocks(text, tmp_path, images=False)
    assert [getattr(block, "uri", None) for block in linked] == [
        None,
        *((tmp_path / name).as_uri() for name in ("a.py", "two words.md", "pic.png")),
    ]
    picture = content_blocks(text, tmp_path, images=True)[-1]
    assert isinstance(picture, acp.ImageContent)
    assert (picture.data, picture.mime_type) == ("cG5n", "image/png")


def test_paths_are_completed_folders_first_and_hidden_files_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("")
    (tmp_path / "Some.md").write_text("")
    (tmp_path / ".env").write_text("")
    assert path_completions("s", tmp_path) == ["src/", "Some.md"]
    assert path_completions("src/a", tmp_path) == ["src/app.py"]
    assert path_completions(".e", tmp_path) == [".env"]
    assert path_completions("nowhere/x", tmp_path) == []
    assert mention("a b.md") == '@"a b.md"'


def test_files_that_are_dropped_on_the_terminal_are_known_from_pasted_text(tmp_path: Path) -> None:
    file = tmp_path / "my picture.png"
    file.write_bytes(b"")
    assert dropped_files(f"'{file}'") == [str(file)]
    assert dropped_files(str(file).replace(" ", "\\ ") + " ") == [str(file)]
    for pasted in ("", "my picture.png", "/no/such/file", f"look at {file}", "it's", "a\nb"):
        assert dropped_files(pasted) == []


def test_history_keeps_the_last_entries_of_chats_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history"
    first, second = (
        PromptHistory(path, lambda text: text.replace("key", "[secret]")) for _ in "ab"
    )
    first.append("my key\nin two lines")
    second.append("中文")
    path.open("ab").write(b"broken {\n\xff\n")
    assert first.load() == ["my [secret]\nin two lines", "中文"]
    for number in range(2 * MAX_ENTRIES):
        first.append(str(number))
    assert second.load()[-2:] == [str(2 * MAX_ENTRIES - 2), str(2 * MAX_ENTRIES - 1)]
    assert len(path.read_bytes().splitlines()) == MAX_ENTRIES
    assert path.stat().st_mode & 0o777 == 0o600
    assert PromptHistory(Path("/proc/none/x"), str).load() == []


def test_every_permission_option_has_a_letter_of_its_own() -> None:
    kinds: list[acp.PermissionOptionKind] = [
        "allow_once", "allow_once", "allow_always", "reject_once", "reject_always", "allow_always",
    ]  # fmt: skip
    options = [
        acp.PermissionOption(option_id=str(i), name="", kind=kind) for i, kind in enumerate(kinds)
    ]
    assigned = assign_letters(options)
    assert [option.option_id for option in assigned.values()] == list("012345")
    assert list(assigned) == ["y", "1", "a", "n", "d", "2"]


def test_the_toolbar_shows_no_cost_as_zero_that_is_not() -> None:
    state = SessionState()
    state.update(acp.UsageUpdate(used=50, size=200, cost=acp.Cost(amount=3e-5, currency="USD")))
    assert "0.00003 USD" in toolbar(state, 80, waiting=0)


def test_a_narrow_toolbar_drops_the_least_important_parts() -> None:
    state = SessionState()
    state.update(acp.UsageUpdate(used=50, size=200, cost=acp.Cost(amount=1.5, currency="USD")))
    entry = acp.PlanEntry(content="Write it", priority="high", status="in_progress")
    state.update(acp.Plan(entries=[entry]))
    state.modes = acp.SessionModeState(
        current_mode_id="a", available_modes=[acp.SessionMode(id="a", name="Ask")]
    )
    wide = toolbar(state, 80, waiting=2)
    assert wide.split("|")[0].strip() == "Ask"
    for part in ("2 queued", "plan 0/1", "Write it", "context 25%", "1.50 USD"):
        assert part in wide
    narrow = toolbar(state, 20, waiting=2)
    assert narrow.rstrip() == " Ask | 2 queued"
    assert len(narrow) == 20


def test_a_calls_output_is_limited_and_shows_overwritten_lines_once() -> None:
    calls = Calls()
    data = {"terminal_output": {"data": "x" * 30_000 + "\n"}}
    piece = acp.ToolCallProgress(tool_call_id="c", meta=data)
    call = [calls.update(piece) for _ in range(5)][-1]
    assert len(call.output) == 64_000
    assert remove_overwritten("10%\r50%\r100%\r\ndone\n") == "100%\ndone\n"
    assert unfenced("```console\na\nb\n```") == "a\nb"
    assert unfenced("a ``` b") == "a ``` b"


def test_only_line_feeds_end_lines_of_a_change_and_of_an_output() -> None:
    part = acp.Diff(path="/w/a", old_text="a\x0cb\r\nsame", new_text="a\u2028b\u0085\x0bc\nsame\n")
    assert [line for line, _ in diff_lines(part, Path("/w"))][2:] == [
        "-a\x0cb", "+a\u2028b\x85\x0bc", " same",
    ]  # fmt: skip
    output = acp.Content(content=acp.TextContent(text="a\u2028b\x1cc\n\nd\n"))
    call = Calls().update(acp.ToolCall(tool_call_id="c", title="t", content=[output]))
    assert call.output_lines() == ["a\\u2028b\\x1cc", "", "d"]


def test_a_diff_of_a_long_file_shows_the_change_with_its_line_numbers_at_once() -> None:
    old = [f"line {number}" for number in range(200_000)]
    new = [*old[:150_000], "new", *old[150_001:]]
    part = acp.Diff(path="/w/a.txt", old_text="\n".join(old), new_text="\n".join(new))
    assert [line for line, _ in diff_lines(part, Path("/w"))] == [
        "a.txt", "@@ -149999,5 +149999,5 @@", " line 149998", " line 149999",
        "-line 150000", "+new", " line 150001", " line 150002",
    ]  # fmt: skip
    reversed_diff = acp.Diff(
        path="/w/../etc/x", old_text="\n".join(old), new_text="\n".join(reversed(old))
    )
    lines = [line for line, _ in diff_lines(reversed_diff, Path("/w"))]
    assert lines[0] == "/w/../etc/x"
    assert lines[-1] == "... 399941 more lines"


def test_no_other_command_imports_modules_of_the_chat() -> None:
    code = (
        "import sys; from acp_agent.cli.main import main; main(['version']); main(['--help']); "
        "import acp_agent.cli.run, acp_agent.cli.serve, acp_agent.server.stdio; "
        "sys.exit(any(name in sys.modules for name in ('prompt_toolkit', 'rich', 'markdown_it')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


def test_a_flood_of_calls_plans_and_thoughts_is_laid_out_with_less_care_until_the_next_frame(
    tmp_path: Path,
) -> None:
    committed: list[str] = []
    laid_out: list[object] = []

    class Counting(Renderer):
        def _render(self, renderable: RenderableType, width: int) -> list[str]:
            laid_out.append(renderable)
            return super()._render(renderable, width)

    calls = Calls()
    transcript = Transcript(
        Counting("standard"),
        calls=lambda: calls,
        width=lambda: 80,
        commit=committed.extend,
        cwd=tmp_path,
    )
    for number in range(1000):
        call = acp.ToolCall(tool_call_id=str(number), title=f"Call {number}", status="completed")
        calls.update(call)
        entry = acp.PlanEntry(content=f"task {number}", priority="high", status="pending")
        thought = acp.TextContent(text=f"thought {number}")
        for update in (
            call,
            acp.Plan(entries=[entry] * 20),
            acp.AgentThoughtChunk(content=thought),
            acp.AgentMessageChunk(content=acp.TextContent(text=f"word {number}\n\n")),
        ):
            transcript.show(update)
    transcript.finish()
    assert len(laid_out) < 300
    text = CODES.sub("", "\n".join(committed))
    for expected in ("Call 999", "plan 0/20", "thought 999", "word 999"):
        assert expected in text
    transcript.live(10)  # a frame
    laid_out.clear()
    transcript.say("with care again", "bad")
    assert laid_out


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_resources_are_completed_once_something_follows_the_mark() -> None:
    resources = [("@memo:memo://one", "One"), ('@memo:"memo://two words"', "Two"), ("@db:x", "X")]
    assert matching_resources("@", resources) == []
    assert matching_resources("@ME", resources) == resources[:2]
    assert matching_resources("@memo:memo", resources) == resources[:1]
    assert matching_resources('@"me', resources) == []


async def test_a_permission_takes_no_keys_while_the_user_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(questions, "time", clock)
    options = ChatOptions(command=["none"], cwd=tmp_path)
    chat = terminal.TerminalChat(options, PromptHistory(None, str), io.StringIO())
    option = acp.PermissionOption(option_id="o", name="Sure", kind="allow_once")
    chat.questions.key_pressed()
    question = asyncio.create_task(chat.frontend.ask_permission(ShownCall("c"), [option], ""))
    await asyncio.sleep(0)
    for _ in range(3):
        clock.now += 0.4
        chat.press_letter("y")
        chat.questions.key_pressed()
        chat.questions.update()
        await asyncio.sleep(0)
        assert not question.done()
    clock.now += 0.6
    chat.questions.update()
    for letter in "/memory":
        chat.press_letter(letter)
    assert chat.questions.waiting is not None
    clock.now += 0.6
    chat.press_letter("y")
    assert chat.questions.active is None  # the next key is for the prompt already
    assert await question == Answer(option)


def test_a_frame_is_written_in_one_piece() -> None:
    output_pieces: list[str] = []

    class Recorder(io.StringIO):
        def write(self, text: str) -> int:
            output_pieces.append(text)
            return len(text)

    output = FrameOutput(Recorder(), term="xterm", depth=ColorDepth.DEPTH_4_BIT)
    output.hold()
    for piece in ("erased", "drawn"):
        output.write_raw(piece)
        output.flush()
    assert output_pieces == []
    output.release()
    assert output_pieces == ["eraseddrawn"]
