"""Tools for skills besides `acp_agent.tools.skill`: skills as tools of others, and writing one."""
