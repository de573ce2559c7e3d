"""The types of the MCP servers in the configuration file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from acp_agent.config.policy_types import Table
from acp_agent.config.sandbox_types import Domain

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Variable = Annotated[
    str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)", examples=["GITHUB_TOKEN"])
]


class McpOAuthConfig(Table, frozen=True, kw_only=True):
    """How `acp-agent mcp login` introduces itself to the authorization server."""

    client_id: Annotated[str, Meta(description="A client that you registered there.")] = ""
    client_secret_env: Annotated[
        Variable | None,
        Meta(description="The variable with the secret of that client, if it has one."),
    ] = None
    grant: Annotated[
        Literal["authorization_code", "client_credentials"],
        Meta(description="`client_credentials`: that client logs in by itself, without a browser."),
    ] = "authorization_code"
    client_metadata_url: Annotated[
        str, Meta(description="Where a client's metadata document is, which is then its id.")
    ] = ""
    scopes: Annotated[list[str], Meta(description="What to ask for. Empty: what it names.")] = []


class McpServerConfig(Table, frozen=True, kw_only=True):
    """An MCP server: a program, or an address. `${VAR}` and `${VAR:-default}` are expanded."""

    type: Annotated[
        Literal["stdio", "http", "sse"] | None,
        Meta(description="How it is reached. Without it: stdio for a command, http for a URL."),
    ] = None
    command: Annotated[str, Meta(description="The program.")] = ""
    args: Annotated[list[str], Meta(description="Its arguments.")] = []
    env: Annotated[
        dict[str, str], Meta(description="Variables of its environment, with their values.")
    ] = {}
    env_vars: Annotated[
        list[Variable], Meta(description="Variables that it gets from your environment.")
    ] = []
    cwd: Annotated[
        str, Meta(description="The folder it runs in. Without it: the session's folder.")
    ] = ""
    url: Annotated[str, Meta(description="Its address.")] = ""
    headers: Annotated[dict[str, str], Meta(description="Headers of every request to it.")] = {}
    enabled: Annotated[bool, Meta(description="Whether it is started.")] = True
    allowed_tools: Annotated[
        list[str] | None, Meta(description="The only tools of it that are offered.")
    ] = None
    denied_tools: Annotated[list[str], Meta(description="Tools of it that are not offered.")] = []
    sandbox: Annotated[
        bool | None,
        Meta(description="Run the program in the sandbox. Without it: sandbox.mcp_servers."),
    ] = None
    hosts: Annotated[list[Domain], Meta(description="Hosts that it reaches from the sandbox.")] = []
    sampling: Annotated[
        bool,
        Meta(description="Whether it may ask for a model's answers. You approve each request."),
    ] = False
    oauth: McpOAuthConfig = McpOAuthConfig()
    start_timeout: Annotated[Seconds | None, Meta(description="Seconds until it can be used.")] = (
        None
    )
    call_timeout: Annotated[Seconds | None, Meta(description="Seconds that a call may run.")] = None
