"""A lock for the first use of msgspec types, which is not safe in two threads at the same time.

msgspec describes a type when it is first decoded to. A second thread that uses the type meanwhile
finds half a description, and the process ends with a segmentation fault. So whoever decodes to a
type that another thread may be decoding to as well holds `first_use` while doing it.
"""

from __future__ import annotations

import threading
from typing import Final

first_use: Final = threading.RLock()
