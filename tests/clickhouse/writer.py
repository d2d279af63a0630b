"""Writers that insert block after block while something happens to the servers, and what must be there afterwards."""

import contextlib
import threading

from clickhouse.cluster import insert_until_acknowledged
from clickhouse.waiting import wait_for

BLOCKS_AT_LEAST = 10
BLOCK_ROWS = 5
# Each writer's ids start at its own multiple of this.
IDS_OF_A_WRITER = 1_000_000
# No writer gets that far.
NEW_ID = 10 * IDS_OF_A_WRITER
# A block that is sent again must still be known, however many the other writer has inserted since.
KNOWN_FOR_LONG = "SETTINGS replicated_deduplication_window = 1000000"


class Writer(threading.Thread):
    """Inserts block after block on one replica. A block that fails is sent again until it is acknowledged."""

    def __init__(self, replica, table, first_id):
        super().__init__(name=f"writer on {replica.name}", daemon=True)
        self.replica = replica
        self.blocks = 0
        self.table = table
        self._first_id = first_id
        self._stopping = threading.Event()

    def run(self):
        while not self._stopping.is_set():
            start = self._first_id + self.blocks * BLOCK_ROWS
            self.insert(range(start, start + BLOCK_ROWS))
            self.blocks += 1

    def insert(self, ids):
        """Returns when a block is acknowledged."""
        insert_until_acknowledged(self.replica, self.table, ids)

    def stop(self):
        self._stopping.set()
        self.join()

    def acknowledged(self):
        return range(self._first_id, self._first_id + self.blocks * BLOCK_ROWS)


@contextlib.contextmanager
def writing(cluster, table):
    """A writer on each replica, at work in the `with` block."""
    writers = [Writer(replica, table, number * IDS_OF_A_WRITER) for number, replica in enumerate(cluster.replicas)]
    with at_work(writers):
        yield writers


@contextlib.contextmanager
def at_work(writers):
    """Starts writers, and stops them behind the `with` block, which begins when each has inserted some blocks."""
    for writer in writers:
        writer.start()
    try:
        wait_for_progress(writers)
        yield
    finally:
        for writer in writers:
            writer.stop()


def wait_for_progress(writers):
    """Waits until each writer has got some more blocks acknowledged."""
    goals = {writer: writer.blocks + BLOCKS_AT_LEAST for writer in writers}
    wait_for(
        lambda: [writer.name for writer in writers if writer.blocks < goals[writer]],
        [],
        while_true=lambda: all(writer.is_alive() for writer in writers),
    )


def check_rows(cluster, table, writers):
    """Waits until all that was acknowledged is on both replicas."""
    cluster.wait_healthy(table)
    for writer in writers:
        wait_for_rows_of(cluster, table, writer)


def wait_for_rows_of(cluster, table, writer):
    """Waits until a writer's rows are on its own replica, and exactly once on the other.

    On its own replica there may be a second copy for some minutes: ClickHouse keeps the part of an insert whose answer
    was lost until it has made sure that the coordination server does not know it.
    """
    ids = writer.acknowledged()
    rows = [[number] for number in ids]
    where = f"FROM {table} WHERE id BETWEEN {ids[0]} AND {ids[-1] + BLOCK_ROWS} ORDER BY id"
    wait_for(lambda: writer.replica.query(f"SELECT DISTINCT id {where}"), rows)
    wait_for(lambda: cluster.other(writer.replica).query(f"SELECT id {where}"), rows)
