"""Kazoo's recipes between processes, where one of them dies while it holds something.

What the recipes do among well-behaved clients is tested by kazoo's own suite, see `test_upstream.py`.
"""

import socket
import threading
from datetime import timedelta

from kazoo.recipe.cache import TreeCache
from kazoo.recipe.partitioner import PartitionState

from support.client_process import ClientProcess
from support.waiting import eventually


def in_background(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_a_lock_passes_on_when_its_holder_dies(client, server, chroot):
    with ClientProcess(server.hosts + chroot, "lock", "/lock") as process:
        process.wait_ready()
        lock = client.Lock("/lock", "heir")
        assert not lock.acquire(blocking=False)
        process.kill()
        assert lock.acquire(timeout=10)
        assert client.Lock("/lock").contenders() == ["heir"]


def test_the_next_one_leads_when_the_leader_dies(client, server, chroot):
    elected = threading.Event()
    with ClientProcess(server.hosts + chroot, "elect", "/election") as process:
        process.wait_ready()
        election = client.Election("/election", "heir")
        in_background(lambda: election.run(elected.set))
        eventually(lambda: election.contenders(), ["process", "heir"])
        assert not elected.is_set()
        process.kill()
        assert elected.wait(10)


def test_lock_is_exclusive_among_many(client, server, connect, chroot):
    inside, most, rounds = 0, 0, 0

    def work(session):
        nonlocal inside, most, rounds
        for _ in range(5):
            with session.Lock("/lock"):
                inside += 1
                # A round trip, time enough for another to come in if the lock let it.
                session.exists("/")
                most = max(most, inside)
                rounds += 1
                inside -= 1

    threads = []
    for _ in range(6):
        session = connect(server, chroot)
        threads.append(in_background(lambda session=session: work(session)))
    for thread in threads:
        thread.join(30)
    assert (rounds, most) == (30, 1)


def test_readers_share_and_writers_do_not(client, other):
    with client.ReadLock("/lock"):
        assert other.ReadLock("/lock").acquire(timeout=10)
        assert not client.WriteLock("/lock").acquire(blocking=False)


def test_semaphore_lets_in_as_many_as_it_has(client, other):
    first, second, third = (session.Semaphore("/semaphore", max_leases=2) for session in (client, other, client))
    assert first.acquire() and second.acquire()
    assert not third.acquire(blocking=False)
    second.release()
    assert third.acquire(timeout=10)


def test_queue_hands_each_item_to_one_consumer_in_order(client, other):
    for number in range(20):
        client.Queue("/queue").put(b"%d" % number)
    taken = [(client if number % 2 else other).Queue("/queue").get() for number in range(20)]
    assert taken == [b"%d" % number for number in range(20)]
    assert client.Queue("/queue").get() is None


def test_locking_queue_gives_an_item_back_when_its_consumer_closes(client, server, connect, chroot):
    client.LockingQueue("/queue").put(b"work")
    consumer = connect(server, chroot)
    assert consumer.LockingQueue("/queue").get(timeout=10) == b"work"
    assert client.LockingQueue("/queue").get(timeout=0.1) is None
    consumer.stop()
    queue = client.LockingQueue("/queue")
    assert queue.get(timeout=10) == b"work"
    assert queue.consume()


def test_barrier_holds_until_removed(client, other):
    barrier = client.Barrier("/barrier")
    barrier.create()
    assert not other.Barrier("/barrier").wait(timeout=0.1)
    passed = threading.Event()
    waiting = in_background(lambda: other.Barrier("/barrier").wait(timeout=10) and passed.set())
    barrier.remove()
    waiting.join(10)
    assert passed.is_set()


def test_double_barrier_enters_and_leaves_together(client, other):
    order, entered = [], threading.Barrier(2, timeout=20)

    def work(session, name):
        barrier = session.DoubleBarrier("/barrier", 2, name)
        barrier.enter()
        order.append("in")
        # One that leaves before the other has looked who is there takes itself away, and the other would wait for ever.
        entered.wait()
        barrier.leave()
        order.append("out")

    threads = [in_background(lambda: work(client, "a"))]
    eventually(lambda: client.exists("/barrier") and len(client.get_children("/barrier")), 1)
    assert order == []
    threads.append(in_background(lambda: work(other, "b")))
    for thread in threads:
        thread.join(20)
    assert order == ["in", "in", "out", "out"]


def test_counter_loses_nothing(client, server, connect, chroot):
    def work(session):
        counter = session.Counter("/counter")
        for _ in range(20):
            counter += 1

    threads = []
    for _ in range(3):
        session = connect(server, chroot)
        threads.append(in_background(lambda session=session: work(session)))
    for thread in threads:
        thread.join(30)
    assert client.Counter("/counter").value == 60


def test_party_knows_who_is_there(client, other):
    client.Party("/party", "a").join()
    second = other.Party("/party", "b")
    second.join()
    assert sorted(client.Party("/party")) == ["a", "b"]
    second.leave()
    assert list(client.Party("/party")) == ["a"]
    client.ShallowParty("/shallow", "a").join()
    assert list(other.ShallowParty("/shallow")) == ["a"]


def test_lease_is_taken_once(client, other):
    assert client.NonBlockingLease("/lease", timedelta(minutes=1), "a")
    assert not other.NonBlockingLease("/lease", timedelta(minutes=1), "b")
    assert client.NonBlockingLease("/lease", timedelta(minutes=1), "a")


def test_partitioner_splits_the_set(client, other):
    members = [
        session.SetPartitioner("/partition", set=tuple("abcd"), identifier=name, time_boundary=0.2)
        for session, name in ((client, "1"), (other, "2"))
    ]
    for member in members:
        member.wait_for_acquire(10)
    eventually(lambda: [member.state for member in members], [PartitionState.ACQUIRED] * 2)
    first, second = (set(member) for member in members)
    assert first | second == set("abcd") and not first & second and len(first) == 2
    for member in members:
        member.finish()


def test_tree_cache_mirrors_the_tree(client, other):
    client.create("/tree/a", b"1", makepath=True)
    cache = TreeCache(client, "/tree")
    cache.start()
    try:
        eventually(lambda: cache.get_children("/tree"), frozenset(["a"]))
        other.create("/tree/a/b", b"2")
        other.set("/tree/a", b"3")
        other.create("/tree/c")
        other.delete("/tree/c")
        eventually(lambda: cache.get_data("/tree/a/b") and cache.get_data("/tree/a/b").data, b"2")
        eventually(lambda: cache.get_data("/tree/a").data, b"3")
        eventually(lambda: cache.get_children("/tree"), frozenset(["a"]))
    finally:
        cache.close()


def test_retry_carries_a_call_over_a_lost_connection(client):
    client.create("/node")
    client._connection._socket.shutdown(socket.SHUT_RDWR)
    assert client.retry(client.set, "/node", b"1").version == 1
