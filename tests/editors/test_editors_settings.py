"""The settings that we publish for editors are valid, and those that `acp-agent setup` writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from acp_agent import __version__
from acp_agent.cli.editors.catalog import editors
from acp_agent.cli.editors.plan import template_text
from tests.editors.neovim import PROGRAM

PLUGINS = Path(__file__).resolve().parents[2] / "editor-plugins"


def test_every_editor_has_a_readme_that_names_its_setup() -> None:
    for name in (
        "zed",
        "jetbrains",
        "emacs",
        "codecompanion",
        "avante",
        "agentic",
        "marimo",
        "acpx",
    ):
        readme = (PLUGINS / name / "README.md").read_text()
        assert f"acp-agent setup {name}" in readme
        assert (PLUGINS / name / "../../docs/editors.md").resolve().is_file()


def test_the_extension_of_zed_has_what_its_manifest_needs() -> None:
    manifest = tomllib.loads((PLUGINS / "zed" / "extension.toml").read_text())
    needed = ("id", "name", "version", "schema_version", "authors", "description", "repository")
    assert all(manifest[name] for name in needed)
    assert manifest["version"] == __version__
    agent = manifest["agent_servers"]["acp-agent"]
    assert set(agent["targets"]) == {
        f"{system}-{machine}" for system in ("darwin", "linux") for machine in ("aarch64", "x86_64")
    }
    for target in agent["targets"].values():
        assert target["archive"].startswith(manifest["repository"] + f"/v{manifest['version']}/")
        assert (PLUGINS / "zed" / "launcher" / target["cmd"]).is_file()
    icon = ElementTree.parse(PLUGINS / "zed" / agent["icon"]).getroot()
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    assert not list(icon.iter("{http://www.w3.org/2000/svg}linearGradient"))


def test_the_launcher_of_zed_finds_the_agent_or_says_how_to_install_it(tmp_path: Path) -> None:
    launcher = PLUGINS / "zed" / "launcher" / "acp-agent"
    installed = tmp_path / ".local" / "bin" / "acp-agent"
    environ = {"HOME": str(tmp_path), "PATH": f"{launcher.parent}:/usr/bin:/bin"}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [launcher, "--model", "a:b c"],
            env=environ, capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip

    missing = run()
    assert missing.returncode == 127
    assert missing.stdout == ""
    assert "not installed" in missing.stderr
    installed.parent.mkdir(parents=True)
    installed.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    installed.chmod(0o755)
    assert run().stdout == "--model|a:b c|"


@pytest.mark.parametrize("editor", ["neovim", "codecompanion", "avante", "agentic"])
def test_a_lua_file_of_ours_does_nothing_where_its_plugin_is_missing(
    tmp_path: Path, editor: str
) -> None:
    text = template_text(editors()[editor], ['/a "b"\\c/acp-agent', "--model"])
    if editor == "neovim":
        text = text.replace(str(PLUGINS / "neovim"), str(tmp_path / "none"))
    (tmp_path / "ours.lua").write_text(text)
    done = subprocess.run(
        [PROGRAM, "--clean", "--headless", "-l", str(tmp_path / "ours.lua")],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


# What agent-shell and acp.el have that the package uses.
STUBS = """
(require 'cl-lib)
(defvar agent-shell-agent-configs (list '((:identifier . other)) #'ignore))
(defvar started nil)
(cl-defun acp-make-client (&key context-buffer command command-params environment-variables)
  (list command command-params environment-variables (bufferp context-buffer)))
(cl-defun agent-shell-make-agent-config (&key identifier mode-line-name buffer-name shell-prompt
                                              shell-prompt-regexp client-maker install-instructions)
  (ignore mode-line-name buffer-name shell-prompt shell-prompt-regexp install-instructions)
  (list (cons :identifier identifier) (cons :client-maker client-maker)))
(cl-defun agent-shell-start (&key config) (setq started (map-elt config :identifier)))
(provide 'agent-shell)
(require 'ert)
(ert-deftest the-agent-is-offered-once-beside-the-others ()
  (acp-agent-register)
  (acp-agent-register)
  (should (equal 3 (length agent-shell-agent-configs)))
  (let ((agent-shell-agent-configs #'ignore))
    (acp-agent-register)
    (should (eq agent-shell-agent-configs #'ignore))))
(ert-deftest its-command-can-be-changed-at-any-time ()
  (let ((maker (map-elt (acp-agent-make-config) :client-maker))
        (acp-agent-command '("/opt/acp-agent" "--model" "demo/demo"))
        (acp-agent-environment '("A=b")))
    (should (equal (funcall maker (current-buffer))
                   '("/opt/acp-agent" ("--model" "demo/demo") ("A=b") t)))
    (setq acp-agent-command nil)
    (should-error (funcall maker (current-buffer)) :type 'user-error)))
(ert-deftest the-command-opens-a-shell ()
  (call-interactively #'acp-agent)
  (should (eq started 'acp-agent)))
"""


def emacs(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Emacs in batch mode."""
    program = shutil.which("emacs") or pytest.skip("needs Emacs")
    return subprocess.run(
        [program, "-Q", "--batch", "-L", str(folder), *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
        env={"HOME": str(folder), "PATH": os.environ["PATH"]},
    )  # fmt: skip


def test_the_package_for_emacs_compiles_without_warnings_and_works(tmp_path: Path) -> None:
    shutil.copy(PLUGINS / "emacs" / "acp-agent.el", tmp_path)
    strict = "(setq byte-compile-error-on-warn t)"
    done = emacs(tmp_path, "--eval", strict, "-f", "batch-byte-compile", "acp-agent.el")
    assert (done.returncode, done.stderr) == (0, "")
    done = emacs(tmp_path, "--eval", '(checkdoc-file "acp-agent.el")')
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "tests.el").write_text(STUBS)
    done = emacs(
        tmp_path, "-l", "acp-agent.elc", "-l", "tests.el", "-f", "ert-run-tests-batch-and-exit"
    )
    assert done.returncode == 0, done.stderr
    assert "3 results as expected" in done.stderr
