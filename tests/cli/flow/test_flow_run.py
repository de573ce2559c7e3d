"""`acp-agent flow run`, `list` and `check`: the real command, which starts the real server."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from acp_agent.cli.flow.locate import list_workflows
from acp_agent.cli.trust import trust_folder
from tests.cli.flow.flow_process import finish, flow, prompts, start
from tests.support.model_server import (
    Answer,
    Call,
    ModelServer,
    Request,
    Stall,
    Status,
    answer,
)

WORKFLOW = """\
inputs: {what: tests}
steps:
  - id: one
    prompt: Look at ${inputs.what}.
  - id: group
    parallel:
      - {id: a, prompt: "A after ${steps.one.output}"}
      - {id: b, skill: explain, with: {path: "the parser"}}
  - id: never
    if: inputs.what == 'nothing'
    prompt: never
  - id: last
    if: steps.group.output contains 'of B'
    prompt: "${steps.a.output}"
  - id: each
    for-each: ${steps.last.output}
    prompt: For ${item}.
"""


async def test_steps_run_in_order_or_concurrently_and_only_the_last_output_is_on_stdout(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    (workspace_repo / "f.yaml").write_text(WORKFLOW)
    together = Stall()

    def reply(request: Request) -> Answer:
        prompt = prompts(request)[-1]
        if prompt == "Look at docs.":
            return answer("/mode full")
        if prompt.startswith("A after"):
            return answer("/mode full", together)
        if "the parser" in prompt:
            return answer("the answer of B", together)
        return answer("did it" if prompt.startswith("For") else "- x\n- y")

    model_server.otherwise = reply
    process = await start(
        home, workspace_repo, model_server, "flow", "run", "f.yaml", "--input", "what=docs"
    )
    await model_server.arrived(3)  # both steps of the group wait for their answers
    together.release()
    status, out, err = await finish(process)
    assert (status, out) == (0, "## x\n\ndid it\n\n## y\n\ndid it\n"), err
    first, *both, last, x, y = [prompts(request) for request in model_server.requests]
    assert len(both) == 2
    assert sorted([x, y]) == [["For x."], ["For y."]]  # each in a session of its own
    assert all(len(conversation) == 1 for conversation in both)
    # The first and the last share a session, and an output is no command.
    assert last == [first[0], "This is text and no command:\n\n/mode full"]
    assert "[a] Step a: done\n" in err
    assert "Step never: skipped" in err


@pytest.mark.parametrize("of", ["user", "project"])
async def test_the_first_step_of_a_session_can_be_a_skill_of_the_user_or_the_project(
    home: Path, workspace_repo: Path, model_server: ModelServer, of: str
) -> None:
    folder = home / "agent" / "skills" if of == "user" else workspace_repo / ".claude" / "skills"
    (folder / "deploy").mkdir(parents=True)
    head = "---\nname: deploy\ndescription: Deploys it.\n---\n"
    (folder / "deploy" / "SKILL.md").write_text(f"{head}Deploy to $ARGUMENTS.\n")
    (workspace_repo / "f.yaml").write_text("steps: [{id: one, skill: deploy, with: test}]\n")
    model_server.add(answer("Deployed."))

    status, out, err = await flow(home, workspace_repo, model_server, "run", "f.yaml", "--trust")

    assert (status, out) == (0, "Deployed.\n"), err
    assert prompts(model_server.requests[0]) == ["/skill:deploy test"]


THREE = """\
steps:
  - {id: one, prompt: The first.}
  - {id: two, prompt: The second.}
  - {id: three, prompt: "The third after ${steps.two.output}"}
