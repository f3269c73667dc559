"""Memories that a team shares in its repository: written on request, read back on `init` and `refresh`.

What is read back comes from other people. So it has the origin `document`, the git author of its file, and an
id of its own; orders wait in the review inbox, secrets are removed. When a file is gone, the validity of its
memory ends; when it returns, the memory holds again. Nothing is deleted because of a file.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from vestige.core.documents import PENDING
from vestige.core.errors import Conflict, InvalidInput, NotFound, StoreError, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory, Record
from vestige.core.origin import Origin
from vestige.engine.care.scan_secrets import texts_of
from vestige.engine.context import Call
from vestige.engine.exchange.import_portable import embed_missing
from vestige.engine.ingest.inbox import (
    POLICY,
    document_of,
    flags_in,
    pending_import,
    policy_of,
    waiting_event,
)
from vestige.engine.ingest.secrets import find_in_fields, secret_error
from vestige.engine.project.citations import (
    MOST_CITATIONS,
    MOST_LINES,
    Citation,
    line_hashes,
    of_memory,
    to_metadata,
)
from vestige.engine.project.files.fail_safe import SHARED_FOLDER
from vestige.engine.project.files.secrets import without_secrets
from vestige.engine.project.files.source_file import read_text
from vestige.engine.project.git import commits_of, text_at
from vestige.engine.project.memory.portable_copy import belongs
from vestige.engine.project.memory.team_file import (
    MOST_BYTES,
    SHARED,
    SharedCitation,
    SharedMemory,
    decoded,
    encoded,
    file_name,
    lines_digest,
    name_end,
    shared_note,
)
from vestige.engine.project.memory.team_reader import SharedReading
from vestige.engine.project.place import Project
from vestige.engine.project.search import FileTexts
from vestige.engine.revise import created_event, find_document, load, next_revision, updated_event
from vestige.exchange.importers.records import derived_id
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import DROPPED, Add, Change, Put, Revise

MOST_COMMITS = 5_000
MOST_DROPPED = 1_000
MOST_CITED_CHARS = 256_000_000
"""How much text one reading compares with citations; the rest of them cannot be verified."""
GIT_CHARS = 50_000
"""What it counts to start git for the text of a commit."""
CHANGED, REMOVED, RETURNED = "shared file changed", "shared file removed", "shared file returned"
"""The reasons of the revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWrite:
    """A memory and its file, which is relative to the root of the project. `written` is false if the file
    said the same already."""

    memory_id: str
    file: str
    written: bool


# -- Writing


def share(call: Call, project: Project, memory_ids: Sequence[str]) -> list[SharedWrite]:
    """Write memories of a project to files of their own. All are checked before the first file is written."""
    records = [_shareable(call, project, memory_id) for memory_id in dict.fromkeys(memory_ids)]
    folder = _folder(project)
    names = sorted(one.name for one in folder.iterdir())
    return [_write(folder, names, record.memory) for record in records]


def _shareable(call: Call, project: Project, memory_id: str) -> Record:
    record = load(call, memory_id)
    memory = record.memory
    if not belongs(project.scope, memory.scope):
        raise NotFound(f"There is no memory {memory_id} in this project.", details={"id": memory_id})
    why = _why_not(memory, call.engine.now())
    if why is not None:
        raise InvalidInput(f"The memory {memory_id} {why}.", details={"id": memory_id})
    found = find_in_fields({"content": memory.content, "tags": memory.tags, "source": memory.source})[1]
    if found:
        raise secret_error(found)
    flags = flags_in([memory.content, *memory.tags, memory.source or ""], Origin.DOCUMENT.value)
    if flags:
        raise InvalidInput(
            f"The memory {memory_id} may give orders to an agent ({', '.join(flags)}): readers would hold it "
            "for a review.",
            hint="Word it as a statement of what holds in this project.",
            details={"id": memory_id, "flags": list(flags)},
        )
    return record


def _why_not(memory: Memory, now: datetime) -> str | None:
    if SHARED in memory.metadata:
        return "came from a shared file already"
    if memory.suppression_count or memory.archived_at is not None:
        return "is hidden"
    if memory.superseded_by is not None or (memory.valid_until is not None and memory.valid_until <= now):
        return "does not hold any more"
    return None


def _folder(project: Project) -> Path:
    folder = project.root / SHARED_FOLDER
    if folder.is_symlink():
        raise StoreError(
            f"{folder} is a symbolic link, which a project may not have.", hint="Remove the link."
        )
    try:
        folder.mkdir(exist_ok=True)
    except OSError as exc:
        raise StoreError(f"The folder {folder} cannot be made: {exc.strerror}.") from exc
    return folder


