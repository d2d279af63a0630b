"""The daily work of a replicated table: each statement runs on one replica and shows on both."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from clickhouse.cluster import COLUMNS, TABLES, insert, insert_until_acknowledged, replicated
from clickhouse.replica import QueryFailed
from clickhouse.waiting import wait_for


def active_parts(replica, table):
    return replica.column(f"SELECT name FROM system.parts WHERE active AND table = '{table}' ORDER BY name")


def test_inserts_on_both_sides_arrive_on_both(cluster, table):
    insert(cluster.first, table, range(0, 10))
    insert(cluster.second, table, range(10, 20))
    cluster.wait_ids(table, range(20))


def test_a_repeated_insert_is_deduplicated(cluster, table):
    insert(cluster.first, table, range(10))
    insert(cluster.first, table, range(10))
    insert(cluster.second, table, range(10))
    insert(cluster.second, table, [10])
    cluster.wait_ids(table, range(11))
    assert len(cluster.first.znodes(f"{TABLES}/{table}/blocks")) == 2


def test_concurrent_inserts_all_arrive_once(cluster, table):
    blocks = 100

    def insert_block(block):
        insert(cluster.replicas[block % 2], table, range(block * 10, block * 10 + 10))

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(insert_block, range(blocks)))
    cluster.wait_ids(table, range(blocks * 10))
    cluster.wait_healthy(table)


def test_a_quorum_insert_returns_when_both_have_it(cluster, table):
    for block in range(5):
        insert(cluster.first, table, [block], insert_quorum=2)
        # No waiting here: the second replica had the rows before the insert returned.
        assert cluster.second.query(f"SELECT max(id) FROM {table}") == [[block]]


def test_one_replica_leads(cluster, table):
    leader = cluster.wait_one_leader(table)
    assert cluster.other(leader) not in cluster.leaders(table)
    assert len(cluster.first.znodes(f"{TABLES}/{table}/leader_election")) == 2


@pytest.mark.parametrize("asked", ["leader", "follower"])
def test_optimize_merges_on_both(cluster, table, asked):
    leader = cluster.wait_one_leader(table)
    replica = leader if asked == "leader" else cluster.other(leader)
    for block in range(6):
        insert(cluster.replicas[block % 2], table, [block])
        insert(cluster.replicas[block % 2], table, [block + 6], day="2024-02-01")
    cluster.wait_ids(table, range(12))

    def parts_of_both_after_optimize():
        replica.query(f"OPTIMIZE TABLE {table} FINAL")
        names = [active_parts(r, table) for r in cluster.replicas]
        return len(names[0]), names[0] == names[1]

    # More than once: ClickHouse leaves out a partition whose parts are in a merge already.
    wait_for(parts_of_both_after_optimize, (2, True))
    cluster.wait_ids(table, range(12))


def test_alter_changes_the_columns_of_both(cluster, table):
    insert(cluster.first, table, range(3))
    cluster.wait_ids(table, range(3))

    cluster.first.query(f"ALTER TABLE {table} ADD COLUMN size UInt16 DEFAULT id * 2")
    cluster.wait_both(f"SELECT size FROM {table} ORDER BY id", [[0], [2], [4]])

    # This row's size is on disk, so the next ALTER has a file to convert.
    cluster.first.query(f"INSERT INTO {table} (id, size) VALUES (3, 300)")
    cluster.wait_ids(table, range(4))
    cluster.second.query(f"ALTER TABLE {table} MODIFY COLUMN size String DEFAULT toString(id * 2)")
    cluster.wait_both(f"SELECT size FROM {table} ORDER BY id", [["0"], ["2"], ["4"], ["300"]])

    cluster.first.query(f"ALTER TABLE {table} DROP COLUMN size")
    names = f"SELECT name FROM system.columns WHERE table = '{table}' ORDER BY name"
    cluster.wait_both(names, [["day"], ["id"], ["value"]])


def test_a_mutation_rewrites_the_rows_of_both(cluster, table):
    insert(cluster.first, table, range(10))
    insert(cluster.second, table, range(10, 20))
    cluster.second.query(f"ALTER TABLE {table} DELETE WHERE id % 2 = 1")
    cluster.wait_ids(table, range(0, 20, 2))

    cluster.first.query(f"ALTER TABLE {table} UPDATE value = 'changed' WHERE id = 4")
    cluster.wait_both(f"SELECT id FROM {table} WHERE value = 'changed'", [[4]])
    cluster.wait_both(f"SELECT is_done FROM system.mutations WHERE table = '{table}'", [[1], [1]])


def test_partitions_are_detached_attached_and_dropped_on_both(cluster, table):
    insert(cluster.first, table, range(0, 5), day="2024-01-01")
    insert(cluster.first, table, range(5, 10), day="2024-02-01")
    cluster.wait_ids(table, range(10))

    cluster.second.query(f"ALTER TABLE {table} DETACH PARTITION 202401")
    cluster.wait_ids(table, range(5, 10))
    cluster.second.query(f"ALTER TABLE {table} ATTACH PARTITION 202401")
    cluster.wait_ids(table, range(10))
    cluster.first.query(f"ALTER TABLE {table} DROP PARTITION 202402")
    cluster.wait_ids(table, range(5))


def test_a_partition_is_replaced_on_both(cluster, table):
    insert(cluster.first, table, range(5))
    cluster.wait_ids(table, range(5))
    source = f"{table}_source"
    cluster.first.query(f"CREATE TABLE {source} {COLUMNS} ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY id")
    try:
        insert(cluster.first, source, range(100, 105))
        cluster.first.query(f"ALTER TABLE {table} REPLACE PARTITION 202401 FROM {source}")
        cluster.wait_ids(table, range(100, 105))
    finally:
        cluster.first.query(f"DROP TABLE {source}")


def test_old_znodes_are_cleaned_away(cluster, new_table):
    table = new_table(
        "SETTINGS cleanup_delay_period = 1, cleanup_delay_period_random_add = 0, "
        "replicated_deduplication_window = 5, min_replicated_logs_to_keep = 3"
    )
    for block in range(20):
        insert(cluster.replicas[block % 2], table, [block])
    cluster.wait_ids(table, range(20))

    wait_for(lambda: len(cluster.first.znodes(f"{TABLES}/{table}/blocks")), 5)
    wait_for(lambda: len(cluster.first.znodes(f"{TABLES}/{table}/log")) < 20, True)
    # The cleaner takes the oldest blocks first, so the newest one is still known.
    insert(cluster.first, table, [19])
    insert(cluster.first, table, [20])
    cluster.wait_ids(table, range(21))


def test_drop_takes_a_replica_and_then_the_table_away(cluster, table):
    insert(cluster.first, table, range(5))
    cluster.wait_ids(table, range(5))

    cluster.second.query(f"DROP TABLE {table}")
    assert cluster.first.znodes(f"{TABLES}/{table}/replicas") == ["first"]
    insert(cluster.first, table, range(5, 10))
    assert cluster.first.query(f"SELECT count() FROM {table}") == [[10]]

    cluster.first.query(f"DROP TABLE {table}")
    assert table not in cluster.first.znodes(TABLES)


def test_the_tree_can_be_queried(cluster, table):
    assert cluster.first.znodes("/") == cluster.second.znodes("/") == ["clickhouse", "zookeeper"]
    replicas = f"SELECT name, value, numChildren > 0 FROM system.zookeeper WHERE path = '{TABLES}/{table}/replicas'"
    cluster.wait_both(replicas + " ORDER BY name", [["first", "", 1], ["second", "", 1]])

    owner = f"""
        SELECT ephemeralOwner != 0, dataLength > 0, version, czxid = mzxid, abs(ctime - now()) < 3600
        FROM system.zookeeper WHERE path = '{TABLES}/{table}/replicas/second' AND name = 'is_active'
    """
    cluster.wait_both(owner, [[1, 1, 0, 1, 1]])
    with pytest.raises(QueryFailed, match="No node"):
        cluster.first.znodes("/missing")


def test_an_identity_guards_its_znodes(cluster):
    table = "guarded"
    replica = cluster.add_guarded("user:secret")
    replica.start()
    try:
        replica.query(f"CREATE TABLE {table} {COLUMNS} {replicated(table)}")
        insert(replica, table, range(5))
        assert "guarded" in replica.znodes(f"{TABLES}/{table}/replicas")
        with pytest.raises(QueryFailed, match="Not authenticated"):
            cluster.first.znodes(f"{TABLES}/{table}")

        replica.stop()
        replica.start()
        insert_until_acknowledged(replica, table, range(5, 10))
        assert replica.query(f"SELECT count() FROM {table}") == [[10]]
        replica.query(f"DROP TABLE {table}")
        assert table not in cluster.first.znodes(TABLES)
    finally:
        replica.kill()
