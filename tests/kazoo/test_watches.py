"""Watches as a client sees them: once each, with the right kind and path."""

import threading

import pytest
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import Callback, EventType

from support import groups
from support.waiting import eventually


class Events:
    """A watch function that keeps what it was told."""

    def __init__(self):
        self.seen = []

    def __call__(self, event):
        self.seen.append((event.type, event.path))


def settle(client):
    """Whatever was sent to this client before is with its watch functions afterwards."""
    groups.see_all(client)
    client.exists("/")
    done = threading.Event()
    # Kazoo calls watch functions one after the other, from a queue.
    client.handler.dispatch_callback(Callback("watch", done.set, ()))
    assert done.wait(10)


def test_data_watch_fires_once(client, other):
    client.create("/node")
    events = Events()
    client.get("/node", watch=events)
    other.set("/node", b"1")
    other.set("/node", b"2")
    settle(client)
    assert events.seen == [(EventType.CHANGED, "/node")]


def test_deletion_reaches_data_and_child_watches(client, other):
    client.create("/node")
    data, children, parents = Events(), Events(), Events()
    client.get("/node", watch=data)
    client.get_children("/node", watch=children)
    client.get_children("/", watch=parents)
    other.delete("/node")
    settle(client)
    assert data.seen == [(EventType.DELETED, "/node")]
    assert children.seen == [(EventType.DELETED, "/node")]
    assert parents.seen == [(EventType.CHILD, "/")]


def test_exists_watch_waits_for_the_creation(client, other):
    events = Events()
    assert client.exists("/later", watch=events) is None
    other.create("/later")
    settle(client)
    assert events.seen == [(EventType.CREATED, "/later")]


def test_get_of_a_missing_node_leaves_no_watch(client, other):
    events = Events()
    with pytest.raises(NoNodeError):
        client.get("/later", watch=events)
    other.create("/later")
    settle(client)
    assert events.seen == []


def test_child_watch_does_not_see_data_or_grandchildren(client, other):
    client.create("/node/child", makepath=True)
    events = Events()
    client.get_children("/node", watch=events)
    other.set("/node", b"1")
    other.set("/node/child", b"1")
    other.create("/node/child/grandchild")
    settle(client)
    assert events.seen == []
    other.create("/node/second")
    settle(client)
    assert events.seen == [(EventType.CHILD, "/node")]


def test_own_changes_fire_too(client):
    client.create("/node")
    events = Events()
    client.get("/node", watch=events)
    client.set("/node", b"1")
    settle(client)
    assert events.seen == [(EventType.CHANGED, "/node")]


def test_transaction_fires_every_watch_it_touches(client, other):
    client.create("/a")
    client.create("/b")
    a, b, c, root = Events(), Events(), Events(), Events()
    client.get("/a", watch=a)
    client.get("/b", watch=b)
    client.exists("/c", watch=c)
    client.get_children("/", watch=root)
    transaction = other.transaction()
    transaction.set_data("/a", b"1")
    transaction.delete("/b")
    transaction.create("/c")
    transaction.commit()
    settle(client)
    assert a.seen == [(EventType.CHANGED, "/a")]
    assert b.seen == [(EventType.DELETED, "/b")]
    assert c.seen == [(EventType.CREATED, "/c")]
    assert root.seen == [(EventType.CHILD, "/")]


def test_close_of_a_session_fires_for_its_ephemerals(client, connect, server, chroot):
    owner = connect(server, chroot)
    owner.create("/mine", ephemeral=True)
    data, root = Events(), Events()
    client.exists("/mine", watch=data)
    client.get_children("/", watch=root)
    owner.stop()
    settle(client)
    assert data.seen == [(EventType.DELETED, "/mine")]
    assert root.seen == [(EventType.CHILD, "/")]


def test_data_watch_recipe_ends_on_the_last_value(client, other):
    other.create("/node", b"0")
    seen = []
    client.DataWatch("/node", lambda data, stat: seen.append(data))
    for number in range(1, 101):
        other.set("/node", b"%d" % number)
    eventually(lambda: seen[-1], b"100")
    # Values in between may be skipped, but none comes twice or late.
    numbers = [int(data) for data in seen]
    assert numbers[0] == 0 and numbers == sorted(set(numbers))


def test_children_watch_recipe_ends_on_the_last_list(client, other):
    seen = []
    client.ChildrenWatch("/", lambda children: seen.append(sorted(children)))
    for number in range(50):
        other.create(f"/node-{number:02}")
    other.delete("/node-00")
    eventually(lambda: seen[-1], [f"node-{number:02}" for number in range(1, 50)])
