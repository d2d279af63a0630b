"""ON CLUSTER statements: a queue of sequential znodes that every replica watches and works off."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from clickhouse.cluster import COLUMNS, TABLES, insert, replicated, run_on_cluster
from clickhouse.replica import QueryFailed


def tables(name):
    return f"SELECT name FROM system.tables WHERE database = 'default' AND name = '{name}'"


def test_a_table_is_created_altered_and_dropped_on_the_cluster(cluster):
    table = "on_cluster"
    run_on_cluster(cluster.first, f"CREATE TABLE {table} ON CLUSTER both {COLUMNS} {replicated(table)}")
    cluster.wait_healthy(table)
    insert(cluster.second, table, range(5))
    cluster.wait_ids(table, range(5))

    run_on_cluster(cluster.second, f"ALTER TABLE {table} ON CLUSTER both ADD COLUMN extra UInt8 DEFAULT 7")
    cluster.wait_both(f"SELECT DISTINCT extra FROM {table}", [[7]])

    run_on_cluster(cluster.second, f"DROP TABLE {table} ON CLUSTER both")
    assert cluster.on_both(tables(table)) == [[], []]
    assert table not in cluster.first.znodes(TABLES)


def test_concurrent_statements_all_run_on_both(cluster):
    databases = [f"database_{number}" for number in range(10)]
    listing = "SELECT name FROM system.databases WHERE name LIKE 'database_%' ORDER BY name"

    def run_for_all(verb):
        def run(number):
            run_on_cluster(cluster.replicas[number % 2], f"{verb} DATABASE {databases[number]} ON CLUSTER both")

        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(run, range(len(databases))))

    run_for_all("CREATE")
    created = [[name] for name in databases]
    assert cluster.on_both(listing) == [created, created]
    run_for_all("DROP")
    assert cluster.on_both(listing) == [[], []]


def test_a_statement_waits_for_a_replica_that_is_down(cluster):
    table = "queued"
    cluster.second.kill()
    with pytest.raises(QueryFailed, match="TIMEOUT_EXCEEDED|Watching task"):
        cluster.first.query(
            f"CREATE TABLE {table} ON CLUSTER both {COLUMNS} ENGINE = Memory", distributed_ddl_task_timeout=1
        )
    cluster.second.start()
    cluster.wait_both(tables(table), [[table]])
    run_on_cluster(cluster.second, f"DROP TABLE {table} ON CLUSTER both")
