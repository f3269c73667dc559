"""Amp: `~/.local/share/amp/threads/T-<uuid>.json`, a file that is rewritten with each message."""

from collections.abc import Iterator

from vestige.core.transcripts import Entry, Restarted, SessionFacts, Step
from vestige.exchange.transcripts.factory import entry_of
from vestige.exchange.transcripts.shape import Json, State, listing, mapping, seconds, text_of

CLIENT = "amp"


def whole(document: Json, state: State) -> Iterator[Step]:
    """The steps of a thread."""
    session = text_of(document.get("id")) or str(state["session"])
    yield Restarted(session=session)
    created = seconds(document.get("created"))
    yield SessionFacts(
        id=session, title=text_of(document.get("title")), title_rank=2, started=created, ended=created,
        cwd=_folder(document),
    )  # fmt: skip
    for number, message in enumerate(listing(document.get("messages"))):
        role = message.get("role")
        if role not in ("user", "assistant"):
            continue
        at = seconds(mapping(message.get("meta")).get("sentAt")) or seconds(
            mapping(message.get("usage")).get("timestamp")
        )
        yield SessionFacts(id=session, started=at, ended=at)
        uid = f"{session}:{message.get('messageId', number)}"
        one = Entry(session=session, uid=uid, role=role, at=at, replaces=True)
        yield entry_of(message.get("content"), one)


def _folder(document: Json) -> str | None:
    """The folder of the first tree that the client worked in."""
    trees = mapping(mapping(document.get("env")).get("initial")).get("trees")
    uri = next((text_of(one.get("uri")) for one in listing(trees)), None)
    return uri.removeprefix("file://") if uri else None
