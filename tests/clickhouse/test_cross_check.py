"""A modern ClickHouse at a member that checks its answers against an Apache ZooKeeper, which does not speak its dialect."""

import os

import pytest
from kazoo.client import KazooClient

from clickhouse.modern_engine import Engine
from support.cross_check import counts, paddock_checked_by_zookeeper
from support.waiting import eventually

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_SERVER", "paddock") != "paddock", reason="ZooKeeper has no cross-check"
)


@pytest.mark.parametrize("settings", [(), ("use_xid_64",)], ids=["plain greeting", "greeting of the dialect"])
def test_its_connection_is_given_up_and_neither_it_nor_others_notice(tmp_path, settings):
    with paddock_checked_by_zookeeper(tmp_path / "server") as (server, _):
        kazoo = KazooClient(server.hosts)
        kazoo.start()
        with Engine(tmp_path, server.port, settings) as engine:
            engine.query("CREATE TABLE t (k UInt64, v String) ENGINE = KeeperMap('/t') PRIMARY KEY k")
            engine.query("INSERT INTO t SELECT number, toString(number) FROM numbers(100)")
            for n in range(20):
                kazoo.create(f"/beside-{n}", b"x")
            assert engine.query("SELECT count(), sum(k) FROM t") == [[100, 4950]]
        kazoo.stop()
        eventually(lambda: counts(server)["connections"], 0, timeout_s=20)
        told = counts(server)
    assert (told["given_up"], told["differences"]) == (1, 0), server.log_tail(100)
    assert told["compared"] > 20, "kazoo is checked all the same"
    assert "its client speaks ClickHouse's dialect" in server.log_tail(100)
