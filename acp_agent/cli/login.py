"""`acp-agent login` and `logout`: save a provider's key, and delete it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, USAGE, complain, say
from acp_agent.cli.parser import Parser
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.load import locate_errors
from acp_agent.config.paths import find_paths
from acp_agent.config.secrets import Secrets, check_key
from acp_agent.errors import AuthRequiredError, InvalidInputError
from acp_agent.models.providers import Provider, canonical, load_providers
from acp_agent.platform import posix

CHECK_SECONDS = 10.0

_SIMILARITY = 0.7  # similarity from which a name counts as a misspelling of another one


def run(argv: list[str]) -> int:
    """Ask for a key and save it; return the exit status."""
    parser = Parser(
        prog="acp-agent login",
        description="Ask for a provider's API key, test it, and save it readable only by you.",
    )
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="the provider of the key")
    parser.add_argument("--key-stdin", action="store_true", help="read the key from stdin")
    parser.add_argument("--keyring", action="store_true", help="save it in the system's keyring")
    parser.add_argument("--no-check", action="store_true", help="do not test the key")
    options = parser.parse_args(argv)
    posix.forbid_inspection()
    return _login(
        options.provider,
        from_stdin=options.key_stdin,
        keyring=options.keyring,
        check=not options.no_check,
    )


def _login(name: str | None, *, from_stdin: bool, keyring: bool, check: bool) -> int:
    setup = load_user_config()
    with locate_errors(setup.paths.config_file):
        loaded = load_providers(setup.config, setup.secrets, setup.environ)
    providers = {name: provider for name, provider in loaded.items() if provider.api != "demo"}
    terminal = sys.stdin.isatty()
    if not terminal and not (name and from_stdin):
        complain(translate("not a terminal; run acp-agent login PROVIDER --key-stdin"))
        return USAGE
    provider = _find(name, providers) if name else _ask_provider(providers)
    if not provider.key_required:
        say(
            translate(
                "{name} at {address} needs no key.", name=provider.name, address=provider.address
            )
        )
    key = check_key(sys.stdin.readline() if from_stdin else _ask_key(provider))
    if check and not _test_key(provider, key):
        return FAILED
    setup.secrets.set(provider.id, key, keyring=keyring)
    _report_saved(setup, provider, keyring=keyring)
    return 0


def _find(name: str, providers: Mapping[str, Provider]) -> Provider:
    provider = providers.get(canonical(name.strip().lower())) or providers.get(name)
    if provider is not None:
        return provider
    matches = get_close_matches(name.lower(), providers, n=1, cutoff=_SIMILARITY)
    hint = f"did you mean {matches[0]}?" if matches else f"known are {', '.join(providers)}."
    raise InvalidInputError(
        f"unknown provider {name!r}; {hint} To add your own, use [providers.NAME] in the "
        "configuration file",
        field="provider",
    )


def _ask_provider(providers: Mapping[str, Provider]) -> Provider:
    choices = list(providers.values())
    for number, provider in enumerate(choices, 1):
        mark = translate(" (has a key)") if provider.key else ""
        say(f"{number:3}  {provider.id:<12} {provider.name}{mark}")
    while True:
        try:
            answer = input(translate("Provider (number or name): ")).strip()
        except EOFError:
            raise AuthRequiredError("no provider chosen; nothing changed") from None
        if answer.isdecimal() and 1 <= int(answer) <= len(choices):
            return choices[int(answer) - 1]
        try:
            return _find(answer, providers)
        except InvalidInputError as error:
            complain(translate_rendered(str(error)))


def _ask_key(provider: Provider) -> str:
    from getpass import getpass  # noqa: PLC0415 - only where there is a terminal

    try:
        return getpass(translate("API key for {name} (not shown): ", name=provider.name))
    except EOFError:
        raise AuthRequiredError("no key given; nothing changed") from None


def _test_key(provider: Provider, key: str) -> bool:
    """Return whether the key may be saved: whether the provider did not reject it."""
    from acp_agent.models.provider_check import check_provider  # noqa: PLC0415 - heavy

    answer = check_provider(provider, key, timeout=CHECK_SECONDS)
    if answer.verdict == "refused":
        complain(
            translate(
                "{name} {answer}. Nothing was saved. Copy the key again, or save it untested "
                "with --no-check",
                name=provider.name,
                answer=translate_rendered(answer.detail),
            )
        )
        return False
    if answer.verdict == "ok":
        say(
            translate(
                "{name} {answer}.", name=provider.name, answer=translate_rendered(answer.detail)
            )
        )
    else:
        say(
            translate(
                "Saved without testing the key: {address} {answer}.",
                address=provider.address,
                answer=translate_rendered(answer.detail),
            )
        )
    return True


def _report_saved(setup: UserConfig, provider: Provider, *, keyring: bool) -> None:
    file = setup.paths.secrets_file
    location = (
        translate("the system's keyring")
        if keyring
        else translate("{file}, readable only by you", file=file)
    )
    say(translate("{name} key saved in {place}.", name=provider.name, place=location))
    overriding = [name for name in provider.key_env if setup.environ.get(name, "").strip()]
    if overriding:
        say(translate("Note: the variable {name} is set and takes precedence.", name=overriding[0]))
    say(translate("Next: start a session in your editor, or run `acp-agent models`."))


def run_logout(argv: list[str]) -> int:
    """Delete saved keys; return the exit status."""
    parser = Parser(
        prog="acp-agent logout",
        description="Delete the saved key of a provider. Keys in environment variables are not "
        "affected.",
    )
    parser.add_argument(
        "provider", nargs="?", help="the provider of the key; optional if only one key is saved"
    )
    parser.add_argument("--all", action="store_true", help="delete the keys of all providers")
    options = parser.parse_args(argv)
    return _logout(options.provider, all_providers=options.all)


def _logout(provider: str | None, *, all_providers: bool) -> int:
    secrets = Secrets(find_paths(os.environ).secrets_file, os.environ)
    stored = secrets.stored()
    if not stored:
        say(translate("No keys are saved; save one with `acp-agent login`."))
        return 0
    if all_providers:
        names = stored
    elif provider is not None:
        names = [canonical(provider)]
    elif len(stored) == 1:
        names = stored
    else:
        complain(
            translate(
                "several keys are saved ({names}); run acp-agent logout PROVIDER, or use --all",
                names=", ".join(stored),
            )
        )
        return FAILED
    for name in names:
        if not secrets.delete(name):
            complain(
                translate(
                    "no key of {name} is saved; there are keys of {names}",
                    name=name,
                    names=", ".join(stored),
                )
            )
            return FAILED
        say(translate("Deleted the key of {name}.", name=name))
    return 0
