"""The keys of `acp-agent chat`, pressed in a real terminal with the real agent."""

from __future__ import annotations

import sys
from pathlib import Path

from acp_agent.cli.chat.completion import best_matches
from tests.cli.chat_person import READY, quit_chat
from tests.extensions.mcp_session import PROGRAM
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.terminal_screen import CTRL_C, ENTER, ESCAPE, TAB, terminal

DEMO = ("chat", "--model", "demo/demo")
CTRL_R, SHIFT_TAB = "\x12", f"{ESCAPE}[Z"


async def test_escape_cancels_the_turn_and_ctrl_c_quits_only_when_pressed_twice(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("The first words ", Stall(), "never said"))
    async with terminal(home, workspace_repo, "chat", environ=model_server.environ()) as person:
        await person.see(READY)
        person.type("begin" + ENTER)
        await person.see("The first words", "Esc cancels")
        person.type(ESCAPE)
        await person.see("The turn was cancelled.")
        await person.miss("Working")
        person.type(CTRL_C)
        await person.see("Press Ctrl-C again to quit.")
        assert person.process.returncode is None
        person.type(CTRL_C)
        assert await person.status() == 0


async def test_shift_tab_enters_the_mode_that_it_stops_at_and_no_other(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO) as person:
        await person.see(READY, "Ask |")
        person.type(SHIFT_TAB * 2)
        await person.see("Mode: Plan")
        await person.see("Plan |")
        person.type("/mode" + ENTER)  # the agent has one, too
        await person.see("> Plan *", "arrows select")
        person.type(ESCAPE)
        await person.miss("arrows select")
        await quit_chat(person)
    assert person.raw.count(b"Accept edits |") == 0


async def test_ctrl_r_finds_what_was_typed_before(home: Path, workspace_repo: Path) -> None:
    async with terminal(home, workspace_repo, *DEMO) as person:
        await person.see(READY)
        for ended, prompt in enumerate(("read README.md", "read greeting.py"), 1):
            person.type(prompt + ENTER)
            await person.count("Done.", ended)
            await person.miss("Working")
        person.type(CTRL_R + "READ")
        await person.see("READ")
        person.type(ENTER)
        await person.see_row("> read README.md")
        person.type(CTRL_C)
        await quit_chat(person)


async def test_a_mention_finds_a_new_file_deep_in_the_tree_by_some_of_its_letters(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO) as person:
        await person.see(READY)
        deep = workspace_repo / "src" / "payments" / "gateway"
        deep.mkdir(parents=True)
        (deep / "stripe_client.py").write_text("")
        person.type("look at @paystrcli")
        await person.see_row(" src/payments/gateway/stripe_client.py")
        person.type(TAB)
        await person.see_row("> look at @src/payments/gateway/stripe_client.py")
        person.type(CTRL_C)
        await quit_chat(person)


