"""What a serving process writes down: its log and, where asked for, the wire."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.cli.logs import set_up_logging
from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError

if TYPE_CHECKING:
    from acp_agent.cli.flags import ServeFlags
    from acp_agent.cli.trace import Trace

_log = logging.getLogger(__name__)


@contextmanager
def recording(
    paths: Paths, secrets: Secrets, environ: Mapping[str, str], flags: ServeFlags
) -> Iterator[Trace | None]:
    """Log while the block runs, and trace the wire where `--trace` names a file.

    A configuration that cannot be used leaves the log at its defaults; whoever asks for a session
    is told what is wrong with it.

    Raises:
        ConfigError: the trace's file cannot be written.
    """
    try:
        config = load_config(paths.config_file, environ)
    except ConfigError:
        config = Config()
    set_up_logging(paths, config, secrets.values)
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("%s", _start(paths, environ, flags))
    if flags.unknown:
        _log.info("unknown words on the command line: %s", " ".join(flags.unknown))
    trace = None if flags.trace is None else _trace(flags.trace, secrets)
    try:
        yield trace
    finally:
        if trace is not None:
            trace.close()
        logging.shutdown()


def _start(paths: Paths, environ: Mapping[str, str], flags: ServeFlags) -> str:
    """What a report of a fault needs to know of how the process was started."""
    import platform  # noqa: PLC0415 - only where somebody looks for a fault

    from acp_agent.cli.version import installed_version  # noqa: PLC0415 - likewise

    own = sorted(name for name in environ if name.startswith("ACP_AGENT_"))
    return (
        f"started: acp-agent {installed_version()}, Python {platform.python_version()}, "
        f"{platform.platform()}; configuration {paths.config_file}, data {paths.data_dir}; "
        f"--model {flags.model or 'not given'}; variables set: {', '.join(own) or 'none'}"
    )


def _trace(file: str, secrets: Secrets) -> Trace:
    from acp_agent.cli.trace import Trace  # noqa: PLC0415 - where it is asked for
    from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - likewise

    return Trace(Path(file).absolute(), lambda text: scrub(text, secrets.values()))