"""


async def test_a_new_run_says_how_to_resume_the_interrupted_one(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    (workspace_repo / "f.yaml").write_text(THREE)
    model_server.add(answer("begun", Stall()))
    process = await start(home, workspace_repo, model_server, "flow", "run", "f.yaml")
    await model_server.arrived(1)
    process.kill()
    await finish(process)
    for hinted in (True, False):
        model_server.add(answer("one done"), answer("two done"), answer("three done"))
        _, _, err = await flow(home, workspace_repo, model_server, "run", "f.yaml")
        assert ("acp-agent flow run --resume flow_" in err) is hinted


async def test_a_run_that_was_killed_in_its_second_step_continues_with_it(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    file = workspace_repo / "f.yaml"
    file.write_text(THREE)
    model_server.add(answer("one done"), answer("begun", Stall()))
    process = await start(home, workspace_repo, model_server, "flow", "run", "f.yaml")
    await model_server.arrived(2)
    process.kill()
    await finish(process)
    list_workflows = json.loads(
        (await flow(home, workspace_repo, model_server, "list", "--json"))[1]
    )
    assert [run["file"] for run in list_workflows["runs"]] == [str(file)]

    file.write_text(THREE.replace("The third", "Third"))
    model_server.add(answer("two done"), answer("three done"))
    status, out, err = await flow(home, workspace_repo, model_server, "run", "--resume")
    assert (status, out) == (0, "three done\n"), err
    assert f"{file} changed since the run started" in err
    _, _, repeated, third = model_server.requests
    # The same session, in which the first step was done and the second was cut off.
    assert prompts(repeated)[0] == "The first."
    assert prompts(repeated)[-1] == "The second."
    assert prompts(third)[-1] == "Third after two done"

    # A crash between the end of a turn and its record: the session knows what was answered.
    (journal,) = (home / "agent" / "flows" / "runs").iterdir()
    assert journal.stat().st_mode & 0o077 == 0
    lines = journal.read_text().splitlines(keepends=True)
    assert '"event":"step_ended"' in lines[-2]
    journal.write_text("".join(lines[:-2]) + lines[-2][:20])
    run = journal.stem[:25]
    status, out, err = await flow(home, workspace_repo, model_server, "run", "--resume", run)
    assert (status, out) == (0, "three done\n"), err
    assert len(model_server.requests) == 4


async def test_a_failure_is_retried_and_then_skips_later_steps(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    (workspace_repo / "f.yaml").write_text("""\
steps:
  - {id: slow, prompt: Slow., timeout: 1s, retry: 9}
  - {id: tolerated, prompt: Bad., continue-on-error: true}
  - {id: bad, prompt: Bad again., retry: 1, if: steps.tolerated.status == 'failed'}
  - {id: after, prompt: After.}
  - {id: later, prompt: Later., if: steps.slow.output}
  - {id: cleanup, prompt: "Clean up: ${steps.bad.status}", if: failure()}
""")
    slow = iter([answer("begun", Stall())])

    def reply(request: Request) -> Answer | Status:
        prompt = prompts(request)[-1]
        if prompt == "Slow.":
            return next(slow, answer("in time"))
        return Status(code=400, message="no") if prompt.startswith("Bad") else answer("cleaned")

    model_server.otherwise = reply
    status, out, err = await flow(home, workspace_repo, model_server, "run", "f.yaml", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 1, err
    assert lines[0]["type"] == "run"
    assert lines[-1]["type"] == "result"
    assert lines[-1]["steps"] == {
        "slow": "completed", "tolerated": "failed", "bad": "failed", "cleanup": "completed",
    }  # fmt: skip
    assert lines[-1]["text"] == "cleaned"
    retried = [entry["step"] for entry in lines if entry.get("status") == "retrying"]
    assert list(dict.fromkeys(retried)) == ["slow", "bad"]  # a busy machine may need more attempts
    assert retried.count("bad") == 1
    assert prompts(model_server.requests[-1])[-1] == "Clean up: failed"


async def test_a_call_without_permission_does_not_run_and_a_file_grants_itself_no_rights(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    file = workspace_repo / "f.yaml"
    file.write_text("steps:\n  - {id: a, prompt: Write.}\n")
    created = workspace_repo / "made.txt"
    call = Call("write", {"path": "made.txt", "content": "hi"})
    model_server.add(answer(call), answer("refused"))
    status, out, err = await flow(home, workspace_repo, model_server, "run", "f.yaml")
    assert (status, out, created.exists()) == (4, "refused\n", False)
    assert err.splitlines()[-1].endswith("To allow it, add --allow edits.")

    file.write_text("""\
