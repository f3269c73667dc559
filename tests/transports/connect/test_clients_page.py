"""The page about clients says what the table in the code says."""

from testbed.failures import each
from testbed.project import PROJECT
from vestige.transports.connect.clients import CLIENTS, AgentClient

PAGE = PROJECT / "docs" / "howto" / "connect-clients.md"


def row(client: AgentClient) -> str:
    """The line about a client in the table of the page."""

    def files(names: tuple[str, ...]) -> str:
        return " or ".join(f"`{name}`" for name in names) or "–"

    http = "yes" if client.http else "no"
    key = ("yes" if client.reference else "no") if client.http else "–"
    user, project = files(client.files("user", "linux")), files(client.project)
    return f"| `{client.name}` | {user} | {project} | {http} | {key} |"


@each("client", CLIENTS.values(), ids=lambda one: one.name)
def test_the_page_has_the_facts_about_a_client_and_where_they_are_from(client: AgentClient) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert row(client) in text.splitlines()
    for source in client.source:
        assert f"<{source}>" in text
