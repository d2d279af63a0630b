"""Eight Raft groups under ClickHouse: twenty replicated tables whose znodes lie in all of them, and move while rows are inserted."""

import contextlib

import pytest

from clickhouse.cluster import COLUMNS, TABLES, insert, replicated, started
from clickhouse.replica import QueryFailed
from clickhouse.waiting import wait_for
from clickhouse.writer import KNOWN_FOR_LONG, Writer, at_work, check_rows, wait_for_progress
from support.ensemble import Ensemble
from support.groups import Groups, admin_settings, settings

GROUPS = 8
TABLE_COUNT = 20
SLOTS_AT_ONCE = "512"


@contextlib.contextmanager
def twenty_tables(cluster):
    """Tables on both replicas; their end takes every znode of them away."""
    names = [f"table_{number}" for number in range(TABLE_COUNT)]
    for name in names:
        cluster.on_both(f"CREATE TABLE {name} {COLUMNS} {replicated(name, KNOWN_FOR_LONG)}")
    for name in names:
        cluster.wait_healthy(name)
    yield names
    for name in names:
        cluster.on_both(f"DROP TABLE {name}")
    left = [name for name in cluster.first.znodes(TABLES) if name in names]
    assert not left, left


class CountingWriter(Writer):
    """Keeps the errors of inserts that were refused, which it sends again."""

    def __init__(self, replica, table):
        super().__init__(replica, table, 0)
        self.refusals = []

    def insert(self, ids):
        def attempt():
            try:
                return insert(self.replica, self.table, ids)
            except QueryFailed as error:
                self.refusals.append(str(error))
                raise

        wait_for(attempt, [], pause_s=0.2)


@contextlib.contextmanager
def inserting(cluster, tables):
    """A writer for each table, on one replica or the other; in the end all that was acknowledged is on both."""
    writers = [CountingWriter(cluster.replicas[number % 2], table) for number, table in enumerate(tables)]
    with at_work(writers):
        yield writers
    print(f"{sum(writer.blocks for writer in writers)} blocks inserted, {len(refusals(writers))} attempts refused")
    for writer in writers:
        # Twenty tables have a queue of merges together.
        cluster.wait_healthy(writer.table, within_s=180)
        check_rows(cluster, writer.table, [writer])


def check_settled(cluster, writers):
    """Inserts go on, and none is refused once sessions are back that lost their connections while members stopped. Returns those that were.

    ClickHouse begins a new session then, and its tables are read-only for a moment.
    """
    for writer in writers:
        wait_for(lambda: cluster.on_both(writable(writer.table)), [[[0, 0]], [[0, 0]]], within_s=120)
    before = refusals(writers)
    wait_for_progress(writers)
    wait_for_progress(writers)
    assert refusals(writers) == before
    return before


def writable(table):
    return f"SELECT is_readonly, is_session_expired FROM system.replicas WHERE table = '{table}'"


def refusals(writers):
    return [refusal for writer in writers for refusal in writer.refusals]


@pytest.mark.timeout(600)
def test_tables_move_between_groups_while_rows_are_inserted(tmp_path):
    config = settings(GROUPS, [TABLES])
    with Ensemble(tmp_path, config=config, own=admin_settings) as ensemble, started(tmp_path, ensemble) as cluster:
        groups = Groups(ensemble.members, tmp_path, GROUPS)
        groups.prepare()
        with twenty_tables(cluster) as tables, inserting(cluster, tables) as writers:
            assert groups.groups_of(TABLES) == [0]
            groups.move(TABLES, "--evenly", "--at-once", SLOTS_AT_ONCE)
            assert groups.groups_of(TABLES) == list(range(GROUPS))
            wait_for_progress(writers)
            # All of them to one other group, and everything back to the home group.
            groups.move(TABLES, "--to", "3", "--at-once", SLOTS_AT_ONCE)
            wait_for_progress(writers)
            groups.move(TABLES, "--to", "0", "--at-once", SLOTS_AT_ONCE)
            wait_for_progress(writers)
            groups.move(TABLES, "--evenly", "--at-once", SLOTS_AT_ONCE)
            wait_for_progress(writers)
            assert refusals(writers) == []


@pytest.mark.timeout(600)
def test_one_group_with_data_becomes_eight_while_rows_are_inserted(tmp_path):
    with Ensemble(tmp_path, own=admin_settings) as ensemble, started(tmp_path, ensemble) as cluster:
        groups = Groups(ensemble.members, tmp_path, GROUPS)
        groups.name_administrator()
        with twenty_tables(cluster) as tables, inserting(cluster, tables) as writers:
            for member in ensemble.members:
                member.stop()
                member.configure(member.settings | settings(GROUPS))
                member.restart()
                ensemble.leader()
                wait_for_progress(writers)
            groups.wait_led()
            refused = check_settled(cluster, writers)
            groups.spread(TABLES, at_once=512)
            assert groups.groups_of(TABLES) == list(range(GROUPS))
            wait_for_progress(writers)
            assert refusals(writers) == refused
