"""The second signal: what a new statement does to an old one, kind by kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.gate.conflict import find_conflict


def decisive(new: str, old: str) -> str | None:
    """The kind of a conflict that ends the old statement."""
    found = find_conflict(new, old)
    return found.kind if found and found.decisive else None


@each(
    ("old", "new"),
    [
        ("The form validates emails.", "The form does not validate emails."),
        ("Guests may bring pets.", "Guests may not bring pets."),
        ("Ada is available on Fridays.", "Ada is unavailable on Fridays."),
        ("The service is stateless.", "The service is stateful."),
        ("Lena is willing to travel.", "Lena is unwilling to travel."),
        ("Smoking is allowed on the terrace.", "Smoking is forbidden on the terrace."),
        ("The flag is on.", "The flag is off."),
        ("Use global state in handlers.", "Avoid global state in handlers."),
        ("Ask before running shell commands.", "You needn't ask before running shell commands."),
        ("Ada drinks coffee with milk.", "Ada gave up coffee with milk."),
        ("Dogs are welcome on the beach.", "Dogs are not welcome on the beach."),
    ],
)
def test_a_denial_ends_what_it_denies(old: str, new: str) -> None:
    assert decisive(new, old) == "polarity"


@each(
    ("old", "new"),
    [
        ("The cache is enabled in production.", "The cache is not disabled in production."),
        ("I can't eat gluten.", "Gluten is something I cannot eat."),
        ("Keep functions under 40 lines.", "Functions should not be longer than 40 lines."),
        ("The user wants answers without small talk.", "The user wants answers and no small talk."),
        ("The old importer is slow.", "The new importer is fast."),
        ("Merge only when the checks pass.", "Do not merge unless the checks pass."),
        ("The office has no parking.", "There's nowhere to park at the office."),
        ("Send the report as PDF, not Word.", "Send the report as PDF rather than Word."),
        ("We chose SQLite over Postgres for the app.", "For the app SQLite was picked instead of Postgres."),
        ("Use retries for GET requests.", "Do not use retries for POST requests."),
        ("On Tuesday the pager went off.", "On Wednesday the pager did not go off."),
    ],
)
def test_a_double_negation_a_bound_and_another_thing_deny_nothing(old: str, new: str) -> None:
    assert find_conflict(new, old) is None or not decisive(new, old)


@each(
    ("old", "new"),
    [
        ("Miso gets half a cup of kibble.", "Miso gets a full cup of kibble."),
        ("Rex gets a quarter of a can each morning.", "Rex gets half a can each morning."),
        ("The recipe needs one and a half cups of flour.", "The recipe needs two cups of flour."),
        ("Ada takes half a tablet at night.", "Ada takes a whole tablet at night."),
        ("The standup takes half an hour.", "The standup takes a quarter of an hour."),
        ("The plant needs ½ jug of water.", "The plant needs ¾ jug of water."),
    ],
)
def test_a_fraction_is_an_amount_like_a_number(old: str, new: str) -> None:
    assert decisive(new, old) == decisive(old, new) == "value"


@each(
    ("old", "new"),
    [
        ("The standup takes half an hour.", "The standup takes 30 minutes."),
        ("Rex gets half a cup of kibble.", "Miso gets a full cup of kibble."),
        ("Rex gets half a cup in the morning.", "Rex gets a full cup in the evening."),
        ("Ada drank half a bottle of cider.", "Ada drank a full bottle of cider."),
        ("Half the team works remotely.", "The whole team works remotely."),
    ],
)
def test_another_amount_of_another_thing_or_of_once_ends_nothing(old: str, new: str) -> None:
    assert decisive(new, old) is None


@each(
    ("old", "new"),
    [
        ("Ada lives in Berlin.", "Ada lives in Hamburg."),
        ("The default branch is master.", "The default branch is main."),
        ("Ben's wife is called Laura.", "Ben's wife is called Sofia."),
        ("Log level in production: INFO", "Log level in production: WARNING"),
        ("Default page size = 50", "Default page size = 100"),
        ("Our accountant is Mr. Haddad.", "Our accountant is Ms. Lindqvist."),
        ("We track bugs in Jira.", "We track bugs in Linear."),
        ("Marta leads the data team.", "Elena leads the data team."),
        ("Files larger than 10 MB are rejected.", "Files larger than 20 MB are rejected."),
        ("Standup is at 9:30.", "Standup is at 10:00."),
        ("The on-call engineer this week is Wei.", "Dimitri is the on-call engineer this week."),
        ("The offsite will be held in Porto.", "The offsite will be held in Valencia."),
        ("The bot answers in French by default.", "The bot answers in German by default."),
        ("Our fiscal year starts in January.", "Our fiscal year begins in April."),
        ("The key is under the blue flowerpot.", "The key is in the lockbox by the meter."),
        ("Our CFO is Beata. She joined in 2021.", "Our CFO is Ruben. She joined in 2021."),
    ],
)
def test_another_value_of_an_attribute_with_one_ends_the_old_one(old: str, new: str) -> None:
    assert decisive(new, old) == "value"


@each(
    ("old", "new"),
    [
        ("Anna speaks French.", "Anna speaks Spanish."),
        ("Emil is afraid of spiders.", "Emil is afraid of thunderstorms."),
        ("Kasia is a runner.", "Kasia is a vegetarian."),
        ("Ada is German.", "Ada is Catholic."),
        ("Sofia has worked on the billing service.", "Sofia has worked on the search service."),
        ("The endpoint can return 401.", "The endpoint can return 429."),
        ("Our app runs on Android.", "Our app runs on iOS."),
        ("The login page is slow.", "The login page is ugly."),
    ],
)
def test_another_value_of_an_attribute_with_many_stands_beside_the_old_one(old: str, new: str) -> None:
    found = find_conflict(new, old)
    assert found is not None
    assert (found.kind, found.decisive) == ("slot", False)


@each(
    ("old", "new"),
    [
        ("Ada is 34.", "Ada is German."),
        ("Ada is in Berlin.", "Ada is a nurse."),
        ("The meeting is on Tuesday.", "The meeting is in room 4B."),
        ("Theo is scared of flying.", "Theo is good at cooking."),
        ("Ada lives in Berlin.", "Ada's brother lives in Hamburg."),
        ("The min password length is 8.", "The max password length is 64."),
        ("Tom's flight to Rome leaves at 9:10.", "Tom's flight from Rome leaves at 18:25."),
        ("Ran 5 km on Monday.", "Ran 8 km on Tuesday."),
        ("Build 881 is broken.", "Build 882 is fine."),
        ("Use retries for GET requests.", "Do not use retries for POST requests."),
        ("My mother is allergic to nuts.", "My father is not allergic to nuts."),
        ("Ada works at Google.", "Ada started a pottery course."),
        ("Known customers: Brightwell Foods.", "Known customers: Harlow Shipping."),
        ("Nina is pregnant.", "Nina moved her desk to the window."),
        ("v2.1 is in staging.", "v2.0 was released yesterday."),
        ("The upload is disabled in staging.", "The upload is enabled in production."),
    ],
)
def test_another_thing_or_another_attribute_ends_nothing(old: str, new: str) -> None:
    assert decisive(new, old) is None


@each(
    ("old", "new"),
    [
        ("The leak comes from the cache.", "It wasn't the cache: the leak comes from the websocket handler."),
        ("Marta is the new CTO.", "Not Marta but Elena is the new CTO."),
        ("The report is a PDF.", "The report is a spreadsheet, not a PDF."),
        ("The rate limiter is in nginx.", "The rate limiter is in Envoy rather than in nginx."),
        ("We owe the plumber 320 euros.", "We don't owe the plumber 320 euros, it's 230."),
        ("The team uses Jenkins for CI.", "The team switched from Jenkins to GitHub Actions."),
        ("The import order is stdlib, local, others.", "Wrong. The import order is stdlib, others, local."),
        ("Swimming lessons for the kids are on Wednesday.", "Correction: the lessons are on Thursday."),
        ("The invoice number is 20391.", "Fix to previous note: invoice number should read 20319."),
        ("Our fiscal year starts in January.", "To set the record straight, our fiscal year is the UK one."),
        ("The margin was 41%.", "Finance restated the margin: 38%, so the 41% figure is void."),
        ("The queue is RabbitMQ.", "s/RabbitMQ/NATS/ for the queue."),
        ("Aisha joined in 2019.", "Aisha joined in 2018, the 2019 in my notes was off by a year."),
    ],
)
def test_what_takes_something_back_corrects_it(old: str, new: str) -> None:
    found = find_conflict(new, old)
    assert found is not None
    assert found.decisive


@each(
    ("old", "new"),
    [
        ("Ada is moving to Berlin in May.", "Ada has moved to Berlin."),
        ("Grace lives in Paris.", "Grace moved to Rome last week."),
        ("The login bug is open.", "The login bug was fixed in 2.4.1."),
        ("The bathroom tap is leaking.", "The plumber fixed the bathroom tap."),
        ("We plan to migrate to Kubernetes.", "The migration to Kubernetes is finished."),
        ("Beata is on sick leave.", "Beata is back at work."),
        ("The house is for sale.", "The house was sold in October."),
        ("Interviewing candidates for the SRE role.", "The SRE role has been filled."),
        ("PR #318 needs a review from Tess.", "Tess approved PR #318 and it got merged."),
        ("My passport is at the consulate for renewal.", "Picked up my renewed passport."),
        ("The survey has 120 responses so far.", "The survey closed with 342 responses."),
    ],
)
def test_a_later_state_ends_the_earlier_one(old: str, new: str) -> None:
    assert decisive(new, old) == "state"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The lease ends in September.", "The lease ends in September 2027 and renews automatically."),
        ("The meeting was moved to Friday.", "The meeting was rescheduled to Friday."),
        ("Tests must not touch the network.", "Tests must not touch the network. Use the cassettes instead."),
        ("Leo finished his thesis in 2019.", "In 2019 Leo completed his thesis."),
    ],
)
def test_saying_more_or_saying_it_again_is_no_conflict(old: str, new: str) -> None:
    assert find_conflict(new, old) is None or not decisive(new, old)


def test_what_is_known_to_be_near_is_corrected_though_it_shares_few_words() -> None:
    old, about = "Ingrid is from Norway.", "corrected me over lunch: the family is Swedish."
    assert find_conflict(f"Ingrid {about}", old) is None
    found = find_conflict(f"Ingrid {about}", old, close=True)
    assert found is not None
    assert (found.kind, found.decisive) == ("correction", True)
    assert find_conflict(f"Bo {about}", old, close=True) is None


def test_what_is_taken_back_may_be_told_over_two_sentences() -> None:
    old = "Dad's surgery is on the left knee."
    assert decisive("It's the right knee Dad is having surgery on. I mixed them up.", old) == "correction"


def test_documents_are_no_statements() -> None:
    old = "Deploys happen on Fridays. " * 300
    assert find_conflict(f"{old}Deploys do not happen on Fridays.", old) is None


def test_what_a_correction_leaves_out_is_not_hidden_with_the_rest() -> None:
    old = "Ada lives in Paris. Her brother works at Acme."
    assert decisive("Ada lives in Lyon.", old) is None
    assert decisive("Ada lives in Lyon. Her brother works at Acme.", old) == "value"


TEXTS = st.text(max_size=60)


@given(TEXTS)
def test_a_text_never_conflicts_with_itself(text: str) -> None:
    assert find_conflict(text, text) is None


@given(TEXTS, TEXTS)
def test_any_two_texts_can_be_compared(new: str, old: str) -> None:
    found = find_conflict(new, old)
    assert found is None or found.detail


@each(
    ("new", "old"),
    [
        ("Pelican runs in Frankfurt.", "Meridian runs in Frankfurt."),
        ("The scheduler runs on two hosts.", "The parser runs on two hosts."),
        ("Pelican is released on Friday.", "Cleaned up the backlog of Pelican a little."),
        ("Basalt runs in Virginia.", "Read an article that reminded me of Basalt."),
        ("Update: The owner of Falcon is Greta.", "The owner of Quarry is Greta."),
        ("Actually, the owner of Falcon is Greta.", "The owner of Quarry is Greta."),
        ("Update: Saffron runs in Oregon.", "Releases of Saffron go out every Friday."),
        ("Update: Greta looks after Yarrow.", "Yarrow was slow in the morning and recovered."),
    ],
)
def test_what_holds_of_one_thing_does_not_end_what_is_told_of_another(new: str, old: str) -> None:
    for close in (False, True):
        found = find_conflict(new, old, close=close)
        assert found is None or not found.decisive


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Boris runs the data team.", "Ada runs the data team."),
        ("Ada ran the marathon.", "Ada is training for the marathon."),
        ("The report is finished.", "The report is in the backlog."),
        ("Update: Falcon runs in Tokyo.", "Falcon runs in Oregon."),
        ("Actually, Ada speaks Spanish.", "Ada speaks French."),
    ],
)
def test_a_post_and_a_step_still_end_what_they_end(new: str, old: str) -> None:
    found = find_conflict(new, old, close=True)
    assert found is not None
    assert found.decisive
