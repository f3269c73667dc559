"""The names of types are public: programs import them, and generated clients of others have them."""

from pathlib import Path

from vestige.client import values
from vestige.operations.registry.groups import registry
from vestige.transports.http.openapi.document import document

NAMES = (Path(__file__).parent / "data" / "names.txt").read_text(encoding="utf-8").split()
"""Every name that a release had; names are added, and none is taken away."""


def test_the_client_keeps_the_name_of_every_type() -> None:
    assert {name for name in NAMES if not hasattr(values, name)} == set()


def test_the_openapi_document_keeps_the_name_of_every_type() -> None:
    assert set(NAMES) - set(document(registry)["components"]["schemas"]) == set()


def test_the_list_has_the_name_of_every_type_of_the_document() -> None:
    assert set(document(registry)["components"]["schemas"]) - {"Problem"} == set(NAMES)
