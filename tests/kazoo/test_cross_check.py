"""A cross-check with a real Apache ZooKeeper: planted differences are found, equal answers are none, and a reference that is gone
harms nobody."""

import os
import time

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from support.cross_check import counts, judged, paddock_checked_by_zookeeper
from support.waiting import eventually

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_SERVER", "paddock") != "paddock" or os.environ.get("TEST_MEMBERS", "1") != "1",
    reason="it is about one server of Paddock's",
)


@pytest.fixture
def checked(tmp_path):
    with paddock_checked_by_zookeeper(tmp_path) as (server, reference):
        yield server, reference


def settled(server):
    """The counts when nothing of the connections is under way any more."""
    eventually(lambda: counts(server)["connections"], 0, timeout_s=20)
    return counts(server)


def differences(server):
    return [line for line in server.log_tail(400).splitlines() if "cross-check found a difference" in line]


def told_differences(server, number):
    """The lines of the log on that many differences: a thread of its own writes the log, behind the counters."""
    eventually(lambda: len(differences(server)), number)
    return differences(server)


def test_another_tree_at_the_reference_is_found(checked, connect):
    server, reference = checked
    other = connect(reference)
    other.create("/data", b"theirs")
    other.create("/acl", b"", acl=READ_ACL_UNSAFE)
    other.create("/extra", b"")
    other.stop()
    client = connect(server)
    client.create("/data", b"ours")
    assert client.get("/data")[0] == b"ours", "this server's answer is what counts"
    client.create("/acl", b"", acl=OPEN_ACL_UNSAFE)
    client.get_acls("/acl")
    client.get_children("/")
    with pytest.raises(NoNodeError):
        client.get("/extra")
    client.stop()
    assert settled(server)["differences"] == 6
    told = told_differences(server, 6)
    [data] = [line for line in told if 'operation="get_data" path="/data"' in line]
    assert "ours" in data and "theirs" in data
    [acl] = [line for line in told if 'operation="get_acl" path="/acl"' in line]
    assert "world" in acl and ":31" in acl and ":1" in acl


def test_an_event_that_only_one_side_sends_is_found(checked, connect):
    server, reference = checked
    client, other = connect(server), connect(reference)
    client.create("/watched", b"")
    client.get("/watched", watch=lambda _: None)
    eventually(lambda: "/watched" in reference.word("wchp"))
    other.set("/watched", b"behind the back")
    eventually(lambda: counts(server)["differences"], 1, timeout_s=20)
    assert "no event" in told_differences(server, 1)[0]


def test_equal_servers_show_no_difference(checked, connect):
    server, _ = checked
    first, second = connect(server), connect(server)
    first.create("/parent", b"x" * 1000)
    fired = []
    second.get_children("/parent", watch=fired.append)
    for n in range(20):
        first.create("/parent/n-", b"", sequence=True, ephemeral=n % 2 == 0)
        second.get_children("/parent", include_data=True)
    multi = first.transaction()
    multi.create("/parent/multi", b"1")
    multi.set_data("/parent", b"2")
    multi.delete("/nowhere")
    assert len(multi.commit()) == 3
    first.add_auth("digest", "ann:secret")
    first.set("/parent", b"3", version=0)
    eventually(lambda: len(fired) == 1)
    first.stop()
    eventually(lambda: len(second.get_children("/parent")) == 10)
    second.stop()
    told = settled(server)
    assert told["differences"] == 0, differences(server)
    assert told["compared"] > 40 and told["given_up"] == 0


def test_a_client_that_comes_back_to_its_session_is_checked_on(checked, connect):
    server, _ = checked
    client = connect(server, timeout=8)
    client.create("/mine", b"", ephemeral=True)
    # The session has to be there at the reference, too: who comes back before that is not checked.
    eventually(lambda: counts(server)["compared"] > 0, True)
    client._connection._socket.shutdown(2)
    client.retry(client.get, "/mine")
    assert client.get("/mine")[1].ephemeralOwner == client.client_id[0]
    client.stop()
    told = settled(server)
    assert (told["differences"], told["given_up"]) == (0, 0), server.log_tail(400)


def test_suites_may_show_what_is_documented_and_nothing_else(tmp_path, connect):
    documented = tmp_path / "documented.txt"
    reason = "its session began before the check"

    def run_a_suite(name):
        with judged(tmp_path / name, documented) as server:
            client = connect(server)
            client.create("/a", b"")
            client.stop()
            stranger = KazooClient(server.hosts, client_id=(0x123, b"x" * 16))
            stranger.start()
            stranger.stop()

    documented.write_text(f'# A reason.\nreason="{reason}"\n')
    run_a_suite("documented")
    documented.write_text("# Nothing.\n")
    with pytest.raises(AssertionError, match=f"1 that are not documented.*[\n].*{reason}"):
        run_a_suite("unknown")


def test_a_reference_that_is_gone_harms_nobody(checked, connect):
    server, reference = checked
    client = connect(server)
    client.create("/before", b"")
    reference.kill()
    before = time.monotonic()
    for n in range(50):
        client.create(f"/after-{n}", b"")
    newcomer = KazooClient(server.hosts)
    newcomer.start(timeout=10)
    newcomer.get_children("/")
    newcomer.stop()
    assert time.monotonic() - before < 10
    eventually(lambda: counts(server)["given_up"], 2)
    # A thread of its own writes the log, behind the counters.
    eventually(lambda: "cross-check gave up on a connection" in server.log_tail(400), True)
    assert client.connected


def test_a_reference_that_hangs_harms_nobody(checked, connect):
    server, reference = checked
    client = connect(server)
    client.create("/before", b"")
    reference.pause()
    try:
        for n in range(50):
            client.create(f"/after-{n}", b"")
        eventually(lambda: counts(server)["given_up"], 1, timeout_s=20)
        eventually(lambda: "the reference does not answer" in server.log_tail(400), True)
    finally:
        reference.resume()
