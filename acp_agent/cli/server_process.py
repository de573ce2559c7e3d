"""Run a server with its log and an optional trace until the process ends."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from acp_agent.cli.localization import translate_rendered
from acp_agent.cli.logs import set_up_logging
from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths, find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError

if TYPE_CHECKING:
    from acp_agent.cli.trace import Trace

_log = logging.getLogger(__name__)


def run_server(
    serve: Callable[..., None],
    environ: Mapping[str, str],
    *,
    model: str | None,
    agent: str | None,
    trace: str | None,
    unknown: tuple[str, ...] = (),
) -> NoReturn:
    """Serve, then end the process.

    Args:
        serve: called with `paths`, `secrets`, `environ`, `model_flag` and `trace`.
    """
    if agent is not None:
        environ = {**environ, "ACP_AGENT_AGENT": agent}
    try:
        paths = find_paths(environ)
        secrets = Secrets(paths.secrets_file, environ)
        with _recording(paths, secrets, environ, trace) as recorder:
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("%s", _describe_start(paths, environ, model))
            if unknown:
                _log.info("unknown arguments: %s", " ".join(unknown))
            serve(
                paths=paths,
                secrets=secrets,
                environ=environ,
                model_flag=model or environ.get("ACP_AGENT_MODEL") or None,
                trace=recorder,
            )
    except AcpAgentError as error:
        _end(1, f"acp-agent: {translate_rendered(str(error))}\n")
    except BaseException as error:  # noqa: BLE001 - there is no caller who could handle it
        _end(1, f"acp-agent: internal error ({type(error).__name__}: {error})\n")
    _end(0)


@contextmanager
def _recording(
    paths: Paths, secrets: Secrets, environ: Mapping[str, str], trace: str | None
) -> Iterator[Trace | None]:
    """Log during the block, and record messages if `trace` names a file.

    With an invalid configuration, logging uses the defaults; requests for a session report the
    error.

    Raises:
        ConfigError: the trace file cannot be written.
    """
    try:
        config = load_config(paths.config_file, environ, paths.parsed_config_file)
    except ConfigError:
        config = Config()
    set_up_logging(paths, config, secrets.values)
    recorder = None if trace is None else _trace(trace, secrets)
    try:
        yield recorder
    finally:
        if recorder is not None:
            recorder.close()
        logging.shutdown()


def _describe_start(paths: Paths, environ: Mapping[str, str], model: str | None) -> str:
    """Describe how the process was started, for bug reports."""
    import platform  # noqa: PLC0415 - only at log level debug

    from acp_agent import __version__  # noqa: PLC0415 - likewise

    variables = sorted(name for name in environ if name.startswith("ACP_AGENT_"))
    return (
        f"started: acp-agent {__version__}, Python {platform.python_version()}, "
        f"{platform.platform()}; configuration {paths.config_file}, data {paths.data_dir}; "
        f"--model {model or 'not given'}; variables set: {', '.join(variables) or 'none'}"
    )


def _trace(file: str, secrets: Secrets) -> Trace:
    from acp_agent.cli.trace import Trace  # noqa: PLC0415 - where it is asked for
    from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - likewise

    return Trace(Path(file).absolute(), lambda text: scrub(text, secrets.values()))


def _end(status: int, message: str = "") -> NoReturn:
    """End the process without waiting for threads, which may still import a model's SDK."""
    try:
        sys.stderr.write(message)
        sys.stderr.flush()
    except OSError:
        pass  # stderr has no reader
    os._exit(status)
