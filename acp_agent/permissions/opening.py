"""Open the user's permissions: policy rules, remembered grants and the gate."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from acp_agent.config.localization import choose_language
from acp_agent.config.paths import Paths
from acp_agent.config.types import Config
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.policy.loading import Policies, user_rules
from acp_agent.trust.store import TrustStore


class UserPermissions(Struct, frozen=True):
    """The gate, with the policies and grants that it uses."""

    gate: PolicyGate
    policies: Policies
    grants: GrantStore


def open_permissions(
    paths: Paths,
    config: Config,
    environ: Mapping[str, str],
    *,
    home: str | None = None,
    trust: TrustStore | None = None,
) -> UserPermissions:
    """Open the permissions of the user whose files are at `paths`. Blocks while it reads them.

    Args:
        home: the user's home folder; None uses that of the process.

    Raises:
        ConfigError: a rule is invalid or does not match its examples.
    """
    trust = trust or TrustStore(paths.trust_file, config.trusted_folders)
    policies = Policies(user_rules(config.permissions, paths.config_file), trusts=trust.trusts)
    grants = GrantStore(paths.grants_file)
    gate = PolicyGate(
        grants,
        language=choose_language(config.language, environ),
        home=home,
        program_files=paths.program_files,
        policies=policies,
        draft_folder=config.draft_folder,
    )
    return UserPermissions(gate, policies, grants)
