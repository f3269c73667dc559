"""Which notes are about the user, and so hold in every project: in doubt a note is not."""

import pytest

from vestige.cognition.text.form import USER_CHARS, about_user, is_errand

ABOUT_THE_USER = (
    "I prefer TypeScript over JavaScript.",
    "I like short answers with the command first.",
    "I'm allergic to peanuts.",
    "I am vegetarian.",
    "I live in Porto.",
    "I never work on Fridays.",
    "I always squash commits before merging.",
    "My name is Sam.",
    "My wife is called Ana.",
    "My editor is Helix.",
    "My birthday is on 3 May.",
    "My timezone is CET.",
    "My favourite colour is green.",
    "The user prefers dark mode.",
    "The user likes tea.",
    "User prefers concise answers.",
    "The user's name is Ada.",
    "The user is allergic to peanuts.",
    "The user lives in Berlin and speaks German.",
    "The user works as a nurse.",
    "The user's birthday is 4 July.",
    "Actually, I prefer spaces.",
    "I no longer drink coffee.",
    "I don't like tabs anymore.",
    "I now prefer Emacs.",
    "I moved to Berlin.",
    "I switched from Vim to Helix.",
    "Call me Sam.",
    "Remember that I prefer metric units.",
    "I am a backend engineer from Norway.",
    "I'm a nurse.",
    "I have two kids.",
    "I have a dog called Rex.",
    "I can't stand emojis.",
    "I want answers in German.",
    "I use Helix as my editor.",
    "I'd rather read code than prose.",
    "I'm left-handed.",
    "i prefer tabs over spaces",
    "I work from home on Mondays.",
    "I play the violin.",
    "I was born in 1984.",
    "My daughter starts school in September.",
    "The user dislikes long explanations.",
    "The user is a software engineer.",
    "I like it when examples are short.",
    "User wants short commit messages.",
    "I don’t eat meat.",
    "I’m learning Portuguese.",
    "My dog is called Rex",
    "The user no longer drinks coffee.",
    "I usually get up at six.",
    "My laptop has 32 GB of RAM.",
)
NOT_ABOUT_THE_USER = (
    "I fixed the parser.",
    "I prefer the second approach for the parser.",
    "I'd like to merge this branch.",
    "I like the new dashboard.",
    "I am working on the login page.",
    "I'm debugging a race in the worker.",
    "I am a bit stuck.",
    "I have a failing test.",
    "I have three open pull requests.",
    "The user is redirected to the login page.",
    "The user is a required field.",
    "The user table has three columns.",
    "The user has a role field.",
    "The user's session expires after 30 minutes.",
    "The user's name is stored in Redis.",
    "The user's email is unique.",
    "The user clicks the button.",
    "The user never sees raw errors.",
    "The user is logged out after 30 minutes.",
    "Users prefer dark mode.",
    "We prefer pnpm.",
    "I prefer pnpm in this repo.",
    "I use Python 3.11.",
    "I never commit to main.py.",
    "My branch is called feature-x.",
    "My pull request is ready.",
    "My approach is to cache it.",
    "Ada prefers TypeScript.",
    "Harbour runs on PostgreSQL 14.",
    "I switched to branch dev.",
    "I moved to src/app/main.py.",
    "Do I prefer tea?",
    "I stopped the server.",
    "I think we should use Redis.",
    "I decided to use Redis for sessions.",
    "I want to migrate to PostgreSQL.",
    "I need examples for the docs.",
    "The user wants to export invoices as CSV.",
    "The user likes a post and the counter goes up.",
    "My test fails on CI because of a race.",
    "My manager wants the report on Friday.",
    "I am on call today.",
    "I prefer `foo_bar` here.",
    "The user model has a name.",
    "The user is created by the signup service.",
    "User is notified by email.",
    "The user is an admin of the workspace.",
    "The user is the owner of the document.",
    "I added a cache to the client.",
    "My machine runs the staging server.",
    "I like how retry_backoff works.",
    "The user speaks to the API through a gateway.",
    "The user lives in the users table.",
    "I am using Redis.",
    "I'm not sure about the schema.",
    "The user prefers_dark flag is stored.",
    "I started the migration.",
    "I started writing tests for the parser.",
    "The user moved to the trash can see it again.",
)


@pytest.mark.parametrize("text", ABOUT_THE_USER)
def test_preferences_habits_and_facts_of_the_user_are_recognised(text: str) -> None:
    assert about_user(text)


@pytest.mark.parametrize("text", NOT_ABOUT_THE_USER)
def test_what_is_about_work_a_program_or_somebody_else_is_not(text: str) -> None:
    assert about_user(text) is None


def test_the_words_that_decide_are_named() -> None:
    assert about_user("Actually, I really prefer tea.") == "I really prefer"


def test_a_long_text_or_one_of_several_lines_says_more_than_that() -> None:
    assert about_user("I prefer tea." + " Tea is good." * (USER_CHARS // 13)) is None
    assert about_user("I prefer tea.\nThe mast is oak.") is None


@pytest.mark.parametrize(
    "text", ["call my mother tomorrow", "remind me to book the dentist", "buy groceries on friday"]
)
def test_an_errand_of_the_user_is_recognised(text: str) -> None:
    assert is_errand(text)


@pytest.mark.parametrize(
    "text",
    [
        "rotate the keys every monday",
        "review the pull request",
        "remind me to run the migrations",
        "update the birthday column in users.sql",
        "check the birthday endpoint",
        "delete the child nodes",
    ],
)
def test_work_on_a_project_is_no_errand(text: str) -> None:
    assert not is_errand(text)
