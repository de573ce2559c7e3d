"""The paths of the program's files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

HOME_VARIABLE = "ACP_AGENT_HOME"


class Paths(Struct, frozen=True, kw_only=True):
    """Paths of one user's files. All are absolute; none has to exist."""

    config_file: Path
    data_dir: Path
    log_file: Path
    secrets_file: Path

    @property
    def program_files(self) -> tuple[Path, ...]:
        """Return the program's own folders, and its files, which may be links to other places."""
        files = (
            self.config_file,
            self.secrets_file,
            self.grants_file,
            self.trust_file,
            self.sessions_file,
            self.mcp_logins_file,
        )
        return (self.data_dir, self.log_file.parent, *(file.parent for file in files), *files)

    @property
    def parsed_config_file(self) -> Path:
        """The configuration as it was last parsed."""
        return self.data_dir / "parsed-config.json"

    @property
    def sessions_file(self) -> Path:
        """The journal of all sessions."""
        return self.data_dir / "sessions.db"

    @property
    def grants_file(self) -> Path:
        """The permissions that the user granted permanently."""
        return self.data_dir / "grants.json"

    @property
    def trust_file(self) -> Path:
        """The items in folders that the user trusts."""
        return self.data_dir / "trust.json"

    @property
    def mcp_logins_file(self) -> Path:
        """The tokens of logins to MCP servers."""
        return self.data_dir / "mcp_logins.json"

    @property
    def checkpoints_dir(self) -> Path:
        """Saved versions of project files."""
        return self.data_dir / "checkpoints"

    @property
    def flows_dir(self) -> Path:
        """The progress of workflow runs."""
        return self.data_dir / "flows" / "runs"

    @property
    def memory_dir(self) -> Path:
        """Notes for later sessions, and the index of earlier ones."""
        return self.data_dir / "memory"

    @property
    def outputs_dir(self) -> Path:
        """Tool outputs that were too long for the model."""
        return self.data_dir / "outputs"


def find_paths(environ: Mapping[str, str]) -> Paths:
    """Return the paths of this user's files.

    If `ACP_AGENT_HOME` is set, all of them are below that folder. Otherwise they are in the
    system's usual places: on Linux the folders of the XDG Base Directory Specification, on macOS
    ~/Library.
    """
    home = environ.get(HOME_VARIABLE, "").strip()
    if home:
        folder = Path(home).expanduser().absolute()
        return Paths(
            config_file=folder / "config.toml",
            data_dir=folder,
            log_file=folder / "logs" / "agent.log",
            secrets_file=folder / "secrets.json",
        )
    from platformdirs import PlatformDirs  # noqa: PLC0415 - 6 ms that only this branch needs

    system = PlatformDirs("acp-agent", appauthor=False)
    return Paths(
        config_file=system.user_config_path / "config.toml",
        data_dir=system.user_data_path,
        log_file=system.user_log_path / "agent.log",
        secrets_file=system.user_data_path / "secrets.json",
    )
