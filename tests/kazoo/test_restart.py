"""A server that is killed or stopped and comes back: what clients were told stays true, and their sessions go on."""

import threading

from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from support.client_process import ClientProcess
from support.waiting import eventually


def connection_states(client):
    """Events that follow the client: (suspended, connected again)."""
    suspended, connected = threading.Event(), threading.Event()

    def follow(state):
        if state == KazooState.SUSPENDED:
            suspended.set()
        elif state == KazooState.CONNECTED:
            connected.set()

    client.add_listener(follow)
    return suspended, connected


def test_a_session_survives_the_servers_death(own_server, connect):
    client = connect(own_server)
    identity = client.client_id
    client.create("/mine", b"1", ephemeral=True)
    client.create("/kept", b"1")
    before = client.exists("/mine")
    suspended, connected = connection_states(client)

    own_server.kill()
    assert suspended.wait(10)
    own_server.restart()

    assert connected.wait(10)
    assert client.client_id == identity
    assert client.exists("/mine") == before
    assert client.get("/kept")[0] == b"1"
    # And it is the same session in every respect: its close still removes what it owns.
    client.stop()
    assert connect(own_server).exists("/mine") is None


def test_a_session_survives_an_orderly_restart_while_idle(own_server, connect):
    client = connect(own_server)
    identity = client.client_id
    client.create("/mine", ephemeral=True)
    suspended, connected = connection_states(client)
    own_server.restart()
    assert suspended.wait(10) and connected.wait(10)
    assert client.client_id == identity
    assert client.exists("/mine") is not None


def test_a_session_whose_client_stays_away_expires_after_the_restart(own_server, connect):
    with ClientProcess(own_server.hosts, "ephemeral", "/orphan", timeout_s=2.0) as process:
        process.wait_ready()
        own_server.kill()
        process.kill()
    own_server.restart()
    client = connect(own_server)
    # The time that the server was down does not count: nobody could have reported.
    assert client.exists("/orphan") is not None
    eventually(lambda: client.exists("/orphan"), None)


def test_a_session_that_expired_before_the_crash_stays_expired(own_server, connect):
    client = connect(own_server)
    with ClientProcess(own_server.hosts, "ephemeral", "/orphan", timeout_s=1.0) as process:
        process.wait_ready()
        process.kill()
    eventually(lambda: client.exists("/orphan"), None)
    own_server.kill()
    own_server.restart()
    assert connect(own_server).exists("/orphan") is None


def test_data_and_children_watches_report_what_changed_meanwhile(own_server, connect):
    # The watching client dials late, so the changes below happen without it.
    slow = KazooRetry(max_tries=-1, delay=1.5, max_delay=1.5, backoff=1, max_jitter=0)
    watching = connect(own_server, connection_retry=slow)
    watching.create("/node", b"before")
    data, children = [], []
    watching.DataWatch("/node", lambda value, stat: data.append(value))
    watching.ChildrenWatch("/node", lambda names: children.append(names))
    assert (data, children) == ([b"before"], [[]])

    own_server.kill()
    own_server.restart()
    writing = connect(own_server)
    writing.set("/node", b"after")
    writing.create("/node/child")
    eventually(lambda: (data[-1], children[-1]), (b"after", ["child"]))

    # The watches are live again, not only caught up.
    writing.set("/node", b"later")
    eventually(lambda: data[-1], b"later")


def test_a_lock_is_still_held_after_the_crash(own_server, connect):
    holder, waiter = connect(own_server), connect(own_server)
    lock = holder.Lock("/lock", "holder")
    lock.acquire()
    got_it = threading.Event()
    waiting = threading.Thread(target=lambda: (waiter.Lock("/lock", "waiter").acquire(), got_it.set()))
    waiting.start()
    eventually(lambda: len(holder.Lock("/lock").contenders()), 2)

    own_server.kill()
    own_server.restart()
    assert holder.retry(holder.Lock("/lock").contenders) == ["holder", "waiter"]
    assert not got_it.is_set()

    holder.retry(lock.release)
    waiting.join(10)
    assert got_it.is_set()


def test_every_acknowledged_write_is_there_after_kill(own_server, connect):
    """The server is killed in the middle of a stream of writes; what it had answered has to be there."""
    client = connect(own_server)
    answers = []
    flowing = threading.Event()

    def answered(number, result):
        if result.exception is None:
            answers.append(number)
            if len(answers) == 500:
                flowing.set()

    for number in range(20000):
        result = client.create_async(f"/node-{number}", b"%d" % number)
        result.rawlink(lambda result, number=number: answered(number, result))
    assert flowing.wait(60)
    own_server.kill()
    own_server.restart()

    reader = connect(own_server)
    present = set(reader.get_children("/"))
    acknowledged = list(answers)
    assert len(acknowledged) >= 500
    missing = [number for number in acknowledged if f"node-{number}" not in present]
    assert missing == []
    for number in acknowledged[-20:]:
        assert reader.get(f"/node-{number}")[0] == b"%d" % number


def test_numbers_go_on_where_they_were(own_server, connect):
    client = connect(own_server)
    client.create("/jobs")
    for _ in range(3):
        last = client.create("/jobs/job-", sequence=True)
    zxid = client.exists(last).czxid
    session = client.client_id[0]
    client.delete(last)
    client.stop()

    own_server.kill()
    own_server.restart()
    client = connect(own_server)
    path, stat = client.create("/jobs/job-", sequence=True, include_data=True)
    assert path == "/jobs/job-0000000003"
    assert stat.czxid > zxid
    assert client.client_id[0] != session


def test_requests_while_the_server_is_down_fail_or_wait_for_it(own_server, connect):
    client = connect(own_server)
    client.create("/node", b"0")
    suspended, _ = connection_states(client)
    own_server.kill()
    assert suspended.wait(10)
    # Kazoo keeps it until there is a connection again.
    waiting = client.set_async("/node", b"1")
    own_server.restart()
    try:
        waiting.get(timeout=20)
    except ConnectionLoss:
        client.retry(client.set, "/node", b"1")
    assert client.get("/node")[0] == b"1"


def test_five_crashes_in_a_row(own_server, connect):
    client = connect(own_server, timeout=10)
    identity = client.client_id
    client.create("/counter", b"0")
    for number in range(1, 6):
        suspended, connected = connection_states(client)
        client.set("/counter", b"%d" % number)
        own_server.kill()
        assert suspended.wait(10)
        own_server.restart()
        assert connected.wait(10)
        assert client.retry(client.get, "/counter")[0] == b"%d" % number
    assert client.client_id == identity
    assert client.get("/counter")[1].version == 5
