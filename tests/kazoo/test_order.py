"""Many requests in flight on one session are answered in their order, each seeing exactly those before it."""

import random

from support.waiting import eventually

REQUESTS = 5000


def test_every_get_sees_the_sets_before_it_and_no_other(client):
    paths = ["/a", "/b", "/c"]
    for path in paths:
        client.create(path, b"-1")
    chance = random.Random(2)
    expected = dict.fromkeys(paths, b"-1")
    versions = dict.fromkeys(paths, 0)
    gets = []
    for number in range(REQUESTS):
        path = chance.choice(paths)
        if chance.random() < 0.5:
            expected[path] = b"%d" % number
            versions[path] += 1
            client.set_async(path, expected[path])
        else:
            gets.append((client.get_async(path), expected[path], versions[path]))

    for result, value, version in gets:
        data, stat = result.get(timeout=60)
        assert (data, stat.version) == (value, version)


def test_answers_arrive_in_the_order_of_the_requests(client):
    client.create("/node")
    requests = [
        lambda: client.set_async("/node", b"x"),
        lambda: client.get_async("/node"),
        lambda: client.get_children_async("/missing"),
        lambda: client.exists_async("/node"),
        lambda: client.set_async("/node", b"", version=0),
        lambda: client.get_acls_async("/node"),
    ]
    arrived = []
    for number in range(1200):
        # Kazoo runs these one by one, as the answers come in; a refusal is an answer like any other.
        requests[number % len(requests)]().rawlink(lambda _, number=number: arrived.append(number))
    eventually(lambda: len(arrived), 1200, timeout_s=60)
    assert arrived == list(range(1200))


def test_sequence_numbers_follow_the_order_of_the_requests(client):
    results = [client.create_async("/job-", sequence=True) for _ in range(1000)]
    assert [result.get(timeout=60) for result in results] == [f"/job-{number:010}" for number in range(1000)]


def test_other_sessions_see_the_writes_in_order(client, other):
    client.create("/first", b"0")
    client.create("/second", b"0")
    writes = []
    for number in range(1, 1001):
        writes.append(client.set_async("/first", b"%d" % number))
        writes.append(client.set_async("/second", b"%d" % number))
    while not writes[-1].ready():
        # Read the later one first: whatever it shows, the earlier one must have got at least as far.
        second = int(other.get("/second")[0])
        first = int(other.get("/first")[0])
        assert first >= second
    assert writes[-1].get().version == 1000