def _write(folder: Path, names: list[str], memory: Memory) -> SharedWrite:
    end = name_end(memory.id)
    name = next((one for one in names if one.endswith(end)), None) or file_name(memory.id, memory.content)
    text = encoded(_shared_of(memory))
    done = SharedWrite(memory_id=memory.id, file=f"{SHARED_FOLDER}/{name}", written=False)
    if len(text.encode()) > MOST_BYTES:
        raise InvalidInput(f"The memory {memory.id} is longer than a shared file may be.")
    if read_text(folder, name, most_bytes=MOST_BYTES) == text:
        return done
    try:
        handle, partial = tempfile.mkstemp(dir=folder, prefix=".", suffix=".partial")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(partial).chmod(0o644)
            Path(partial).replace(folder / name)
        finally:
            Path(partial).unlink(missing_ok=True)
    except OSError as exc:
        raise StoreError(f"{folder / name} cannot be written: {exc.strerror}.") from exc
    return replace(done, written=True)


def _shared_of(memory: Memory) -> SharedMemory:
    cites = tuple(
        SharedCitation(
            path=one.path,
            start=one.start,
            end=one.end,
            symbol="".join(one.symbol.split()),
            commit=one.commit,
            lines=lines_digest(one.lines) if one.lines else "",
        )
        for one in of_memory(memory)
    )
    return SharedMemory(
        id=memory.id,
        content=memory.content,
        kind=memory.node_type,
        tags=tuple(" ".join(tag.split()) for tag in memory.tags),
        source=" ".join(memory.source.split()) if memory.source else None,
        occurred_at=memory.occurred_at,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        cites=cites,
    )


# -- Reading


def read_files(call: Call, project: Project, names: Sequence[str], before: Sequence[Record]) -> SharedReading:
    """Read these files. `before` are the memories that came from files earlier."""
    reading = _TeamReader(call, project, before)
    for name in names:
        call.check()
        reading.take(name)
    reading.end_removed()
    if reading.written:
        embed_missing(call)
    return reading.done