async def test_a_resource_of_a_server_is_completed_and_attached(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    (home / "acp-agent").mkdir(exist_ok=True)
    (home / "acp-agent" / "config.toml").write_text(
        f'[mcp_servers.memo]\ncommand = "{sys.executable}"\nargs = ["-S", "{PROGRAM}", "prompts"]\n'
    )
    model_server.otherwise = answer("Seen.")
    async with terminal(home, workspace_repo, "chat", environ=model_server.environ()) as person:
        await person.see(READY)
        person.type("hello" + ENTER)  # waits for the server
        await person.see("Seen.")
        await person.miss("Working")
        person.type("compare @mem")
        await person.see_row(" @memo:memo://one  One")
        person.type(TAB)
        await person.see_row("> compare @memo:memo://one")
        person.type(ENTER * 2)  # picks, then sends
        await person.see("> compare @memo:memo://one Seen.")
        await person.miss("Working")
        await quit_chat(person)
    assert any(b"the text of memo://one" in request.body for request in model_server.requests)


def test_paths_match_best_in_their_last_part_then_without_gaps_then_with() -> None:
    files = ["app/tests/util.py", "src/app.py", "a/package/p.py", "lib/other.py", ".cache/app.py"]
    assert best_matches("app", files) == [
        "app/",
        "src/app.py",
        "app/tests/",
        "app/tests/util.py",
        "a/package/p.py",
    ]
    assert best_matches("SRC/a", files) == ["src/app.py"]
    assert best_matches(".cache/a", files) == [".cache/app.py"]
    assert best_matches("zzz", files) == []


async def test_the_chat_starts_with_the_prompt_of_the_command_line(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO, "read", "README.md") as person:
        await person.see(READY, "> read README.md", "✔ Read README.md", "Done.")
        await person.miss("Working")
        await quit_chat(person)


async def test_a_rejection_tells_the_model_what_to_do_instead(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    touch = Call("shell", {"command": "touch goodbye.txt"})
    model_server.add(answer(touch), answer("I say Howdy then."))
    async with terminal(home, workspace_repo, "chat", environ=model_server.environ()) as person:
        await person.see(READY)
        person.type("make a file" + ENTER)
        await person.see("[i] reject and say what to do instead")
        person.type("i")
        await person.see("What should the agent do instead?")
        person.type(ESCAPE)
        await person.see("[i] reject and say what to do instead")  # it is asked again
        person.type("i")
        await person.see("What should the agent do instead?")
        person.type("say Howdy" + ENTER)
        await person.see("I say Howdy then.")
        await person.miss("Working")
        await quit_chat(person)
    assert "say Howdy" in model_server.requests[1].body.decode()
    assert not (workspace_repo / "goodbye.txt").exists()


async def test_line_by_line_a_reason_follows_the_letter_and_ctrl_c_quits_only_when_pressed_twice(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    touch = Call("shell", {"command": "touch goodbye.txt"})
    model_server.add(answer(touch), answer("I say Howdy then."))
    variables = model_server.environ()
    async with terminal(home, workspace_repo, "chat", "--plain", environ=variables) as person:
        await person.see_row(">")
        person.type("make a file" + ENTER)
        await person.see("You can add a reason after the letter of a rejection.")
        person.type("n say Howdy" + ENTER)
        await person.see("I say Howdy then.")
        await person.see_row(">")
        person.type(CTRL_C)
        await person.see("Press Ctrl-C again to quit.")
        person.type(CTRL_C)
        assert await person.status() == 0
    assert "say Howdy" in model_server.requests[1].body.decode()


async def test_the_point_to_rewind_to_is_picked_from_a_list(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO) as person:
        await person.see(READY)
        person.type("replace Hello with Goodbye in greeting.py" + ENTER)
        await person.see("[y] Allow once")
        person.type("y")
        await person.see("This is what came back")  # the turn goes on after the call
        await person.miss("Working")
        assert "Goodbye" in (workspace_repo / "greeting.py").read_text()
        person.type("/rewind" + ENTER)
        await person.see("Go back to before", "1: “replace Hello with Goodbye")
        person.type(ENTER)
        await person.see("Conversation and files")
        person.type(ENTER)
        await person.see("The conversation was rewound to before 1")
        assert "Hello" in (workspace_repo / "greeting.py").read_text()
        await quit_chat(person)


async def test_long_output_opens_in_the_pager(home: Path, workspace_repo: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(200))
    (workspace_repo / "long.txt").write_text(text)
    pager = workspace_repo / "pager.py"
    pager.write_text(
        "import sys; print('PAGED', len(open(sys.argv[1]).readlines()) > 190); input()"
    )
    variables = {"PAGER": f"python3 {pager}"}
    async with terminal(home, workspace_repo, *DEMO, environ=variables) as person:
        await person.see(READY)
        person.type("read long.txt" + ENTER)
        await person.see("Done.")
        await person.miss("Working")
        person.type("/output" + ENTER)
        await person.see("PAGED True")
        person.type(ENTER)
        await person.see_row(">")
        await quit_chat(person)
