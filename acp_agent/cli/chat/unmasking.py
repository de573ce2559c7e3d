"""What is hidden in the text that is being typed, or was pasted, written out where it stands."""

from __future__ import annotations

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from acp_agent.cli.output import inert


class Unmasking(Processor):
    """Shows each character of a line as `inert` writes it; the text itself stays what it is.

    Otherwise a mark that reorders its neighbours could make a pasted command look like another one.
    """

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """The line as it is shown, and which of its columns belong to which character."""
        text = fragment_list_to_text(transformation_input.fragments)
        if inert(text) == text:
            return Transformation(transformation_input.fragments)
        fragments = explode_text_fragments(transformation_input.fragments)
        shown: StyleAndTextTuples = []
        starts: list[int] = []  # of each character, in what is shown
        at = 0
        for style, character, *rest in fragments:
            written = inert(character)
            starts.append(at)
            at += len(written)
            shown.append((style, written, *rest))  # type: ignore[arg-type] # as it came, with its mouse handler if any
        starts.append(at)

        def to_shown(position: int) -> int:
            return starts[position] if position < len(starts) else at + position - len(starts) + 1

        def to_source(position: int) -> int:
            if position >= at:
                return len(starts) - 1 + position - at
            return max(index for index, start in enumerate(starts) if start <= position)

        return Transformation(shown, source_to_display=to_shown, display_to_source=to_source)
