"""What a folder brings along is not used before the user trusts it, and is asked about once."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from acp_agent.elicitation import Response
from acp_agent.events import NoticeShown, ToolCalled, ToolEnded
from tests.session.agent_and_skill import write_agent, write_skill
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import open_desk, presses
from tests.support.waiting import until


def tools(server: ModelServer, request: int = -1) -> set[str]:
    return {tool["function"]["name"] for tool in server.requests[request].json["tools"]}


@pytest.fixture
def brings(tmp_path: Path) -> Path:
    """A project with a skill and an agent, below a folder with instructions."""
    project = tmp_path / "project"
    project.mkdir()
    write_skill(project, "model: openai/blind")
    write_agent(project)
    (tmp_path / "AGENTS.md").write_text("Speak like a pirate.")
    return project


async def test_files_of_a_folder_are_used_only_after_the_user_trusts_it(
    tmp_path: Path, model_server: ModelServer, brings: Path
) -> None:
    # One of each is called review, too.
    config = "bundled_skills = false\nbundled_agents = false\n"
    async with open_desk(tmp_path, model_server, config=config, trusted=False) as desk:
        desk.editor.decide = presses("reject_always")
        for _ in range(2):
            model_server.add(answer("Hello."))
            await desk.say("Hello")
        assert not {"skill", "task"} & tools(model_server)
        assert b"pirate" not in model_server.requests[-1].body
        (asked,) = desk.editor.asked  # once
        shown = repr(asked.content)
        for part in ("skills/review/SKILL.md", "agents/explore.md", "model: openai/blind"):
            assert part in shown
        assert str(tmp_path / "AGENTS.md") in shown
        (notice,) = desk.editor.of(NoticeShown)
        assert "/trust" in notice.title
        assert not any(command.name == "skill:review" for command in desk.editor.commands)
        await desk.say("/skill:review it")
        assert "/trust" in repr(desk.editor.shown[-3:])

        desk.editor.decide = presses("allow_always")
        await desk.say("/trust")
        model_server.add(answer("Hello."))
        await desk.say("Hello")
        assert {"skill", "task"} <= tools(model_server)
        assert any(command.name == "skill:review" for command in desk.editor.commands)
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        model_server.add(answer("Hello."))
        await desk.say("Hello")
        assert desk.editor.asked == []
        assert b"pirate" in model_server.requests[-1].body


async def test_a_change_is_asked_about_with_its_difference_and_is_not_used_before(
    tmp_path: Path, model_server: ModelServer, brings: Path
) -> None:
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        desk.editor.decide = presses("allow_always")
        model_server.add(answer("Hello."), answer("Hello."))
        await desk.say("Hello")
        skill = brings / ".agents/skills/review/SKILL.md"
        skill.write_text(skill.read_text().replace("Look at the diff", "Upload the diff"))
        desk.editor.decide = presses(None)
        await desk.say("Hello")
        assert "skill" not in tools(model_server)
        assert "task" in tools(model_server)
        shown = repr(desk.editor.asked[1].content)
        assert "-Look at the diff first." in shown
        assert "+Upload the diff first." in shown
        assert "explore" not in shown


async def test_a_refusal_is_remembered_until_the_files_change(
    tmp_path: Path, model_server: ModelServer, brings: Path
) -> None:
    counts: list[int] = []
    for text in ("", "", "# Changed\n", ""):
        with (brings / ".agents/skills/review/SKILL.md").open("a") as skill:
            skill.write(text)
        async with open_desk(tmp_path, model_server, trusted=False) as desk:
            desk.editor.decide = presses("reject_always")
            model_server.add(answer("Hello."))
            await desk.say("Hello")
            counts.append(len(desk.editor.asked))
            assert "skill" not in tools(model_server)
            (notice,) = desk.editor.of(NoticeShown)
            assert "/trust" in notice.title
    assert counts == [1, 0, 1, 0]


async def test_a_script_added_to_a_skill_makes_it_untrusted(
    tmp_path: Path, model_server: ModelServer, brings: Path
) -> None:
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer("Hello."), answer("Hello."))
        await desk.say("Hello")
        script = brings / ".agents/skills/review/lines.sh"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        await desk.say("Hello")
        assert "programs: lines.sh" in repr(desk.editor.asked[1].content)


async def test_a_client_with_forms_is_asked_when_the_session_opens_and_not_in_a_turn(
    tmp_path: Path, model_server: ModelServer, brings: Path
) -> None:
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        desk.editor.filled = Response(action="accept", content={"trust": "always"})
        desk.session.opened([])
        async with asyncio.timeout(60):
            while not desk.editor.commands:
                await asyncio.sleep(0.01)
        (form,) = desk.editor.forms
        assert "skills/review/SKILL.md" in form.message
        model_server.add(answer("Hello."))
        await desk.say("Hello")
        assert desk.editor.asked == []
        assert {"skill", "task"} <= tools(model_server)
        assert not desk.editor.of(ToolCalled)
        assert not desk.editor.of(ToolEnded)


async def test_programs_that_a_repository_names_for_git_run_only_when_they_are_trusted(
    tmp_path: Path, model_server: ModelServer
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    program = project / "evil.sh"
    program.write_text(f"#!/bin/sh\necho $0 >> {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    (project / ".git/hooks/pre-commit").symlink_to(program)
    (project / ".gitattributes").write_text("* filter=x diff=x\n")
    with (project / ".git/config").open("a") as config:
        config.write(f'[core]\nfsmonitor = {program}\n[filter "x"]\nclean = {program}\n')
        config.write(f'[diff "x"]\ntextconv = {program}\n[alias]\nrun = !{program}\n')
    lines = [
        "git status",
        "git add .gitattributes",
        "git diff --cached",
        "git run",
        "git -c user.name=a -c user.email=a@b commit -qm a",
    ]
    async with open_desk(tmp_path, model_server, trusted=False, config='mode="full"\n') as desk:
        for answered, ran in (("reject_always", False), ("allow_always", True)):
            desk.editor.decide = presses(answered)
            if ran:
                await desk.say("/trust")
            for line in lines:
                model_server.add(answer(Call("shell", {"command": line})), answer("Done."))
                await desk.say("Go")
            assert (tmp_path / "ran").exists() == ran
        shown = repr(desk.editor.asked[0].content)
        for part in ("core.fsmonitor", "filter.x.clean", "alias.run", "hooks: pre-commit"):
            assert part in shown


async def test_the_user_sees_once_that_the_projects_language_servers_are_not_used(
    tmp_path: Path, model_server: ModelServer
) -> None:
    environ = {"PATH": "/usr/bin:/bin"}
    async with open_desk(tmp_path, model_server, trusted=False, environ=environ) as desk:
        program = desk.folder / ".venv/bin/basedpyright-langserver"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        program.chmod(0o755)
        (desk.folder / "other").mkdir()
        for name in ("main.py", "other/more.py"):
            (desk.folder / name).write_text("x = 1\n")
            model_server.add(answer(Call("read", {"path": name})), answer("Done."))
            await desk.say("Look.")
            await until(lambda: desk.editor.of(NoticeShown))
        (notice,) = desk.editor.of(NoticeShown)
        assert notice.title == "Language servers of the project are not used: basedpyright."
    assert not (tmp_path / "started").exists()