class _TeamReader:
    """One reading of the shared files of a project."""

    def __init__(self, call: Call, project: Project, before: Sequence[Record]) -> None:
        self._call, self._project = call, project
        self._now = call.engine.now()
        self._texts = FileTexts(project=project)
        self._known = {one.memory.id: one.memory for one in before}
        self._seen: set[str] = set()
        self._authors: dict[str, str] | None = None
        self._chars_left = MOST_CITED_CHARS
        self._hashed: tuple[str, list[str]] = ("", [])
        self.done = SharedReading()
        self.written = False

    def take(self, name: str) -> None:
        """Bring the memory of one file up to date."""
        self.done.files += 1
        try:
            shared, memory_id = self._decoded(name)
            if self._is_own(shared):
                self.done.own += 1
            else:
                self._bring(name, shared, memory_id)
        except (InvalidInput, Conflict) as exc:
            self.done.left[name] = exc.message
            # A file that cannot be read is not gone: its memory stays as it is.
            self._seen.update(one.id for one in self._known.values() if _origin_file(one) == name)

    def _decoded(self, name: str) -> tuple[SharedMemory, str]:
        """What a file says, and the id of its memory here."""
        text = read_text(self._project.root, f"{SHARED_FOLDER}/{name}", most_bytes=MOST_BYTES)
        if text is None:
            raise InvalidInput("it is no plain text file, or too large")
        shared = decoded(text)
        memory_id = derived_id(SHARED, self._project.scope, shared.id)
        if memory_id in self._seen:
            raise InvalidInput("another file has the same id")
        self._seen.add(memory_id)
        return shared, memory_id

    def _is_own(self, shared: SharedMemory) -> bool:
        """Whether a file states a memory of this store, as it is or as it was once."""
        store, access = self._call.engine.store, self._call.access
        found = store.get_many([shared.id], access=access)
        if not found or not belongs(self._project.scope, found[0].memory.scope):
            return False
        memory = found[0].memory
        past = [one.memory for one in store.history(shared.id, access=access)]
        wordings = {words.strip("\n") for one in (memory, *past) for words in (one.content, *one.phrasings)}
        return SHARED not in memory.metadata and shared.content in wordings

    def _bring(self, name: str, shared: SharedMemory, memory_id: str) -> None:
        known = self._known.get(memory_id)
        author = self._author(name)
        noted = shared_note(known) if known is not None else {}
        if noted and (noted.get("digest"), noted.get("by")) == (shared.digest, author):
            if "removed" in noted and known is not None:
                self._revise(known, self._memory(name, shared, memory_id, author), RETURNED)
                self.done.returned += 1
            return
        wanted = self._memory(name, shared, memory_id, author)
        clean, found = find_in_fields(texts_of(wanted))
        wanted = replace(wanted, **clean)
        self.done.redacted += len(found)
        if self._held(wanted, shared):
            return
        if known is not None:
            self._revise(known, wanted, CHANGED)
            self.done.changed += 1
        elif self._call.engine.store.tombstone(memory_id, access=self._call.access) is None:
            self._commit([Add(memory=wanted)])
            self._call.engine.events.emit(created_event(wanted, self._now))
            self.done.added += 1

    def _memory(self, name: str, shared: SharedMemory, memory_id: str, author: str) -> Memory:
        noted = {"file": name, "id": shared.id, "digest": shared.digest, "by": author}
        metadata: dict[str, Any] = {SHARED: noted | ({"source": shared.source} if shared.source else {})}
        cited = [self._citation(one) for one in shared.cites[:MOST_CITATIONS]]
        try:
            return Memory(
                id=memory_id,
                content=shared.content,
                created_at=self._now,
                updated_at=self._now,
                node_type=shared.kind,
                tags=shared.tags,
                scope=self._project.scope,
                source=f"{SHARED_FOLDER}/{name}",
                author=author or None,
                occurred_at=shared.occurred_at,
                valid_from=shared.valid_from,
                valid_until=shared.valid_until,
                origin=Origin.DOCUMENT.value,
                metadata=metadata | (to_metadata(cited) if cited else {}),
            )
        except VestigeError as exc:
            raise InvalidInput(exc.message) from exc

    def _citation(self, one: SharedCitation) -> Citation:
        """The citation with the lines it was made of: from the file as it is, or from its commit. Without
        them it cannot be verified."""
        made = Citation(path=one.path, start=one.start, end=one.end, symbol=one.symbol, commit=one.commit)
        if not one.lines or not 0 < one.start <= one.end < one.start + MOST_LINES:
            return made
        for lines in self._wordings(one):
            cited = tuple(lines[one.start - 1 : one.end])
            if lines_digest(cited) == one.lines:
                return replace(made, lines=cited)
        return made

    def _wordings(self, one: SharedCitation) -> Iterator[list[str]]:
        if self._chars_left > 0:
            source = self._texts.source(one.path)
            if source is not None:
                yield self._hashes(source.text)
        if self._chars_left > 0:
            self._chars_left -= GIT_CHARS
            then = text_at(self._project.root, one.commit, one.path)
            if then is not None:
                yield self._hashes(without_secrets(then, one.path)[0])

    def _hashes(self, text: str) -> list[str]:
        """The hashes of the lines of a text; those of the last one are at hand."""
        if text != self._hashed[0]:
            self._call.check()
            self._hashed = (text, line_hashes(text))
            self._chars_left -= len(text)
        return self._hashed[1]

    def _held(self, wanted: Memory, shared: SharedMemory) -> bool:
        """Whether a text has to wait for a review; it is then put into the inbox, once."""
        flags = flags_in(texts_of(wanted), wanted.origin)
        policy = policy_of(self._call, wanted.scope)
        if policy == "off" or (not flags and policy != "all"):
            return False
        waiting = pending_import(
            replace(wanted, id=derived_id(SHARED, wanted.scope, shared.id, shared.digest)), flags, self._now
        )
        if not flags:
            waiting = replace(waiting, reason=POLICY)
        if find_document(self._call, PENDING, waiting.id) is None and not self._was_dropped(waiting.id):
            self._commit([Put(document=document_of(waiting))])
            self._call.engine.events.emit(waiting_event(waiting, self._now))
            self.done.waiting += 1
        return True

    def _was_dropped(self, pending_id: str) -> bool:
        query = LogQuery(kinds=(DROPPED,))
        events = self._call.engine.store.latest(query, access=self._call.access, limit=MOST_DROPPED)
        return any(event.payload == {"kind": PENDING, "id": pending_id} for event in events)

    def _revise(self, known: Memory, wanted: Memory, reason: str) -> None:
        kept = {
            name: getattr(known, name)
            for name in (
                "created_at", "updated_at", "revision", "pinned", "suppression_count", "suppressed_at",
                "archived_at", "superseded_by", "domains", "domain_scores",
            )
        }  # fmt: skip
        memory = next_revision(replace(wanted, **kept), self._now)
        self._commit([Revise(memory=memory, reason=reason)])
        self._call.engine.events.emit(updated_event(memory, self._now, ("content", "validity")))

    def end_removed(self) -> None:
        """End the validity of memories whose file is gone."""
        for memory_id, memory in self._known.items():
            noted = shared_note(memory)
            if memory_id in self._seen or "removed" in noted:
                continue
            ended = max(self._now, memory.valid_from or self._now)
            until = min(ended, memory.valid_until) if memory.valid_until is not None else ended
            metadata = {**memory.metadata, SHARED: {**noted, "removed": self._now.isoformat()}}
            wanted = replace(memory, valid_until=until, metadata=metadata)
            self._commit([Revise(memory=next_revision(wanted, self._now), reason=REMOVED)])
            self._call.engine.events.emit(updated_event(wanted, self._now, ("validity",)))
            self.done.ended += 1

    def _commit(self, changes: list[Change]) -> None:
        self._call.engine.store.commit(changes, access=self._call.access)
        self.written = True

    def _author(self, name: str) -> str:
        if self._authors is None:
            self._authors = {}
            for commit in commits_of(self._project.root, most=MOST_COMMITS, paths=(SHARED_FOLDER,)):
                for path in commit.paths:
                    self._authors.setdefault(path.rsplit("/", 1)[-1], " ".join(commit.author.split())[:80])
        return self._authors.get(name, "")


def _origin_file(memory: Memory) -> str:
    return str(shared_note(memory).get("file", ""))
