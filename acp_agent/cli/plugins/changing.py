"""`acp-agent plugin add`, `update`, `remove`, `enable` and `disable`."""

from __future__ import annotations

import argparse
from pathlib import Path

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, USAGE, complain, confirm, say
from acp_agent.cli.parser import user_path
from acp_agent.cli.plugins.listing import plugins_folder
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
    plugins_dir = plugins_folder(load_user_config())
    folder = user_path(options.source)
    if not folder.is_dir() and not is_fetched(options.source):
        return _add_package(plugins_dir, options)
    if options.link:
        candidate = adding.link_candidate(plugins_dir, folder)
        return _add_candidate(plugins_dir, candidate, options)
    try:
        with adding.fetch_candidate(
            plugins_dir, options.source, ref=options.ref, chosen=options.name
        ) as candidate:
            return _add_candidate(plugins_dir, candidate, options)
    except adding.NoChoiceError as error:
        complain(translate_rendered(str(error)))
        for offer in error.offers:
            say(f"  {offer.name}: {offer.description}" if offer.description else f"  {offer.name}")
        return USAGE


def _add_candidate(
    plugins_dir: Path, candidate: adding.Candidate, options: argparse.Namespace
) -> int:
    plugin = candidate.plugin
    if plugin.name in read_installed(plugins_dir):
        raise ConfigError(f"there is a plugin {plugin.name} already; remove it, or update it")
    return 0 if _offer(plugins_dir, candidate, options) else FAILED


def _offer(plugins_dir: Path, candidate: adding.Candidate, options: argparse.Namespace) -> bool:
    """Show a plugin, and add it if the user agrees; return whether they did."""
    _show(candidate)
    if not confirm(translate("Add it? [y/N] "), "--yes", given=options.yes):
        return False
    adding.install_candidate(plugins_dir, candidate, replacing=False)
    say(translate("Added {name}.", name=candidate.plugin.name))
    return True


def _add_package(plugins_dir: Path, options: argparse.Namespace) -> int:
    name = package_name(options.source)
    if name is None:
        raise ConfigError(f"{options.source}: there is no such folder, and it names no package")
    record = resolve(options.source)
    say(f"{name} {record.revision}")
    say(f"  {translate('Its code runs with your rights, outside the sandbox.')}")
    for line in record.requirements:
        say(f"  {line}")
    if not confirm(translate("Add it? [y/N] "), "--yes", given=options.yes):
        return FAILED
    adding.install_package(plugins_dir, name, record)
    loaded = PythonPlugins(plugins_dir).load()
    errors = [problem for problem in loaded.problems if problem.startswith(f"{name}: ")]
    if errors:
        adding.remove(plugins_dir, name, keep_data=True)
        raise ConfigError(errors[0])
    say(translate("Added {name}.", name=name))
    for entry in (plugin for plugin in loaded.plugins if plugin.package == name):
        for tool in entry.plugin.tools:
            say(f"  {entry.plugin.name}__{tool.name}: {printable_line(tool.description, 100)}")
        for provider in entry.plugin.models:
            table = f'[providers.{provider.name}] api = "plugin"'
            say(translate("To use its models, add to the configuration: {table}", table=table))
    return 0


def _show(candidate: adding.Candidate) -> None:
    plugin, record = candidate.plugin, candidate.record
    say(f"{plugin.name} {plugin.version}".strip())
    if plugin.description:
        say(f"  {plugin.description}")
    for line in (*describe_parts(plugin), *([record.revision] if record.revision else [])):
        say(f"  {line}")
    for path, reason in plugin.problems:
        relative = path.relative_to(plugin.root) if path.is_relative_to(plugin.root) else path
        complain(f"{relative}: {translate_rendered(reason)}")


def update(options: argparse.Namespace) -> int:
    """Fetch plugins again, and apply changes after confirmation; return the exit status.

    Raises:
        ConfigError: a plugin of this name was not added.
    """
    plugins_dir = plugins_folder(load_user_config())
    installed = read_installed(plugins_dir)
    names = options.name or [name for name, record in installed.items() if record.kind == "copy"]
    failed = False
    if not names:
        say(translate("No plugins found."))

    def agree(candidate: adding.Candidate) -> bool:
        _show(candidate)
        return confirm(translate("Use this one? [y/N] "), "--yes", given=options.yes)

    for name in names:
        adding.require(installed, name)
        try:
            changed = adding.update(plugins_dir, name, agree, ref=options.ref)
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
    """Remove a plugin; return the exit status. Raises ConfigError."""
    plugins_dir = plugins_folder(load_user_config())
    adding.remove(plugins_dir, options.name, keep_data=options.keep_data)
    say(translate("Removed {name}.", name=options.name))
    return 0


def enable(options: argparse.Namespace, *, on: bool) -> int:
    """Turn a plugin on or off; return the exit status. Raises ConfigError."""
    plugins_dir = plugins_folder(load_user_config())
    adding.enable(plugins_dir, options.name, is_enabled=on)
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
    plugins_dir = plugins_folder(load_user_config())
    settings = find_enabled_plugins(options.cwd.resolve(), Path.home())
    failed = bool(settings.problems)
    for path, reason in settings.problems:
        complain(f"{path}: {translate_rendered(reason)}")
    new = 0
    for reference in settings.plugins:
        if not reference.source:
            complain(
                translate(
                    "{name}: the location of the marketplace {marketplace} is unknown",
                    name=reference.name,
                    marketplace=reference.marketplace,
                )
            )
            failed = True
            continue
        try:
            with adding.fetch_candidate(
                plugins_dir, reference.source, ref=reference.ref, chosen=reference.name
            ) as candidate:
                if candidate.plugin.name in read_installed(plugins_dir):
                    continue
                new += 1
                _offer(plugins_dir, candidate, options)
        except ConfigError as error:
            complain(translate_rendered(str(error)))
            failed = True
    if not new:
        say(translate("No new plugins."))
    return FAILED if failed else 0
