"""`acp-agent plugin add`, `update`, `remove`, `enable` and `disable`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, USAGE, complain, say
from acp_agent.cli.plugins.listing import folder_of_plugins
from acp_agent.cli.user_config import load_user_config
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.plugins import adding
from acp_agent.extensions.plugins.elsewhere import find_enabled_plugins
from acp_agent.extensions.plugins.installed import read_installed
from acp_agent.extensions.plugins.package import describe_parts
from acp_agent.extensions.plugins.packages import package_name, resolve
from acp_agent.extensions.plugins.sources import is_fetched
from acp_agent.session.plugins import PythonPlugins


def add(options: argparse.Namespace) -> int:
    """Show the contents of a plugin, and add it after confirmation; return the exit status.

    Raises:
        ConfigError: it cannot be fetched, is not a plugin, or already exists.
    """
    own = folder_of_plugins(load_user_config())
    folder = Path(options.source).expanduser()
    if not folder.is_dir() and not is_fetched(options.source):
        return _add_package(own, options)
    if options.link:
        one = adding.link_candidate(own, folder)
        return _put(own, one, options)
    try:
        with adding.fetch_candidate(
            own, options.source, ref=options.ref, chosen=options.name
        ) as one:
            return _put(own, one, options)
    except adding.NoChoiceError as error:
        complain(translate_rendered(str(error)))
        for offer in error.offers:
            say(f"  {offer.name}: {offer.description}" if offer.description else f"  {offer.name}")
        return USAGE


def _put(own: Path, one: adding.Candidate, options: argparse.Namespace) -> int:
    plugin = one.plugin
    if plugin.name in read_installed(own):
        raise ConfigError(f"there is a plugin {plugin.name} already; remove it, or update it")
    return 0 if _offer(own, one, options) else FAILED


def _offer(own: Path, one: adding.Candidate, options: argparse.Namespace) -> bool:
    """Show a plugin, and add it if the user agrees; return whether they did."""
    _show(one)
    if not _confirmed(options, translate("Add it? [y/N] ")):
        return False
    adding.install_candidate(own, one, replacing=False)
    say(translate("Added {name}.", name=one.plugin.name))
    return True


def _add_package(own: Path, options: argparse.Namespace) -> int:
    name = package_name(options.source)
    if name is None:
        raise ConfigError(f"{options.source}: there is no such folder, and it names no package")
    record = resolve(options.source)
    say(f"{name} {record.revision}")
    say(f"  {translate('Its code runs with your rights, outside the sandbox.')}")
    for line in record.requirements:
        say(f"  {line}")
    if not _confirmed(options, translate("Add it? [y/N] ")):
        return FAILED
    adding.install_package(own, name, record)
    found = PythonPlugins(own).load()
    wrong = [one for one in found.problems if one.startswith(f"{name}: ")]
    if wrong:
        adding.remove(own, name, keep_data=True)
        raise ConfigError(wrong[0])
    say(translate("Added {name}.", name=name))
    for one in (one for one in found.plugins if one.package == name):
        for tool in one.plugin.tools:
            say(f"  {one.plugin.name}__{tool.name}: {printable_line(tool.description, 100)}")
        for provider in one.plugin.models:
            table = f'[providers.{provider.name}] api = "plugin"'
            say(translate("To use its models, add to the configuration: {table}", table=table))
    return 0


def _show(one: adding.Candidate) -> None:
    plugin, record = one.plugin, one.record
    say(f"{plugin.name} {plugin.version}".strip())
    if plugin.description:
        say(f"  {plugin.description}")
    for line in (*describe_parts(plugin), *([record.revision] if record.revision else [])):
        say(f"  {line}")
    for path, why in plugin.problems:
        shown = path.relative_to(plugin.root) if path.is_relative_to(plugin.root) else path
        complain(f"{shown}: {translate_rendered(why)}")


def update(options: argparse.Namespace) -> int:
    """Fetch plugins again, and apply changes after confirmation; return the exit status.

    Raises:
        ConfigError: a plugin of this name was not added.
    """
    own = folder_of_plugins(load_user_config())
    known = read_installed(own)
    names = options.name or [name for name, one in known.items() if one.kind == "copy"]
    failed = False

    def agree(one: adding.Candidate) -> bool:
        _show(one)
        return _confirmed(options, translate("Use this one? [y/N] "))

    for name in names:
        adding.require(known, name)
        try:
            changed = adding.update(own, name, agree, ref=options.ref)
        except ConfigError as error:
            complain(f"{name}: {translate_rendered(str(error))}")
            failed = True
        else:
            if changed:
                say(translate("Updated {name}.", name=name))
            else:
                say(translate("{name} is unchanged.", name=name))
    return FAILED if failed else 0


def remove(options: argparse.Namespace) -> int:
    """Remove a plugin; return the exit status.

    Raises:
        ConfigError: no plugin of this name was added.
    """
    own = folder_of_plugins(load_user_config())
    adding.remove(own, options.name, keep_data=options.keep_data)
    say(translate("Removed {name}.", name=options.name))
    return 0


def enable(options: argparse.Namespace, *, on: bool) -> int:
    """Turn a plugin on or off; return the exit status.

    Raises:
        ConfigError: no plugin of this name was added.
    """
    own = folder_of_plugins(load_user_config())
    adding.enable(own, options.name, is_enabled=on)
    if on:
        say(translate("{name} is enabled.", name=options.name))
    else:
        say(translate("{name} is disabled.", name=options.name))
    return 0


def import_plugins(options: argparse.Namespace) -> int:
    """Add the plugins that other programs' settings enable; return the exit status.

    Each one needs a confirmation.

    Raises:
        ConfigError: the list of plugins cannot be read.
    """
    own = folder_of_plugins(load_user_config())
    found = find_enabled_plugins(options.cwd, Path.home())
    failed = bool(found.problems)
    for path, why in found.problems:
        complain(f"{path}: {translate_rendered(why)}")
    new = 0
    for wanted in found.plugins:
        if not wanted.source:
            complain(
                translate(
                    "{name}: the location of the marketplace {marketplace} is unknown",
                    name=wanted.name,
                    marketplace=wanted.marketplace,
                )
            )
            failed = True
            continue
        try:
            with adding.fetch_candidate(
                own, wanted.source, ref=wanted.ref, chosen=wanted.name
            ) as one:
                if one.plugin.name in read_installed(own):
                    continue
                new += 1
                _offer(own, one, options)
        except ConfigError as error:
            complain(translate_rendered(str(error)))
            failed = True
    if not new:
        say(translate("No new plugins."))
    return FAILED if failed else 0


def _confirmed(options: argparse.Namespace, question: str) -> bool:
    if options.yes:
        return True
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        say(translate("Nothing changed: not a terminal. Use --yes to agree."))
        return False
    try:
        answer = input(question).strip().lower()
    except EOFError:
        answer = ""
    return answer in {"y", "yes", "是"}
