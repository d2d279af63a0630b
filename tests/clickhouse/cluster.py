"""Two ClickHouse servers that replicate to each other through one coordination server, or an ensemble of some."""

import contextlib

from clickhouse.replica import Ports, Replica
from clickhouse.waiting import DEADLINE_S, wait_for
from support.server import free_ports

TABLES = "/clickhouse/tables"
COLUMNS = "(day Date, id UInt64, value String)"


@contextlib.contextmanager
def started(workdir, server):
    """A cluster that runs while it is used; its coordination server is somebody else's."""
    cluster = Cluster(workdir, server)
    try:
        cluster.start_what_is_down()
        yield cluster
    finally:
        cluster.kill()


class Cluster:
    """What coordinates, and the replicas `first` and `second`, which ClickHouse knows as `both`."""

    def __init__(self, workdir, server):
        self.server = server
        self._workdir = workdir
        self._ports = distinct_ports(3)
        self.first = self._replica("first", self._ports[0])
        self.second = self._replica("second", self._ports[1])
        self.replicas = (self.first, self.second)

    def add_guarded(self, identity):
        """A third server, outside the cluster `both`, whose znodes belong to `identity` alone. It is not started."""
        guard = f"<identity>{identity}</identity>"
        return self._replica("guarded", self._ports[2], identity=guard)

    def start_what_is_down(self):
        if not self.server.is_running():
            self.server.restart()
        for replica in self.replicas:
            if not replica.is_running():
                replica.start()

    def kill(self):
        for replica in self.replicas:
            if replica.is_running():
                replica.kill()

    def on_both(self, sql, **settings):
        """Runs a statement on one replica after the other and returns the answers of both."""
        return [replica.query(sql, **settings) for replica in self.replicas]

    def wait_both(self, sql, rows, within_s=DEADLINE_S):
        """Waits until both replicas answer a query with `rows`."""
        wait_for(lambda: self.on_both(sql), [rows, rows], within_s=within_s)

    def wait_ids(self, table, ids):
        """Waits until both replicas hold exactly these ids, each once."""
        self.wait_both(f"SELECT id FROM {table} ORDER BY id", [[number] for number in sorted(ids)])

    def wait_healthy(self, table, within_s=DEADLINE_S):
        """Waits until both replicas of a table are writable, in session, aware of each other and out of work."""
        sql = f"""
            SELECT is_readonly, is_session_expired, active_replicas, total_replicas, queue_size, future_parts
            FROM system.replicas WHERE table = '{table}'
        """
        self.wait_both(sql, [[0, 0, 2, 2, 0, 0]], within_s)

    def leaders(self, table):
        """The running replicas that lead a table's merges."""
        return [r for r in self.replicas if r.is_running() and r.query(leadership(table)) == [[1]]]

    def wait_one_leader(self, table):
        """Waits until one replica alone leads, and returns it."""
        wait_for(lambda: len(self.leaders(table)), 1)
        return self.leaders(table)[0]

    def other(self, replica):
        return self.second if replica is self.first else self.first

    def _replica(self, name, ports, identity=""):
        settings = {
            "server_nodes": "".join(
                f"<node><host>{host}</host><port>{port}</port></node>" for host, port in self.server.addresses
            ),
            "first_tcp_port": self._ports[0].tcp,
            "second_tcp_port": self._ports[1].tcp,
            "identity": identity,
        }
        return Replica(self._workdir, name, ports, settings)


def leadership(table):
    return f"SELECT is_leader FROM system.replicas WHERE table = '{table}'"


def replicated(table, settings=""):
    """The engine clause of a replicated table; its replicas meet at `TABLES`/`table`."""
    return (
        f"ENGINE = ReplicatedMergeTree('{TABLES}/{table}', '{{replica}}') "
        f"PARTITION BY toYYYYMM(day) ORDER BY id {settings}"
    )


def run_on_cluster(replica, sql):
    """Runs an ON CLUSTER statement and checks that both replicas report success."""
    statuses = [status for _host, _port, status, *_ in replica.query(sql)]
    assert statuses == [0, 0], f"{sql}: {statuses}"


def insert(replica, table, ids, day="2024-01-01", **settings):
    """Inserts one row for each id, as one block."""
    rows = ", ".join(f"('{day}', {number}, 'value {number}')" for number in ids)
    return replica.query(f"INSERT INTO {table} (day, id, value) VALUES {rows}", **settings)


def insert_until_acknowledged(replica, table, ids):
    """Sends the same block again until ClickHouse takes it. Deduplication makes that safe."""
    # A refused insert costs ClickHouse pages of stack traces in its log, so this does not ask as often as it could.
    wait_for(lambda: insert(replica, table, ids), [], pause_s=0.2)


def distinct_ports(servers):
    """Ports for so many ClickHouse servers, no two alike."""
    ports = free_ports(servers * len(Ports._fields))
    return [Ports(ports.pop(), ports.pop(), ports.pop()) for _ in range(servers)]
