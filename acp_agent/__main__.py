"""`python -m acp_agent` is `acp-agent`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] != __file__.rpartition("/acp_agent/")[0]:
        del sys.path[0]  # the folder that Python was started in, which may be anybody's project
    from acp_agent.cli.main import main

    sys.exit(main())
