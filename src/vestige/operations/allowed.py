"""What an argument may be, in words: the hint of every error about one."""

from collections.abc import Sequence

from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from vestige.schema_words import in_words


def allowed(model: type[BaseModel], where: Sequence[int | str]) -> str | None:
    """What may stand at a place in the arguments, such as ("items", 3, "tags"); None for no such place."""
    names = [to_snake(part) if isinstance(part, str) else part for part in where]
    return in_words(model.model_json_schema(by_alias=False), names)
