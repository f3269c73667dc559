from tests.store.support.generators import NewStore
from vestige.store.contract.store import MemoryStore


def test_who_is_alone_leads_as_soon_as_it_asks_and_goes_on(store: MemoryStore) -> None:
    assert [store.leading() for _ in range(3)] == [True, True, True]


def test_leading_one_store_is_in_nobodys_way_in_another(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    assert one.leading()
    assert other.leading()


def test_who_leads_is_not_in_the_way_of_what_is_done_alone(store: MemoryStore) -> None:
    assert store.leading()
    with store.alone("re-embed"), store.alone("purge"):
        assert store.leading()
