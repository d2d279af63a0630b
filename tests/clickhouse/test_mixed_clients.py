"""ZooKeeper's Java client, kazoo and a modern ClickHouse on one member at once: each in its own dialect, all on the same
znodes."""

import threading

import pytest
from kazoo.client import KazooClient

from clickhouse.java_shell import JavaShell
from clickhouse.modern_engine import Engine
from clickhouse.waiting import wait_for
from clickhouse.wiretap import Wiretap
from support.fixtures import running_server

SETTINGS = ("pass_opentelemetry_tracing_context", "use_xid_64", "use_compression")
# A row is a znode below this one.
ROWS = "/keeper_map/t/data"
SHARED = "/shared"
BATCHES = 20
BATCH_ROWS = 50
WRITES = 200


@pytest.fixture
def server(tmp_path):
    with running_server(tmp_path / "server", config={"maxSessionTimeout": 60000}) as running:
        if running.kind != "paddock":
            pytest.skip("ZooKeeper has no KeeperMap features")
        yield running


@pytest.fixture
def wiretap(server):
    with Wiretap(server) as running:
        yield running


@pytest.fixture
def clickhouse(wiretap, tmp_path):
    with Engine(tmp_path, wiretap.port, SETTINGS) as engine:
        engine.query("CREATE TABLE t (k UInt64, v String) ENGINE = KeeperMap('/t') PRIMARY KEY k")
        yield engine


@pytest.fixture
def java(server):
    with JavaShell(server.hosts) as shell:
        yield shell


@pytest.fixture
def kazoo(server):
    client = KazooClient(server.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


def at_once(*works):
    """Runs all of them at the same time; what one of them fails with, this fails with."""
    errors = []

    def run(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_all_write_at_once_and_see_the_same(wiretap, clickhouse, java, kazoo):
    for name in ["kazoo", "java"]:
        kazoo.create(f"{SHARED}/{name}", makepath=True)

    def insert():
        for batch in range(BATCHES):
            rows = f"SELECT number + {batch * BATCH_ROWS}, toString(number) FROM numbers({BATCH_ROWS})"
            clickhouse.query(f"INSERT INTO t {rows}")

    def set_by_kazoo():
        for version in range(WRITES):
            kazoo.set(f"{SHARED}/kazoo", f"{version}".encode(), version)
            kazoo.get_children(ROWS)

    def set_by_java():
        java.run(*(f"set -v {version} {SHARED}/java {version}" for version in range(WRITES)))

    at_once(insert, set_by_kazoo, set_by_java)
    count = BATCHES * BATCH_ROWS
    assert clickhouse.query("SELECT count(), uniqExact(k) FROM t") == [[count, count]]
    assert len(kazoo.get_children(ROWS)) == count
    assert str(count) in java.run(f"getAllChildrenNumber {ROWS}")
    last = str(WRITES - 1)
    assert kazoo.get(f"{SHARED}/java")[0].decode() == last
    assert last in java.run(f"get {SHARED}/kazoo")
    assert set(wiretap.greetings) == {12}


def test_each_is_told_what_the_others_change(clickhouse, java, kazoo):
    clickhouse.query("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    first, second = sorted(kazoo.get_children(ROWS), key=lambda name: kazoo.get(f"{ROWS}/{name}")[1].czxid)
    values = dict(clickhouse.query("SELECT k, v FROM t"))
    assert values == {1: "one", 2: "two"}

    # ClickHouse changes a row that the other two watch.
    events = []
    for name in (first, second):
        kazoo.get(f"{ROWS}/{name}", watch=events.append)
        java.run(f"get -w {ROWS}/{name}")
    clickhouse.query("ALTER TABLE t UPDATE v = 'changed' WHERE k = 1")
    wait_for(lambda: [event.type for event in events], ["CHANGED"])
    changed = events[0].path
    said = []
    wait_for(lambda: said.extend(java.run()) or any(changed in line for line in said), True)
    assert any("NodeDataChanged" in line for line in said), said

    # The other two change rows: kazoo what is in one, and Java deletes the other.
    other = f"{ROWS}/{second if changed.endswith(first) else first}"
    kazoo.set(other, kazoo.get(changed)[0])
    assert clickhouse.query("SELECT k, v FROM t ORDER BY k") == [[1, "changed"], [2, "changed"]]
    java.run(f"delete {changed}")
    assert clickhouse.query("SELECT k, v FROM t") == [[2, "changed"]]


def test_what_belongs_to_the_others_sessions_goes_with_them(clickhouse, java, kazoo):
    clickhouse.query("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    rows = {name: kazoo.get(f"{ROWS}/{name}")[0] for name in kazoo.get_children(ROWS)}
    clickhouse.query("DELETE FROM t WHERE k > 0")
    assert clickhouse.query("SELECT count() FROM t") == [[0]]

    # The same rows again, as ephemeral znodes of the other two.
    (first, first_row), (second, second_row) = rows.items()
    kazoo.create(f"{ROWS}/{first}", first_row, ephemeral=True)
    java.run(f"create -e {ROWS}/{second} x")
    kazoo.set(f"{ROWS}/{second}", second_row)
    assert clickhouse.query("SELECT k, v FROM t ORDER BY k") == [[1, "one"], [2, "two"]]
    kazoo.stop()
    assert clickhouse.query("SELECT count() FROM t") == [[1]]
    java.quit()
    assert clickhouse.query("SELECT count() FROM t") == [[0]]


def test_clickhouse_goes_on_where_another_has_set_its_counter(clickhouse, kazoo):
    serial = "SELECT generateSerialID('mixed')"
    first = clickhouse.query(serial)[0][0]
    path = "/clickhouse/series/mixed"
    assert kazoo.get(path)[0] == str(first + 1).encode()
    kazoo.set(path, b"1000")
    assert clickhouse.query(serial) == [[1000]]
