"""Two front ends on one real etcd: what one does the other one sees, and nothing happens twice or is lost."""

import base64
import threading
import time

from kazoo.exceptions import ConnectionLoss, KazooException, NodeExistsError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from support.etcd import front_ends
from support.waiting import eventually


def test_watches_fire_on_the_other_front_end(fronts, connect):
    _, first, second = fronts
    writer, reader = connect(first), connect(second)
    writer.create("/watched", b"1")
    reader.sync("/watched")
    events = []
    reader.get("/watched", watch=events.append)
    reader.get_children("/watched", watch=events.append)
    writer.create("/watched/child")
    writer.set("/watched", b"2")
    eventually(lambda: len(events) == 2)
    assert sorted(event.type for event in events) == ["CHANGED", "CHILD"]
    assert reader.get("/watched")[0] == b"2"
    assert writer.get("/watched") == reader.get("/watched")


def test_a_session_moves_to_the_other_front_end_when_its_own_is_killed(fronts, connect):
    _, first, second = fronts
    client = connect(first, second, timeout=10)
    session = client.client_id
    client.create("/mine", ephemeral=True)
    first.kill()
    assert client.retry(client.exists, "/mine")
    assert client.client_id == session
    assert client.set("/mine", b"still mine").version == 1
    client.stop()
    observer = connect(second)
    assert observer.exists("/mine") is None


def test_ephemerals_go_when_the_front_end_is_killed_and_the_client_does_not_come_back(fronts, connect):
    _, first, second = fronts
    lost, observer = connect(first, timeout=4), connect(second)
    lost.create("/parent")
    lost.create("/parent/ephemeral", ephemeral=True)
    observer.sync("/parent")
    before = observer.exists("/parent")
    gone = threading.Event()
    assert observer.exists("/parent/ephemeral", watch=lambda _: gone.set())
    first.kill()
    assert gone.wait(30), "the lease ended and nobody removed the znode"
    after = observer.exists("/parent")
    assert after.cversion == before.cversion + 1 and after.pzxid > before.pzxid


