"""An etcd that is full, compacts what a front end has not read, or stands still to defragment: clients get the documented errors, front
ends say why, and everything goes on when the trouble is over."""

import base64
import threading

import pytest
from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.protocol.states import KazooState

from support.etcd import Etcd, front_ends
from support.waiting import eventually

# etcd takes no smaller one in earnest: its database grows by whole pages.
QUOTA_BYTES = 8 << 20
QUOTA_EXCEEDED = -125


def newest_revision(etcd):
    return int(etcd.post("kv/range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"])


def compact(etcd):
    etcd.post("kv/compaction", {"revision": newest_revision(etcd), "physical": True})


def mntr(server, name):
    """A figure of `mntr`; `None` while the server does not serve, which it says in one line."""
    lines = (line.split("\t") for line in server.word("mntr").splitlines() if "\t" in line)
    return dict(lines).get(f"zk_{name}")


def fill(client):
    """Sets a znode until etcd has no space for its versions; the error."""
    for n in range(1000):
        try:
            client.set("/filled", b"%d" % n + b"x" * 200_000)
        except ConnectionLoss:
            raise
        except KazooException as error:
            return error
    raise AssertionError("etcd takes whatever it is given")


def test_without_space_writes_are_refused_and_reads_go_on(tmp_path, connect):
    etcd = Etcd(tmp_path / "cluster", arguments=["--quota-backend-bytes", str(QUOTA_BYTES)])
    with front_ends(tmp_path, 2, etcd=etcd) as (_, first, second):
        writer, reader = connect(first), connect(second)
        leaving = connect(first)
        leaving.create("/leaving", ephemeral=True)
        writer.create("/filled")
        writer.create("/small", b"1")
        error = fill(writer)
        assert error.code == QUOTA_EXCEEDED
        for _ in range(20):
            with pytest.raises(type(error)):
                writer.create("/more")
        told = [line for line in first.log_file.read_text().splitlines() if "NOSPACE" in line]
        assert len(told) == 1 and "--quota-backend-bytes" in told[0], told
        # The engine tells of itself at its next tick.
        eventually(lambda: int(mntr(first, "etcd_refused_for_space")) >= 21)

        assert writer.get("/small")[0] == b"1"
        reader.sync("/small")
        assert reader.get("/small")[0] == b"1"
        # An ephemeral is not removed before its parent can be written, and a close is answered when that is done.
        leaves = threading.Thread(target=leaving.stop)
        leaves.start()

        compact(etcd)
        etcd.post("maintenance/defragment", {})
        alarms = etcd.post("maintenance/alarm", {"action": "GET"})["alarms"]
        for alarm in alarms:
            etcd.post("maintenance/alarm", {"action": "DEACTIVATE", "memberID": alarm["memberID"], "alarm": "NOSPACE"})
        assert writer.set("/small", b"2").version == 1
        reader.sync("/small")
        assert reader.get("/small")[0] == b"2"
        leaves.join(30)
        eventually(lambda: reader.exists("/leaving") is None, timeout_s=30)
        eventually(lambda: "accepting writes" in first.log_tail())


def test_a_front_end_that_hung_over_a_compaction_reads_the_state_anew(fronts, connect):
    etcd, first, second = fronts
    writer, reader = connect(first), connect(second, first, timeout=10)
    writer.create("/moved", b"0")
    writer.create("/gone")
    reader.sync("/moved")
    assert mntr(second, "etcd_loads") == "1"
    second.pause()
    # With its connection its watch stream ends, and the next one would begin with what is compacted.
    etcd.kill()
    etcd.start()
    writer.retry(writer.set, "/moved", b"1")
    writer.retry(writer.delete, "/gone")
    compact(etcd)
    second.resume()
    eventually(lambda: mntr(second, "etcd_loads"), "2", timeout_s=30)
    eventually(lambda: "compacted" in second.log_tail())
    observer = connect(second)
    observer.sync("/moved")
    assert observer.get("/moved") == writer.get("/moved")
    assert observer.exists("/gone") is None
    # Its client goes on, here or at the other front end.
    assert reader.retry(reader.create, "/after", b"1") == "/after"


def test_clients_notice_nothing_of_defragmentation(fronts, connect):
    etcd, first, second = fronts
    clients = [connect(first), connect(second)]
    for n in range(40):
        clients[0].set("/", b"%d" % n + b"x" * 200_000)
    compact(etcd)
    clients[0].create("/log")
    clients[1].sync("/log")
    stop, states, written = threading.Event(), [], [0, 0]
    [client.add_listener(states.append) for client in clients]

    def write(at):
        while not stop.is_set():
            clients[at].create(f"/log/w{at}-", b"x", sequence=True)
            written[at] += 1

    threads = [threading.Thread(target=write, args=(at,)) for at in (0, 1)]
    [thread.start() for thread in threads]
    for _ in range(5):
        before = list(written)
        etcd.post("maintenance/defragment", {})
        eventually(lambda before=before: all(now > then + 5 for now, then in zip(written, before, strict=True)))
    stop.set()
    [thread.join(30) for thread in threads]
    assert KazooState.LOST not in states and KazooState.SUSPENDED not in states
    clients[0].sync("/log")
    assert len(clients[0].get_children("/log")) == sum(written)
