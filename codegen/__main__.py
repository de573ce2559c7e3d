"""`python -m codegen` writes the generated files of this repository."""

from __future__ import annotations

from pathlib import Path

from acp_agent.config.schema import FILE_NAME as CONFIG, config_schema
from codegen import workflow_schema
from codegen.bundled_index import index_text
from codegen.completion_grammar import grammar_text
from codegen.definition_schemas import PUBLISHED, definition_schema
from codegen.editor_settings import FILES, published_settings
from codegen.extension_schemas import FILE_NAME as EXTENSIONS, extensions_schema

ROOT = Path(__file__).parents[1]


def generated_files() -> dict[str, bytes]:
    """Return the content of each generated file, by its path in the repository."""
    texts = {
        f"schemas/{CONFIG}": config_schema(),
        f"schemas/{workflow_schema.FILE_NAME}": workflow_schema.workflow_schema(),
        f"schemas/{EXTENSIONS}": extensions_schema(),
        "acp_agent/cli/completion/grammar.json": grammar_text(),
        **{f"schemas/{name}": definition_schema(name) for name in PUBLISHED},
        **{
            f"acp_agent/extensions/bundled/{kind}/index.json": index_text(kind)
            for kind in ("skills", "agents")
        },
    }
    return {path: text.encode() for path, text in texts.items()} | {
        f"editor-plugins/{editor}/{name}": published_settings(editor)
        for editor, name in FILES.items()
    }


def main() -> None:
    """Write every file."""
    for path, content in generated_files().items():
        (ROOT / path).write_bytes(content)


if __name__ == "__main__":
    main()
