"""`acp-agent doctor` and `acp-agent models`: what is there, what is missing, what is broken."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_agent.events import SessionStarted
from acp_agent.ids import new_session_id
from acp_agent.language_servers.service import missing_servers
from acp_agent.language_servers.table import built_in_servers
from acp_agent.session.store.store import Store
from acp_agent.tools.ocr import can_recognise
from tests.cli.cli_process import CLOSED_PORT, acp_agent, environment, provider

KEY = "sk-test-0123456789abcdef"


def doctor(
    home: Path, *flags: str, environ: Mapping[str, str] | None = None
) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Its exit status, and its findings by part."""
    ran = acp_agent(home, "doctor", "--json", *flags, environ=environ)
    assert ran.stderr == ""
    assert KEY not in ran.stdout
    sections: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(ran.stdout)["findings"]:
        sections.setdefault(finding["part"], []).append(finding)
    return ran.returncode, sections


def states(findings: list[dict[str, Any]]) -> list[str]:
    return [finding["state"] for finding in findings]


def test_on_a_new_machine_nothing_is_broken_and_the_key_is_missing(tmp_path: Path) -> None:
    status, sections = doctor(tmp_path)
    assert status == 0
    assert list(sections) == ["Program", "Configuration", "Files", "Sessions", "Providers", "Model"]
    assert "broken" not in [state for findings in sections.values() for state in states(findings)]
    assert any("git version" in finding["what"] for finding in sections["Program"])
    assert any("ripgrep" in finding["what"] for finding in sections["Program"])
    assert states(sections["Model"]) == ["missing"]
    assert "acp-agent login" in sections["Model"][0]["remedy"]
    assert not (tmp_path / "agent").exists()


def test_a_provider_that_answers_and_the_chosen_model_are_reported(tmp_path: Path) -> None:
    with provider(KEY) as served:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{served.url}/v1"}
        status, sections = doctor(tmp_path, environ=environ)
    assert status == 0
    (openai,) = [f for f in sections["Providers"] if f["what"].startswith("openai:")]
    assert openai["state"] == "ok"
    assert "key from OPENAI_API_KEY; responded: 2 models available" in openai["what"]
    assert sections["Model"][0]["state"] == "ok"
    assert "openai/" in sections["Model"][0]["what"]
    assert "first provider with a key (OPENAI_API_KEY)" in sections["Model"][0]["what"]


def test_a_refused_key_is_broken_and_the_remedy_names_its_source(tmp_path: Path) -> None:
    with provider("another-key-0000") as served:
        environ = {"OPENAI_BASE_URL": served.url, "KIMI_BASE_URL": served.url, "KIMI_API_KEY": KEY}
        acp_agent(
            tmp_path, "login", "openai", "--key-stdin", "--no-check", stdin=KEY, environ=environ
        )
        status, sections = doctor(tmp_path, environ=environ)
    assert status == 1
    remedies = {f["what"].split(":")[0]: f["remedy"] for f in sections["Providers"]}
    assert remedies["openai"] == "acp-agent login openai"
    assert remedies["kimi"] == "Set KIMI_API_KEY to a valid key"