steps:
  - {id: a, prompt: Write., mode: full, continue-on-error: true}
  - {id: b, prompt: /trust}
""")
    status, _, err = await flow(home, workspace_repo, model_server, "run", "f.yaml")
    assert status == 1
    assert "the file wants the mode full, which only you can choose; add --mode full" in err
    assert "a step cannot use the command /trust" in err
    assert len(model_server.requests) == 2

    model_server.add(answer(call), answer("written"))
    status, _, err = await flow(
        home, workspace_repo, model_server, "run", "f.yaml", "--mode", "full"
    )
    assert created.exists(), err
    assert status == 1  # for /trust


async def test_a_projects_workflow_is_run_by_name_only_in_a_trusted_folder(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    folder = workspace_repo / ".acp-agent" / "flows"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("steps:\n  - {id: a, prompt: Theirs.}\n")
    model_server.otherwise = answer("ok")
    status, _, err = await flow(home, workspace_repo, model_server, "run", "mine")
    assert status == 1
    assert "of a folder that you do not trust" in err
    assert model_server.requests == []
    status, _, err = await flow(home, workspace_repo, model_server, "run", "mine", "--trust")
    assert status == 0, err
    assert [prompts(request) for request in model_server.requests] == [["Theirs."]]


def test_a_workflow_of_the_user_is_hidden_only_by_one_that_is_trusted(
    home: Path, workspace_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_AGENT_HOME", str(home))
    flows_folder = workspace_repo / ".acp-agent" / "flows"
    for folder in (flows_folder, home / "flows"):
        folder.mkdir(parents=True)
        (folder / "both.yaml").write_text("steps:\n  - {id: a, prompt: x}\n")
    (flows_folder / "broken.yaml").write_text("steps: 1\n")
    (home / "flows" / "broken.yaml").write_text("steps:\n  - {id: a, prompt: x}\n")
    assert [workflow.source for workflow in list_workflows(workspace_repo)] == ["user", "user"]
    trust_folder(workspace_repo)
    assert [workflow.source for workflow in list_workflows(workspace_repo)] == ["project", "user"]


async def test_ctrl_c_cancels_the_run_which_can_be_continued(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    (workspace_repo / "f.yaml").write_text("steps:\n  - {id: a, prompt: Work., retry: 3}\n")
    model_server.add(answer("begun", Stall()))
    process = await start(home, workspace_repo, model_server, "flow", "run", "f.yaml")
    await model_server.arrived(1)
    process.send_signal(signal.SIGINT)
    status, out, err = await finish(process)
    assert (status, out) == (130, ""), err
    assert "flow run --resume flow_" in err
    assert len(model_server.requests) == 1


async def test_check_reports_every_error_with_its_line(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    bad, skills = workspace_repo / "bad.yaml", workspace_repo / "skills.yaml"
    bad.write_text("steps:\n  - {id: a, promt: x}\n  - x\n")
    skills.write_text("""\
steps:
  - {id: b, skill: no-such-skill}
  - {id: c, prompt: /trust}
  - {id: d, skill: compare, with: {files: a.md}}
  - {id: e, skill: compare, with: {file: a.md}}
  - {id: f, skill: compare, with: "a.md b.md"}
""")
    status, _, err = await flow(
        home, workspace_repo, model_server, "check", "bad.yaml", "skills.yaml", "none.yaml"
    )
    assert status == 1
    assert f"acp-agent: {bad}:2: promt: there is no such field; did you mean prompt?\n" in err
    assert f"acp-agent: {bad}:3: expected names with values here" in err
    assert f"{skills}:2: skill: there is no skill no-such-skill here that you trust" in err
    assert f"{skills}:4: with: the skill compare has no input files; did you mean file?" in err
    assert f"{skills}:5: with: the skill compare needs file2; add it" in err
    assert f"{skills}:6:" not in err
    assert f"{skills}:3: a step cannot use the command /trust" in err
    assert "none.yaml: there is no such file; check the name" in err
