"""Where files are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from acp_agent.config.localization import choose_language
from acp_agent.config.paths import find_paths


def test_one_variable_changes_all_paths(tmp_path: Path) -> None:
    paths = find_paths({"ACP_AGENT_HOME": str(tmp_path)})
    files = [
        paths.config_file, paths.data_dir, paths.log_file, paths.secrets_file,
        paths.sessions_file, paths.grants_file, paths.outputs_dir,
    ]  # fmt: skip
    assert all(file == tmp_path or tmp_path in file.parents for file in files)
    assert len(set(files)) == len(files)


def test_a_relative_home_is_resolved_against_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_paths({"ACP_AGENT_HOME": "here"}).data_dir == tmp_path / "here"


@pytest.mark.skipif(sys.platform != "linux", reason="these folders are Linux's")
def test_the_system_folders_are_used_without_the_variable(tmp_path: Path) -> None:
    code = (
        "import json, os\n"
        "from acp_agent.config.paths import find_paths\n"
        "p = find_paths(os.environ)\n"
        "print(json.dumps([str(p.config_file), str(p.data_dir), str(p.secrets_file)]))"
    )
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "elsewhere"),
    }
    environ.pop("ACP_AGENT_HOME", None)
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    data = tmp_path / "elsewhere" / "acp-agent"
    assert json.loads(ran.stdout) == [
        str(tmp_path / ".config" / "acp-agent" / "config.toml"),
        str(data),
        str(data / "secrets.json"),
    ]


@pytest.mark.parametrize(
    ("setting", "environ", "language"),
    [
        ("zh", {"LANG": "en_US.UTF-8"}, "zh"),
        ("auto", {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("auto", {"LC_ALL": "en_GB.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ("auto", {"LC_ALL": "", "LANG": "zh_TW"}, "zh"),
        ("auto", {}, "en"),
    ],
)
def test_the_language_is_that_of_the_user(
    setting: Literal["auto", "en", "zh"], environ: dict[str, str], language: str
) -> None:
    assert choose_language(setting, environ) == language
