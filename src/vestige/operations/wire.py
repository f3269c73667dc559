"""Values as they travel: what operations take and what they answer."""

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel, to_snake


class Wire(BaseModel):
    """A value as it travels: camelCase names, absent where nothing is known."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    @property
    def exit_code(self) -> int:
        """What the command line ends with after this answer."""
        return 0

    def wire(self) -> dict[str, Any]:
        """This value as JSON-able data."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Arguments(Wire):
    """The arguments of an operation: unknown ones are refused, both spellings are taken.

    What older clients send along and what means nothing here is dropped; a field of that name wins.
    """

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False, strict=False)

    tolerated: ClassVar[tuple[str, ...]] = ("agent_id", "context", "mode")

    @model_validator(mode="before")
    @classmethod
    def _understood(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if not cls.ignores(str(name))}

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, given: Any, info: ValidationInfo) -> Any:
        """`true` counts as 1 in Python, but nobody means it."""
        if isinstance(given, bool) and info.field_name:
            kinds = _kinds(cls.model_fields[info.field_name].annotation)
            if bool not in kinds and not kinds.isdisjoint((int, float)):
                raise ValueError("expected a number, not true or false")
        return given

    @classmethod
    def ignores(cls, name: str) -> bool:
        """Whether an argument is taken and dropped."""
        plain = to_snake(name)
        return plain in cls.tolerated and plain not in cls.model_fields


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation such as `int | None`."""
    inner = get_args(annotation)
    return {annotation} if not inner else {kind for one in inner for kind in _kinds(one)}
