"""`acp-agent policy import`: other agents' permissions become rules, by policy_imports.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from acp_agent.cli.policy.imports.sources import find_files, find_files_at, read_permissions
from acp_agent.config.load import load_config
from acp_agent.permissions.policy.loading import project_rules, user_rules
from tests.cli.cli_process import acp_agent

TABLE = tomllib.loads((Path(__file__).parent / "policy_imports.toml").read_text("utf-8"))
CASES = [(agent, name) for agent, cases in TABLE.items() for name in cases]


@pytest.mark.parametrize(("agent", "name"), CASES)
def test_permissions_of_another_agent_are_translated(
    agent: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_AGENT_LANGUAGE", "en")
    case = TABLE[agent][name]
    file = tmp_path / case["name"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(case["text"])
    (source,) = find_files_at(tmp_path, tmp_path)
    translation = read_permissions(source.file)
    for effect in ("deny", "ask", "allow"):
        expected = [
            each if isinstance(each, dict) else {"rule": each} for each in case.get(effect, [])
        ]
        rules = [
            {key: value for key in rule.__struct_fields__ if (value := getattr(rule, key))}
            for each, rule in translation.rules
            if each == effect
        ]
        assert rules == expected, effect
    left = [f"{each.what}: {each.why}" for each in translation.untranslated]
    assert len(left) == len(case.get("untranslated", [])), left
    for text, beginning in zip(left, case.get("untranslated", []), strict=True):
        assert text.startswith(beginning)


def test_rules_are_shown_first_and_saved_where_they_belong(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(
        '{"permissions": {"deny": ["Bash(make *)"]}}'
    )
    (project / "opencode.json").write_text('{"permission": {"bash": {"curl *": "deny"}}}')
    config = tmp_path / "agent" / "config.toml"
    config.parent.mkdir()
    config.write_text("# mine\n[permissions]\ndeny = ['Bash(x)'] # kept\n")
    preview = acp_agent(tmp_path, "policy", "import", "--cwd", "project")
    assert preview.returncode == 0
    assert '"Bash(make *)"' in preview.stdout
    assert "Use --save to apply" in preview.stderr
    assert not (project / ".acp-agent").exists()
    saved = acp_agent(tmp_path, "policy", "import", "--cwd", "project", "--save")
    assert saved.returncode == 0
    assert config.read_text().startswith("# mine\n[permissions]\n")
    assert "# kept" in config.read_text()
    rules = user_rules(load_config(config, {}).permissions, config)
    assert [rule.text for rule in rules] == ["Bash(x)", "Bash(make *)"]
    (rules_file,) = project_rules(str(project))
    (rule,) = rules_file.rules
    assert rule.text == "Bash(curl *)"
    listed = acp_agent(tmp_path, "policy", "list", "--cwd", "project").stdout
    assert [line.split()[0] for line in listed.splitlines() if "Bash(" in line] == ["deny"] * 3
    repeated = acp_agent(tmp_path, "policy", "import", "--cwd", "project", "--save")
    assert "No new rules" in repeated.stdout


def test_the_users_files_are_found_where_variables_put_them(tmp_path: Path) -> None:
    rules = tmp_path / "codex" / "rules" / "default.rules"
    rules.parent.mkdir(parents=True)
    rules.touch()
    (tmp_path / "project").mkdir()
    permission_files = find_files(
        tmp_path / "project", tmp_path, {"CODEX_HOME": str(tmp_path / "codex")}
    )
    assert [(each.file, each.project) for each in permission_files] == [(rules, False)]


def test_a_file_whose_rules_apply_without_an_import_is_named(tmp_path: Path) -> None:
    settings = tmp_path / "project" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"deny": ["Bash(make *)"]}}')
    imported = acp_agent(tmp_path, "policy", "import", "--cwd", "project")
    assert f"{settings} applies without an import" in imported.stdout
    listed = acp_agent(tmp_path, "policy", "list", "--cwd", "project")
    assert "Bash(make *)" in listed.stdout
