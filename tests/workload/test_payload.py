"""Payloads follow from their identity, at any size."""

from hypothesis import given
from hypothesis import strategies as st

from ordercast.workload.payload import matches, payload

NAMES = st.tuples(st.integers(1, 2**32 - 1), st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1))


@given(NAMES, st.integers(0, 5000))
def test_size_and_match(name, size):
    data = payload(*name, size)
    assert len(data) == size
    assert matches(*name, data)
    if size >= 8:
        assert int.from_bytes(data[:8], "little") == name[2]


@given(NAMES, st.integers(8, 300), st.data())
def test_a_changed_byte_or_another_counter_is_seen(name, size, data):
    good = payload(*name, size)
    at = data.draw(st.integers(0, size - 1))
    assert not matches(*name, good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    sender, incarnation, counter = name
    assert not matches(sender, incarnation, counter + 1, good)
    assert size < 16 or not matches(sender + 1, incarnation, counter, good)


def test_neighbours_differ_at_one_byte_mostly():
    same = sum(payload(1, 1, k, 1) == payload(1, 1, k + 1, 1) for k in range(1, 1001))
    assert same < 20
