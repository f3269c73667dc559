"""The store contract, and the values that go into a store and come out of one."""
