"""A program that confines itself with Landlock, then executes a command; see `confine.py`.

    python -I -S launcher.py DESCRIPTOR COMMAND [ARGUMENT ...]

It is small because Python compiles the main file at each start, and imported modules only once.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))

    from confine import main  # type: ignore[import-not-found]

    os._exit(main(sys.argv[1:]))  # a normal exit of Python takes milliseconds
