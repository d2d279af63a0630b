"""Sessions: how long they live, what they leave behind, and who may carry one on."""

import socket
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from support import groups
from support.client_process import ClientProcess
from support.waiting import eventually


@pytest.mark.parametrize(("asked_s", "granted_ms"), [(0.1, 1000), (4, 4000), (600, 10000)])
def test_timeout_is_negotiated_between_two_and_twenty_ticks(server, connect, asked_s, granted_ms):
    client = connect(server, timeout=asked_s)
    session = f"sid={client.client_id[0]:#x},"
    [line] = [line for line in server.word("cons").splitlines() if session in line]
    assert f",to={granted_ms}," in line


def test_session_ids_differ_and_a_password_belongs_to_each(server, connect):
    identities = {connect(server).client_id for _ in range(5)}
    assert len({session for session, _ in identities}) == 5
    assert all(session != 0 and len(password) == 16 for session, password in identities)


def test_a_killed_client_keeps_its_ephemerals_until_its_session_expires(client, server, chroot):
    with ClientProcess(server.hosts + chroot, "ephemeral", "/mine") as process:
        process.wait_ready()
        process.kill()
        # The connection is gone, the session is not.
        assert client.exists("/mine") is not None
        gone = threading.Event()
        client.exists("/mine", watch=lambda event: gone.set())
        assert gone.wait(10)
    assert client.exists("/mine") is None


def test_a_closed_client_takes_its_ephemerals_along_at_once(client, server, connect, chroot):
    owner = connect(server, chroot)
    for number in range(10):
        owner.create(f"/mine-{number}", ephemeral=True)
    owner.create("/stays")
    owner.stop()
    groups.see_all(client)
    assert client.get_children("/") == ["stays"]


def test_an_idle_client_lives_on_pings(client, server, connect, chroot):
    idle = connect(server, chroot, timeout=1.0)
    idle.create("/mine", ephemeral=True)
    # Another session of the same length that goes quiet at the same time is the clock.
    with ClientProcess(server.hosts + chroot, "ephemeral", "/quiet") as process:
        process.wait_ready()
        process.kill()
        eventually(lambda: client.exists("/quiet"), None)
    assert client.exists("/mine").ephemeralOwner == idle.client_id[0]
    assert idle.state == KazooState.CONNECTED


def test_a_lost_connection_is_taken_up_with_the_same_session(client):
    before = client.client_id
    client.create("/mine", ephemeral=True)
    suspended, connected = threading.Event(), threading.Event()

    @client.add_listener
    def watch_state(state):
        (suspended if state == KazooState.SUSPENDED else connected).set()

    client._connection._socket.shutdown(socket.SHUT_RDWR)
    assert suspended.wait(10) and connected.wait(10)
    assert client.client_id == before
    assert client.exists("/mine").ephemeralOwner == before[0]


def patient(server, chroot="", **options):
    """A client that waits long before it dials again, so that it does not win back a session it lost to another."""
    retry = KazooRetry(max_tries=-1, delay=600, max_delay=600, backoff=1, max_jitter=0)
    return KazooClient(server.hosts + chroot, connection_retry=retry, **options)


def test_a_second_connection_takes_the_session_over(server, chroot):
    first, second = patient(server, chroot), None
    try:
        first.start()
        first.create("/mine", ephemeral=True)
        identity = first.client_id
        lost = threading.Event()
        first.add_listener(lambda state: lost.set() if state == KazooState.SUSPENDED else None)

        second = patient(server, chroot, client_id=identity)
        second.start()
        # The server hangs up on the first connection.
        assert lost.wait(10)
        assert second.client_id == identity
        assert second.exists("/mine").ephemeralOwner == identity[0]
        second.set("/mine", b"second")
    finally:
        if second is not None:
            second.stop()
        first.stop()


def test_a_wrong_password_does_not_open_a_session(client, server):
    session, password = client.client_id
    wrong = bytes([password[0] ^ 1]) + password[1:]
    assert refused(server, (session, wrong)), "the stranger got the session"
    # ZooKeeper hangs up on the owner before it looks at the password. What counts: the session stays the owner's.
    client.retry(client.create, "/mine", ephemeral=True)
    assert client.client_id == (session, password)


def test_a_closed_session_does_not_open_again(server, connect):
    gone = connect(server)
    identity = gone.client_id
    gone.stop()
    assert refused(server, identity)


def test_an_expired_session_does_not_open_again(client, server, chroot):
    owner = patient(server, chroot, timeout=1.0)
    owner.start()
    try:
        identity = owner.client_id
        owner.create("/mine", ephemeral=True)
        # No connection, hence no pings.
        owner._connection._socket.shutdown(socket.SHUT_RDWR)
        eventually(lambda: client.exists("/mine"), None)
        assert refused(server, identity)
    finally:
        owner.stop()


def refused(server, identity):
    """Whether the server calls this session expired. Kazoo starts a new one then, which is how we see it."""
    client = KazooClient(server.hosts, client_id=identity)
    lost = threading.Event()
    client.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    try:
        client.start()
        return lost.is_set() or client.client_id != identity
    finally:
        client.stop()
