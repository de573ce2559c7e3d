"""A lock for the first use of msgspec types, which is not thread-safe.

msgspec builds its description of a type when the type is first decoded. A second thread that uses
the type at that moment finds an incomplete description, and the process crashes. So hold
`first_use` while decoding to a type that another thread may be decoding to as well.
"""

from __future__ import annotations

import threading
from typing import Final

first_use: Final = threading.RLock()
