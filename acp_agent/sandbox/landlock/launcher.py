"""A program that confines itself with Landlock, then becomes another: see `confine.py`.

    python -I -S launcher.py DESCRIPTOR COMMAND [ARGUMENT ...]

It is small since Python compiles the file that it is given each time, and modules once.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))

    from confine import main  # type: ignore[import-not-found]

    os._exit(main(sys.argv[1:]))  # what ends Python in order takes milliseconds
