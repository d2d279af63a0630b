"""ClickHouse keeps its tables while Paddock takes over from the Apache ZooKeeper that it began with."""

import pytest

from clickhouse.cluster import COLUMNS, TABLES, insert, replicated, started
from clickhouse.writer import KNOWN_FOR_LONG, check_rows, wait_for_progress, writing
from support.cutover import CutOver


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory):
    """Takes the place of the cluster that all other tests share. Its ClickHouse servers know both sides of the move."""
    workdir = tmp_path_factory.mktemp("cut-over")
    with CutOver(workdir) as move, started(workdir, move) as cluster:
        yield cluster


def test_inserts_go_on_through_a_cut_over(cluster, new_table):
    table, move = new_table(KNOWN_FOR_LONG), cluster.server
    insert(cluster.first, table, [20_000_000])
    with writing(cluster, table) as writers:
        move.follow()
        wait_for_progress(writers)
        move.cut_over()
        wait_for_progress(writers)
    check_rows(cluster, table, writers)
    cluster.wait_both(f"SELECT count() FROM {table} WHERE id = 20000000", [[1]])
    cluster.on_both(f"CREATE TABLE later {COLUMNS} {replicated('later')}")
    insert(cluster.second, "later", [1, 2])
    cluster.wait_ids("later", [1, 2])
    cluster.on_both("DROP TABLE later")
    assert "later" not in cluster.first.znodes(TABLES)
