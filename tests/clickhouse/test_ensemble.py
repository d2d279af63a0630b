"""An ensemble of three under ClickHouse: whichever member leads and dies, inserts go on."""

import pytest

from clickhouse.cluster import started
from clickhouse.writer import KNOWN_FOR_LONG, check_rows, wait_for_progress, writing
from support.ensemble import Ensemble

LEADER_KILLS = 3


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory):
    """Takes the place of the cluster that all other tests share. Its ClickHouse servers know all three members."""
    workdir = tmp_path_factory.mktemp("ensemble")
    with Ensemble(workdir) as ensemble, started(workdir, ensemble) as cluster:
        yield cluster


def test_inserts_go_on_when_the_leader_is_killed(cluster, new_table):
    table = new_table(KNOWN_FOR_LONG)
    ensemble = cluster.server
    with writing(cluster, table) as writers:
        for _ in range(LEADER_KILLS):
            ensemble.leader().kill()
            # With two of three members: a quorum, and no more.
            wait_for_progress(writers)
            ensemble.restart()
            wait_for_progress(writers)
    check_rows(cluster, table, writers)
