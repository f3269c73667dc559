"""What an in-memory store finds wrong in itself."""

from vestige.store.inmemory.state import State, words_of
from vestige.store.trouble import Trouble, about


def examine(state: State) -> list[Trouble]:
    """What is derived is compared with what it was derived from."""
    worded = [name for name, held in state.held.items() if held.words != words_of(held.memory)]
    loose = {
        end
        for edge in state.edges.values()
        for end in (edge.source_id, edge.target_id)
        if end not in state.held
    }
    return [
        *about(
            "texts",
            "The words that memories are found by are not those of their text.",
            worded,
            repair="words",
        ),
        *about("references", "Edges lead to memories that are not here.", sorted(loose)),
    ]
