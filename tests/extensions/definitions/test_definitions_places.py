"""Where skills and agents are looked for, and what looking costs a session that has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from acp_agent.extensions.definitions.locations import (
    FOREIGN_AGENT_FOLDERS,
    FOREIGN_COMMAND_FOLDERS,
    FOREIGN_SKILL_FOLDERS,
    DefinitionFolders,
    any_folder_exists,
    find_folders,
    readable_skill_folders,
)
from tests.extensions.definitions.definition_files import Files


def test_the_users_folders_precede_the_repositorys_and_the_sessions(files: Files) -> None:
    files.cwd = files.project / "deep" / "inside"
    names = (
        *FOREIGN_COMMAND_FOLDERS,
        *FOREIGN_SKILL_FOLDERS,
        ".agents/skills",
        ".acp-agent/skills",
    )
    tables = "opencode.json", "opencode.jsonc"
    inner = tuple(f".opencode/{name}" for name in tables)
    folders = "command", "commands", "skill", "skills"
    only_home = (
        *(f".config/opencode/{name}" for name in tables),
        ".codex/prompts",
        *(f".config/opencode/{name}" for name in folders),
        ".copilot/skills",
    )
    assert files.places.skills == (
        *((files.home / name, "user") for name in (*only_home, *names[:-1])),
        (files.user / "skills", "user"),
        *((files.project / name, "project") for name in (*tables, *inner, *names)),
        *((files.cwd / name, "project") for name in (*tables, *inner, *names)),
    )
    own = (
        *FOREIGN_AGENT_FOLDERS,
        ".copilot/agents",
        *(f".config/opencode/{name}" for name in (*tables, "agent", "agents")),
    )
    folders_of_agents = *FOREIGN_AGENT_FOLDERS, ".agents/agents", ".acp-agent/agents"
    ours = *tables, *inner, ".roomodes", *folders_of_agents
    assert files.places.agents == (
        *((files.home / name, "user") for name in own),
        (files.user / "agents", "user"),
        (files.home / ".agents" / "agents", "user"),
        *((files.project / name, "project") for name in ours),
        *((files.cwd / name, "project") for name in ours),
    )


def test_a_folder_that_is_the_repository_or_in_none_is_searched_once(files: Files) -> None:
    folders = [folder for folder, _ in files.places.skills]
    assert len(folders) == len(set(folders))
    outside = find_folders(Path("/"), user=files.user, home=files.home)
    assert [folder for folder, source in outside.skills if source == "project"] == [
        Path("/opencode.json"),
        Path("/opencode.jsonc"),
        Path("/.opencode/opencode.json"),
        Path("/.opencode/opencode.jsonc"),
        *(Path("/", name) for name in FOREIGN_COMMAND_FOLDERS),
        *(Path("/", name) for name in FOREIGN_SKILL_FOLDERS),
        Path("/.agents/skills"),
        Path("/.acp-agent/skills"),
    ]


def test_definitions_in_the_home_folder_are_the_users_and_not_a_projects(files: Files) -> None:
    here = find_folders(files.home, user=files.home / ".acp-agent", home=files.home)
    projects = [place.name for place, source in here.skills if source == "project"]
    assert projects == ["opencode.json", "opencode.jsonc"] * 2, "which are no place of the user's"


def test_one_existing_folder_starts_a_search(files: Files) -> None:
    assert not any_folder_exists(files.places)
    (files.project / ".agents").mkdir()
    (files.project / ".agents" / "skills").write_text("no folder")
    assert not any_folder_exists(files.places)
    (files.project / ".acp-agent" / "agents").mkdir(parents=True)
    assert any_folder_exists(files.places)


def test_a_file_with_a_table_of_agents_is_enough_and_a_folder_of_its_name_is_ignored(
    files: Files,
) -> None:
    (files.project / "opencode.json").mkdir()
    assert not any_folder_exists(files.places)
    (files.project / "opencode.jsonc").write_text("{}")
    assert any_folder_exists(files.places)


def test_an_unreadable_folder_has_no_definitions(tmp_path: Path) -> None:
    refused = tmp_path / ("x" * 300)  # longer than a name may be
    assert not any_folder_exists(DefinitionFolders(((refused, "user"),), (), (), refused))
    assert find_folders(refused, user=refused, home=refused).skills


def test_files_of_skills_are_readable_but_no_link_leads_out_of_the_project(
    files: Files, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (files.project / "tools").mkdir()
    for name, target in ((".agents", "../tools"), (".acp-agent", str(secret))):
        (files.project / name).mkdir()
        (files.project / name / "skills").symlink_to(target)
    files.user.mkdir()
    (files.user / "skills").symlink_to(secret)
    assert readable_skill_folders(files.places) == [secret, files.project / "tools"]
    (files.user / "skills").unlink()
    (files.user / "skills").mkdir()
    (files.project / "one").mkdir()
    for place in (files.user / "skills", files.project / "tools"):
        (place / "mine").symlink_to(secret)
        (place / "near").symlink_to(files.project / "one")
    assert sorted(readable_skill_folders(files.places)) == sorted(
        [
            *(files.user / "skills", secret, files.project / "one"),  # the user may link anywhere
            *(files.project / "tools", files.project / "one"),
        ]
    )


def test_a_session_without_any_imports_nothing_that_reads_them() -> None:
    code = (
        "import sys\n"
        "import msgspec, pathlib, typing\n"
        "before = set(sys.modules)\n"
        "import acp_agent.extensions.definitions.locations\n"
        "print(sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(
        [
            "acp_agent",
            "acp_agent.extensions",
            "acp_agent.extensions.definitions",
            "acp_agent.extensions.definitions.locations",
        ]
    )
