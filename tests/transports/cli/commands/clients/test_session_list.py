"""The list of sessions without a terminal: keys, what is shown, what cannot steer the terminal."""

from vestige.core.transcripts import Action
from vestige.engine.recall.sessions.recall import FoundPassage, FoundSession
from vestige.store.contract.sessions import StoredEntry, StoredSession
from vestige.transports.cli.commands.clients.session_list import HELP, SessionBrowser, plain


def entry(text: str) -> StoredEntry:
    ran = Action(id="1", name="Bash", command="make test", status=2)
    return StoredEntry(
        key=1, session=1, uid="u", group=None, role="user", at=None, text=text, thought="", output="",
        side=False, passage=1, actions=(ran,),
    )  # fmt: skip


def found(number: int) -> FoundSession:
    session = StoredSession(
        key=number, client="claude", id=f"id-{number}", cwd="/w", repository=None, branch=None,
        title=f"Session {number}", parent=None, subagent=False, started=None, ended=1.7e9, resume=None,
        path="x", prompts=1, entries=1,
    )  # fmt: skip
    passage = FoundPassage(
        entry=entry("hello"), excerpt=f"passage {number}", files=(), commands=(("make test", 2),)
    )
    return FoundSession(session=session, score=1.0, passages=(passage,))


def browser(sessions: int = 3) -> SessionBrowser:
    asked: list[tuple[str, bool]] = []

    def search(query: str, here: bool) -> list[FoundSession]:
        asked.append((query, here))
        return [found(number) for number in range(sessions)] if query != "nothing" else []

    made = SessionBrowser(search=search, read=lambda _, first: [entry("the whole text")][first:])
    made.refresh()
    return made


def screen(one: SessionBrowser) -> str:
    return "\n".join(line for line, _ in one.lines(20, 100))


def test_the_chosen_session_stands_out_and_is_previewed() -> None:
    one = browser()
    one.press("down")
    marked = [line for line, stands_out in one.lines(20, 100) if stands_out]
    assert marked[0] == "Session 1"
    assert "passage 1" in screen(one)
    assert "$ make test → 2" in screen(one)
    assert HELP[:20] in screen(one)


def test_the_choice_stays_inside_of_the_list() -> None:
    one = browser()
    one.press("up")
    assert one.chosen == 0
    one.press("page down", 50)
    assert one.chosen == 2


def test_typing_and_deleting_change_the_query() -> None:
    one = browser()
    for character in "login":
        one.type(character)
    one.press("backspace")
    assert one.query == "logi"
    one.press("clear")
    assert one.query == ""


def test_expanding_shows_the_whole_session_and_scrolls() -> None:
    one = browser()
    one.press("expand")
    assert "the whole text" in screen(one)
    one.press("down")
    assert one.scroll == 1
    one.press("expand")
    assert "passage 0" in screen(one)


def test_every_entry_of_a_long_session_is_shown() -> None:
    texts, asked = [f"text {number}" for number in range(2_000)], list[int]()

    def read(_one: FoundSession, first: int) -> list[StoredEntry]:
        asked.append(first)
        return [entry(text) for text in texts[first : first + 500]]

    one = browser()
    one.read = read
    one.press("expand")
    assert "text 0" in screen(one)
    assert asked == [0]
    one.press("last")
    assert "text 1999" in screen(one)
    one.press("up")
    assert "text 1998" in screen(one)
    one.press("first")
    assert "text 0" in screen(one)
    assert asked == [0, 500, 1_000, 1_500, 2_000]


def test_the_end_of_a_long_list_is_one_key_away() -> None:
    one = browser(200)
    one.press("last")
    assert "Session 199" in screen(one)
    one.press("first")
    assert one.chosen == 0


def test_an_id_is_copied_and_a_session_resumed() -> None:
    one = browser()
    one.press("copy")
    assert one.copied == "id-0"
    assert "Copied id-0" in screen(one)
    assert one.press("resume") == "resume"
    assert one.press("quit") == "quit"


def test_an_empty_list_answers_every_key() -> None:
    one = browser(0)
    assert [one.press(key) for key in ("down", "expand", "copy", "resume", "scope")] == [None] * 5
    assert "0 sessions, this folder" in screen(one)


def test_the_lines_fit_every_screen() -> None:
    one = browser()
    for height, width in ((1, 1), (3, 10), (5, 200), (40, 20)):
        shown = one.lines(height, width)
        assert len(shown) <= height
        assert all(len(line) < max(width, 1) + 1 for line, _ in shown)


def test_a_text_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b]0;title\x07b\r\u202e") == "a ]0;title b  "
