"""Files of skills and agents in a folder of the test, and what is found of them."""

from __future__ import annotations

from pathlib import Path

from acp_agent.config.types import Config
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.locations import DefinitionFolders, find_folders
from acp_agent.extensions.definitions.types import AgentSpec, Skill


class Files:
    """A user and a project, a repository, without any definitions at first.

    Attributes:
        user: the folder of the user's configuration file.
        home: the user's home folder.
        project: the repository.
        cwd: the session's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.user, self.home, self.project = folder / "user", folder / "home", folder / "project"
        (self.project / ".git").mkdir(parents=True)
        self.cwd = self.project

    @property
    def places(self) -> DefinitionFolders:
        return find_folders(self.cwd, user=self.user, home=self.home)

    def skill(
        self, name: str, *lines: str, place: Path | None = None, text: str = "Do it."
    ) -> Path:
        """Write a skill of the project; lines that name no description get one."""
        folder = place or self.project / ".agents"
        return write(folder / "skills" / name / "SKILL.md", *_whole(name, lines), text=text)

    def agent(
        self, name: str, *lines: str, place: Path | None = None, text: str = "Be one."
    ) -> Path:
        """Write an agent of the project; lines that name no description get one."""
        folder = place or self.project / ".agents"
        return write(folder / "agents" / f"{name}.md", *_whole(name, lines), text=text)

    def find(self, config: Config | None = None) -> FoundDefinitions:
        return find_definitions(self.places, config or Config(), lambda _: True)

    def the_skill(self, config: Config | None = None) -> Skill:
        """The only skill, with which nothing is wrong."""
        found = self.find(config)
        assert found.problems == ()
        (skill,) = found.skills
        return skill

    def the_agent(self, name: str, config: Config | None = None) -> AgentSpec:
        """The only agent of a name, where nothing is wrong."""
        found = self.find(config)
        assert found.problems == ()
        (agent,) = (one for one in found.agents if one.name == name)
        return agent

    def why(self, path: Path) -> list[str]:
        """What is wrong with a file, and with nothing else."""
        problems = self.find().problems
        assert {problem.path for problem in problems} <= {path}
        return [problem.why for problem in problems]


def _whole(name: str, lines: tuple[str, ...]) -> list[str]:
    given = {line.partition(":")[0] for line in lines}
    first = [] if "name" in given else [f"name: {name}"]
    second = [] if given & {"description", "extends"} else [f"description: What {name} does."]
    return [*first, *second, *lines]


def write(path: Path, *lines: str, text: str = "Do it.") -> Path:
    """Write a file with these lines as its front matter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["---", *lines, "---", "", text, ""]), "utf-8")
    return path
