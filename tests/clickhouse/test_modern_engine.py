"""A modern ClickHouse engine as a client, in each form of the dialect that its settings can ask for."""

import pytest

from clickhouse.modern_engine import Engine
from clickhouse.wiretap import Wiretap
from support.fixtures import running_server

# The version of the greeting that each choice of settings leads to.
FORMS = {
    (): 0,
    ("use_compression",): 10,
    ("use_xid_64",): 11,
    ("use_xid_64", "use_compression"): 11,
    ("pass_opentelemetry_tracing_context",): 12,
    ("pass_opentelemetry_tracing_context", "use_xid_64", "use_compression"): 12,
}

FEATURES = [
    "FILTERED_LIST",
    "MULTI_READ",
    "CHECK_NOT_EXISTS",
    "CREATE_IF_NOT_EXISTS",
    "REMOVE_RECURSIVE",
    "MULTI_WATCHES",
    "CHECK_STAT",
    "PERSISTENT_WATCHES",
    "CREATE_WITH_STATS",
    "TRY_REMOVE",
    "LIST_WITH_STAT_AND_DATA",
    "GET_CHILDREN_RECURSIVE",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    # A KeeperMap table puts each row of an insert into one multi.
    with running_server(tmp_path_factory.mktemp("server"), txn_operations=4096) as running:
        if running.kind != "paddock":
            pytest.skip("ZooKeeper has no KeeperMap features")
        yield running


@pytest.mark.parametrize("settings", FORMS, ids=lambda settings: "+".join(settings) or "plain")
def test_tables_live_in_the_tree(server, tmp_path, settings):
    with Wiretap(server) as wiretap, Engine(tmp_path, wiretap.port, settings) as engine:
        # This engine starts no traces of its own: where the form has room for one, each request says that it has none.
        engine.query("CREATE TABLE t (k UInt64, v String) ENGINE = KeeperMap('/t') PRIMARY KEY k")
        engine.query("INSERT INTO t SELECT number, toString(number) FROM numbers(1000)")
        assert engine.query("SELECT count(), sum(k) FROM t") == [[1000, 499500]]
        engine.query("ALTER TABLE t UPDATE v = 'changed' WHERE k = 1")
        engine.query("DELETE FROM t WHERE k > 2")
        rows = [[0, "0"], [1, "changed"], [2, "2"]]
        assert engine.query("SELECT k, v FROM t ORDER BY k") == rows
        first, second = (engine.query("SELECT generateSerialID('series')")[0][0] for _ in range(2))
        assert second == first + 1
        engine.query("DROP TABLE t")
        for feature in FEATURES:
            assert f"Keeper feature flag {feature}: enabled" in engine.log(), feature
    assert set(wiretap.greetings) == {FORMS[settings]}, "no other form was tried"
