"""`python -m acp_agent` is `acp-agent`."""

import sys

from acp_agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