def test_writers_of_both_front_ends_get_one_sequence(fronts, connect):
    _, first, second = fronts
    clients = [connect(first), connect(second)]
    clients[0].create("/queue")
    clients[1].sync("/queue")
    names = [[], []]

    def write(at):
        for _ in range(40):
            names[at].append(clients[at].create("/queue/n-", sequence=True))

    threads = [threading.Thread(target=write, args=(at,)) for at in (0, 1)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(names[0] + names[1]) == [f"/queue/n-{n:010}" for n in range(80)]
    assert names[0] == sorted(names[0]) and names[1] == sorted(names[1])


def test_one_of_two_creates_wins_and_conditional_writes_count_exactly(fronts, connect):
    _, first, second = fronts
    clients = [connect(first), connect(second)]
    outcomes = [[], []]
    clients[0].create("/count", b"0")
    clients[1].sync("/count")

    def race(at):
        client = clients[at]
        for n in range(20):
            try:
                client.create(f"/race-{n}")
                outcomes[at].append(n)
            except NodeExistsError:
                pass
            while True:
                value, stat = client.get("/count")
                try:
                    client.set("/count", b"%d" % (int(value) + 1), version=stat.version)
                    break
                except KazooException:
                    client.sync("/count")

    threads = [threading.Thread(target=race, args=(at,)) for at in (0, 1)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(outcomes[0] + outcomes[1]) == list(range(20))
    clients[0].sync("/count")
    assert clients[0].get("/count")[0] == b"40"


def test_a_session_with_many_ephemerals_ends(fronts, connect):
    _, first, second = fronts
    client, observer = connect(first), connect(second)
    client.create("/many")
    for request in [client.create_async(f"/many/{n}", ephemeral=True) for n in range(300)]:
        request.get(30)
    client.stop()
    eventually(lambda: observer.get_children("/many") == [], timeout_s=20)


def test_nothing_is_lost_or_done_twice_when_etcd_is_restarted_under_load(fronts, connect):
    etcd, first, second = fronts
    setup = connect(first)
    setup.create("/log")
    acknowledged, stop = set(), threading.Event()

    def write(client, name):
        n = 0
        while not stop.is_set():
            n += 1
            try:
                client.create(f"/log/{name}-{n}", b"x", sequence=True)
                acknowledged.add(f"{name}-{n}")
            except (ConnectionLoss, SessionExpiredError, KazooException, KazooTimeoutError):
                time.sleep(0.05)

    clients = [connect(first, second, timeout=20), connect(second, first, timeout=20)]
    threads = [threading.Thread(target=write, args=(client, f"w{at}")) for at, client in enumerate(clients)]
    [thread.start() for thread in threads]
    time.sleep(1)
    etcd.kill()
    time.sleep(1)
    etcd.start()
    before = len(acknowledged)
    eventually(lambda: len(acknowledged) > before + 20, timeout_s=30)
    stop.set()
    [thread.join(60) for thread in threads]
    names = [name[:-10] for name in clients[0].get_children("/log")]
    assert len(names) == len(set(names)), "a request was carried out twice"
    assert acknowledged <= set(names), "an acknowledged write is gone"


def test_a_front_end_starts_on_a_compacted_history(fronts, connect):
    etcd, first, second = fronts
    writer = connect(first)
    writer.create("/old", b"0")
    revision = int(etcd.post("kv/range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"])
    etcd.post("kv/compaction", {"revision": revision})
    writer.set("/old", b"1")
    second.restart()
    assert connect(second).get("/old")[0] == b"1"


def mntr(server):
    return dict(line.removeprefix("zk_").split("\t") for line in server.word("mntr").splitlines())


def test_mntr_tells_of_etcd(fronts, connect):
    etcd, first, _ = fronts
    client = connect(first)
    before = mntr(first)
    for n in range(10):
        client.create(f"/counted-{n}")
    eventually(lambda: int(mntr(first)["etcd_transactions"]) >= int(before["etcd_transactions"]) + 10)
    # The engine tells of itself at the end of each round, when clients may have their answers already.
    eventually(lambda: mntr(first)["etcd_transactions_under_way"] == "0")
    now = mntr(first)
    assert float(now["avg_etcd_latency"]) > 0 and float(now["max_etcd_latency"]) >= float(now["avg_etcd_latency"])
    assert (now["etcd_loads"], now["etcd_connections"]) == ("1", "1")
    assert int(now["etcd_state_age_ms"]) < 2000
    etcd.kill()
    eventually(lambda: int(mntr(first)["etcd_state_age_ms"]) > 1000)
    etcd.start()
    eventually(lambda: int(mntr(first)["etcd_state_age_ms"]) < 1000)
    assert int(mntr(first)["etcd_connections"]) >= 2


def test_ephemerals_that_go_with_their_session_are_audited(tmp_path, connect):
    log = tmp_path / "audit.log"
    with front_ends(tmp_path, 1, config={"audit.enable": "true", "audit.file": log}) as (_, front):
        client = connect(front)
        client.create("/one", ephemeral=True)
        client.create("/two", ephemeral=True)
        client.delete("/two")
        session = f"0x{client.client_id[0]:x}"
        client.stop()
        gone = "operation=ephemeralZNodeDeletionOnSessionCloseOrExpire"
        eventually(lambda: gone in log.read_text())
        lines = [line for line in log.read_text().splitlines() if gone in line]
        assert len(lines) == 1 and f"session={session}\t" in lines[0] and "znode=/one\t" in lines[0]
        assert "operation=serverStart" in log.read_text()


def test_writes_above_a_quota_are_refused_counted_and_told(tmp_path, connect):
    with front_ends(tmp_path, 1, config={"enforceQuota": "true"}) as (_, front):
        client = connect(front)
        client.create("/limited")
        client.create("/zookeeper/quota/limited")
        client.create("/zookeeper/quota/limited/zookeeper_limits", b"count=-1,bytes=-1,countHardLimit=2,byteHardLimit=-1")
        client.create("/zookeeper/quota/limited/zookeeper_stats", b"count=1,bytes=0")
        client.create("/limited/first")
        for _ in range(3):
            try:
                client.create("/limited/second")
                raise AssertionError("a hard limit did not refuse")
            except KazooException as error:
                assert not isinstance(error, ConnectionLoss)
        assert mntr(front)["limited_quota_exceeded_error_per_namespace"] == "3"
        eventually(lambda: "quota exceeded" in front.log_tail())


def test_a_session_that_comes_back_with_a_longer_timeout_lives_as_long(fronts, connect):
    _, first, second = fronts
    # Neither dials again: nobody is heard any more when the second front end is killed.
    silent = {"connection_retry": KazooRetry(max_tries=-1, delay=600, max_delay=600, backoff=1, max_jitter=0)}
    observer = connect(first)
    with_short = connect(first, timeout=1, **silent)
    with_short.create("/mine", ephemeral=True)
    identity = with_short.client_id
    with_long = connect(second, timeout=9, client_id=identity, **silent)
    assert with_long.client_id == identity
    observer.sync("/mine")
    gone = threading.Event()
    observer.exists("/mine", watch=lambda _: gone.set())
    killed = time.monotonic()
    second.kill()
    assert gone.wait(30)
    assert time.monotonic() - killed > 6, "the lease of the shorter timeout ended the session"