def test_a_variable_that_holds_no_key_or_no_address_is_broken_and_named(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": f"{KEY}\nsecond line", "KIMI_BASE_URL": "api.kimi.com"}
    status, sections = doctor(tmp_path, "--offline", environ=environ)
    assert status == 1
    messages = {f["what"] for f in sections["Providers"] if f["state"] == "broken"}
    unlike = "has line breaks or unusual characters, which no key has; set it again"
    assert messages == {
        f"openai: OPENAI_API_KEY {unlike}",
        "kimi: KIMI_BASE_URL is no address; write one like https://host/v1",
    }


def test_a_web_page_is_not_mistaken_for_an_api(tmp_path: Path) -> None:
    with provider(KEY) as served:
        served.page = b"<!DOCTYPE html><title>Welcome</title>"
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": served.url}
        _, sections = doctor(tmp_path, environ=environ)
    (openai,) = [f for f in sections["Providers"] if f["what"].startswith("openai:")]
    assert openai["state"] == "missing"
    assert "responded with a web page instead of an API" in openai["what"]
    assert "often ends in /v1" in openai["remedy"]


def test_a_provider_that_does_not_answer_is_reported_as_missing(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": CLOSED_PORT}
    status, sections = doctor(tmp_path, environ=environ)
    assert status == 0
    (openai,) = [f for f in sections["Providers"] if f["what"].startswith("openai:")]
    assert openai["state"] == "missing"
    assert "cannot be reached" in openai["what"]


def test_offline_sends_no_request(tmp_path: Path) -> None:
    with provider(KEY) as served:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": served.url}
        status, _ = doctor(tmp_path, "--offline", environ=environ)
        assert served.asked == []
    assert status == 0


def test_every_error_of_the_configuration_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "agent" / "config.toml"
    file.parent.mkdir()
    file.write_text('mode = "aks"\n\nlimits.max_retries = 99\n')
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    assert states(sections["Configuration"]) == ["broken", "broken"]
    assert sections["Configuration"][0]["what"].startswith(f"{file}:1: mode: ")
    assert sections["Configuration"][1]["what"].startswith(f"{file}:3: limits.max_retries: ")


def test_an_own_provider_without_an_address_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "agent" / "config.toml"
    file.parent.mkdir()
    file.write_text('[providers.mine]\napi = "openai"\n')
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    assert states(sections["Providers"]) == ["broken"]
    assert "providers.mine" in sections["Providers"][0]["what"]


def test_a_model_that_is_named_and_cannot_be_used_is_broken(tmp_path: Path) -> None:
    status, sections = doctor(tmp_path, "--offline", environ={"ACP_AGENT_MODEL": "openai/gpt-x"})
    assert status == 1
    assert states(sections["Model"]) == ["broken"]


def test_an_unusable_model_of_a_role_is_reported_with_its_line(
    tmp_path: Path,
) -> None:
    file = tmp_path / "agent" / "config.toml"
    file.parent.mkdir()
    file.write_text(
        'small_model = "opnai/mini"\nvision_model = "anthropic/claude-sonnet-5-5"\n'
        'fallback_models = ["demo/demo", "nobody/x"]\n'
        '[models."antropic/x"]\ncontext_window = 5000\n'
        '[skills.a]\nmodel = "small"\n[agents.b]\nmodel = "nobody/y"\n'
        '[agents.c]\nmodel = "nobody/y"\nenabled = false\n',
    )
    status, sections = doctor(tmp_path, "--offline")
    states = {
        finding["what"].partition("config.toml:")[2]: finding["state"]
        for finding in sections["Model"]
        if "config.toml" in finding["what"]
    }
    assert status == 1
    assert [(text.split(": ")[:2], state) for text, state in states.items()] == [
        (["3", "fallback_models[1]"], "broken"),
        (["1", "small_model"], "missing"),
        (["2", "vision_model"], "missing"),
        (["4", 'models."antropic/x"'], "missing"),
        (["9", "agents.b.model"], "missing"),
    ]
    assert any("set ANTHROPIC_API_KEY" in text for text in states)


def test_an_address_is_shown_without_the_credentials_in_it(tmp_path: Path) -> None:
    with provider(KEY) as served:
        host = served.url.removeprefix("http://")
        environ = {"OPENAI_BASE_URL": f"http://me:{KEY}@{host}/v1?key={KEY}"}
        _, sections = doctor(tmp_path, environ=environ)  # it looks for the key
    (openai,) = [f for f in sections["Providers"] if f["what"].startswith("openai:")]
    assert f"openai: http://{host}/v1," in openai["what"]


def test_a_damaged_journal_is_broken_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "agent" / "sessions.db"
    file.parent.mkdir()
    file.write_bytes(b"no database at all" * 100)
    file.chmod(0o600)
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    assert states(sections["Sessions"]) == ["broken"]
    assert str(file) in sections["Sessions"][0]["what"]
    assert file.read_bytes() == b"no database at all" * 100


async def test_a_journal_with_damaged_pages_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "agent" / "sessions.db"
    store = await Store.open(file)
    for _ in range(20):
        await store.create(new_session_id(), [SessionStarted(cwd="/" + "w" * 3_000)])
    await store.close()
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    file.write_bytes(content)
    status, sections = await asyncio.to_thread(doctor, tmp_path, "--offline")
    assert status == 1
    assert set(states(sections["Sessions"])) == {"broken"}
    assert all(str(file) in finding["what"] for finding in sections["Sessions"])


def test_files_that_others_may_read_are_broken(tmp_path: Path) -> None:
    acp_agent(tmp_path, "login", "openai", "--key-stdin", "--no-check", stdin=KEY)
    file = tmp_path / "agent" / "secrets.json"
    file.chmod(0o644)
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    (problem,) = [f for f in sections["Files"] if str(file) in f["what"]]
    assert problem["state"] == "broken"
    assert "Replace its keys" in problem["remedy"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    log = tmp_path / "agent" / "logs" / "agent.log"
    log.parent.mkdir()
    log.touch(0o644)
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    (problem,) = [f for f in sections["Files"] if str(log) in f["what"]]
    assert (problem["state"], problem["remedy"]) == ("broken", f"chmod 600 '{log}'")


def test_permissions_that_cannot_be_read_are_broken_and_left_as_they_are(tmp_path: Path) -> None:
    grants = tmp_path / "agent" / "grants.json"
    grants.parent.mkdir()
    grants.write_text("{")
    grants.chmod(0o600)
    status, sections = doctor(tmp_path, "--offline", environ={"ACP_AGENT_LANGUAGE": "zh"})
    assert status == 1
    (problem,) = [entry for entry in sections["Files"] if entry["state"] == "broken"]
    assert problem["what"] == f"无法读取 {grants} 中记住的许可，因此未使用；请修复或删除该文件"
    assert grants.read_text() == "{"


def test_a_folder_in_place_of_the_key_file_is_reported_and_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "agent" / "secrets.json"
    folder.mkdir(parents=True, mode=0o755)
    ran = acp_agent(tmp_path, "models")
    assert ran.stderr == f"acp-agent: {folder} is not a file; move it away\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_home_that_is_a_file_is_broken(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("")
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    assert "broken" in states(sections["Files"])


def test_a_missing_git_is_reported_with_its_remedy(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    _, sections = doctor(tmp_path, "--offline", environ={"PATH": str(empty)})
    (git,) = [f for f in sections["Program"] if "git is not installed" in f["what"]]
    assert git["state"] == "missing"
    assert "Install git" in git["remedy"]


def test_the_report_says_whether_text_in_pictures_can_be_recognised(tmp_path: Path) -> None:
    _, sections = doctor(tmp_path, "--offline")
    (result,) = [f for f in sections["Program"] if "text in images" in f["what"]]
    available = can_recognise()
    assert result["state"] == ("ok" if available else "info")
    assert ("pip install 'acp-agent-server[ocr]'" in result["remedy"]) is not available


def test_the_text_says_the_same_and_ends_with_a_verdict(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "doctor", "--offline", environ={"ACP_AGENT_MODE": "x"})
    assert ran.returncode == 1
    assert "  !! the variable ACP_AGENT_MODE" in ran.stdout
    assert ran.stdout.endswith("\nProblems found: 1, marked '!!' above.\n")
    assert "\x1b" not in ran.stdout


def test_the_models_of_usable_providers_are_listed_and_the_chosen_one_marked(
    tmp_path: Path,
) -> None:
    ran = acp_agent(tmp_path, "models", environ={"ANTHROPIC_API_KEY": KEY})
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["MODEL", "WINDOW", "OUTPUT", "IN", "$", "OUT", "$"]
    assert all("anthropic/" in line for line in lines[1 : lines.index("")])
    (marked,) = [line for line in lines if line.startswith("*  ")]
    assert marked.split()[1] in lines[-1]
    assert "ANTHROPIC_API_KEY" in lines[-1]
    assert KEY not in ran.stdout


def test_an_own_provider_is_queried_for_its_models(tmp_path: Path) -> None:
    with provider(KEY) as served:
        file = tmp_path / "agent" / "config.toml"
        file.parent.mkdir()
        file.write_text(f"[providers.mine]\napi = 'openai'\nbase_url = '{served.url}/v1'\n")
        ran = acp_agent(tmp_path, "models", environ={"MINE_API_KEY": KEY})
        assert "mine/one" in ran.stdout
        assert "mine/two" in ran.stdout
        assert "such as mine/one." in ran.stdout.splitlines()[-1]  # none is chosen
        served.status = 500
        ran = acp_agent(tmp_path, "models", environ={"MINE_API_KEY": KEY})
        assert (ran.returncode, "mine/one" in ran.stdout) == (0, False)


def test_a_preset_at_another_address_is_queried_for_its_models(
    tmp_path: Path,
) -> None:
    with provider("") as served:  # a server of one's own that wants no key
        environ = {"OPENAI_BASE_URL": f"{served.url}/v1"}
        ran = acp_agent(tmp_path, "models", environ=environ)
        _, sections = doctor(tmp_path, environ=environ)
        assert "openai/two" in ran.stdout
        assert "such as openai/one." in ran.stdout.splitlines()[-1]
        (model,) = sections["Model"]
        assert not any("has a key" in found["what"] for found in sections["Providers"])
        assert model["remedy"] == "Set `model` to a model in the list of `acp-agent models`"
        file = tmp_path / "agent" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"[providers.a]\napi = 'openai'\nbase_url = '{served.url}/v1'\n")
        with file.open("a") as more:
            more.write("[models.'a/b']\ncontext_window = 5000\n")
        ran = acp_agent(tmp_path, "models", environ=environ)
        assert ran.stdout.splitlines()[-1] == (
            "* New sessions use a/b: first configured provider that needs no key."
        )
        environ["ACP_AGENT_MODEL"] = "openai/one"
        ran = acp_agent(tmp_path, "models", environ=environ)
        assert ran.stdout.splitlines()[-1].startswith("* New sessions use openai/one")


def test_all_models_are_listed_on_demand(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "models", "--all", "--json")
    models = json.loads(ran.stdout)["models"]
    assert {"openai", "anthropic"} <= {model["ref"].split("/")[0] for model in models}
    assert not any(model["usable"] for model in models if model["ref"].startswith("openai/"))
    assert all(model["window"] >= 1_000 for model in models)


@pytest.mark.parametrize(
    ("environ", "config", "why"),
    [
        ({"ACP_AGENT_MODEL": "demo/demo"}, "", "set by the variable ACP_AGENT_MODEL"),
        ({}, 'model = "demo/demo"', "config.toml"),
    ],
)
def test_the_source_of_the_chosen_model_is_named(
    tmp_path: Path, environ: dict[str, str], config: str, why: str
) -> None:
    file = tmp_path / "agent" / "config.toml"
    file.parent.mkdir()
    file.write_text(config)
    ran = acp_agent(tmp_path, "models", "--json", environ=environ)
    listing = json.loads(ran.stdout)
    assert listing["chosen"] == "demo/demo"
    assert why in listing["why"]


def test_a_local_server_that_answers_is_chosen_when_there_is_no_key(tmp_path: Path) -> None:
    with provider(KEY) as served:
        served.status = 200
        ran = acp_agent(
            tmp_path, "models", "--json", environ={"LOCAL_BASE_URL": f"{served.url}/v1"}
        )
    listing = json.loads(ran.stdout)
    assert listing["chosen"] == "local/one"
    assert "a local server is running" in listing["why"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_broken(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir(mode=0o500)
    status, sections = doctor(tmp_path, "--offline")
    assert status == 1
    assert "broken" in states(sections["Files"])


def test_certificates_that_cannot_be_used_are_broken_and_named(tmp_path: Path) -> None:
    path = tmp_path / "no-certificates.pem"
    status, sections = doctor(tmp_path, "--offline", environ={"SSL_CERT_FILE": str(path)})
    assert status == 1
    (problem,) = [f for f in sections["Program"] if f["state"] == "broken"]
    assert f"SSL_CERT_FILE names {path}" in problem["what"]


def test_a_low_limit_of_open_files_is_broken_and_a_limit_that_can_be_raised_is_not(
    tmp_path: Path,
) -> None:
    for soft, hard, state in ((64, 1024, "ok"), (128, 128, "broken")):
        limits = f"ulimit -Sn {soft} && ulimit -Hn {hard}"
        program = f"exec {sys.executable} -m acp_agent doctor --offline --json"
        ran = subprocess.run(
            ["sh", "-c", f"{limits} && {program}"],
            env=environment(tmp_path),
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=False,
        )
        (problem,) = [
            finding
            for finding in json.loads(ran.stdout)["findings"]
            if "limit of open files is" in finding["what"]
        ]
        assert problem["state"] == state
        assert str(hard) in problem["what"]


def test_installed_language_servers_are_named(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gopls").write_text("#!/bin/sh\n")
    (programs / "gopls").chmod(0o755)
    _, sections = doctor(tmp_path, "--offline", environ={"PATH": f"{programs}:/usr/bin:/bin"})
    assert any(
        f"gopls ({programs / 'gopls'})" in finding["what"] for finding in sections["Program"]
    )
    for name in ("a.go", "b.rs", "c.rs"):
        (tmp_path / name).write_text("")
    servers = missing_servers(built_in_servers(), [], tmp_path)
    assert [finding.name for finding in servers] == ["gopls", "rust-analyzer"]
    assert servers[1].install == "rustup component add rust-analyzer"


def test_rules_of_other_programs_are_counted_until_they_are_imported(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text('{"permission": {"bash": {"git push": "deny"}}}')

    def notes() -> list[tuple[str, str]]:
        ran = acp_agent(tmp_path, "doctor", "--json", "--offline")
        findings = json.loads(ran.stdout)["findings"]
        return [
            (one["what"], one["remedy"]) for one in findings if one["part"] == "Permission rules"
        ]

    text = "rules of other programs that are not used here: 1"
    assert notes() == [(text, "acp-agent policy import")]
    assert acp_agent(tmp_path, "policy", "import", "--save").returncode == 0
    assert notes() == []


def test_files_that_another_program_would_ignore_or_use_are_notes_and_no_problems(
    tmp_path: Path,
) -> None:
    server = {"command": "serve", "env": {"KEY": "${NO_SUCH}"}}
    files = {
        ".mcp.json": json.dumps({"mcpServers": {"a": server, "b": {"command": "${NO_SUCH}"}}}),
        ".claude/agents/plain.md": "# Notes\n",
        ".claude/agents/x/same.md": "---\nname: same\ndescription: D.\n---\nA.",
        ".claude/agents/y/same.md": "---\nname: same\ndescription: D.\n---\nB.",
        ".claude/settings.json": json.dumps({"hooks": {"preEditHook": [], "Stop": []}}),
        ".roomodes": '{"coder": {"prompt": "You code."}}',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.toml").write_text(
        f"trusted_folders = [{json.dumps(str(tmp_path))}]"
    )
    ran = acp_agent(tmp_path, "doctor", "--json", "--offline")
    findings = json.loads(ran.stdout)["findings"]
    assert (ran.returncode, "broken" in states(findings)) == (0, False)
    notes = [finding["what"] for finding in findings if finding["state"] == "missing"]
    for part in (
        "env: the variable NO_SUCH is not set",
        "command: the variable NO_SUCH is not set",
        "there is no front matter",
        "has the same",
        "preEditHook",
        "customModes",
    ):
        assert any(part in note for note in notes), (part, notes)
