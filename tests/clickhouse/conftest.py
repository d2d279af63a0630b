"""One coordination server and two ClickHouse servers for all tests here, a table for each test."""

import re

import pytest

from clickhouse.cluster import COLUMNS, TABLES, replicated, started
from support.fixtures import running_server


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("clickhouse")
    with running_server(workdir / "server") as server, started(workdir, server) as cluster:
        yield cluster


@pytest.fixture
def cluster(running_cluster, request):
    """The cluster, whole again whatever the test before has left."""
    running_cluster.start_what_is_down()
    yield running_cluster
    if getattr(request.node, "failed", False):
        for replica in running_cluster.replicas:
            print(f"--- errors of {replica.name}, whole log in {replica.log_file}\n{replica.errors()}")
        print(running_cluster.server.log_tail())


@pytest.fixture
def new_table(cluster, request):
    """Creates a table on both replicas, named after the test; its end takes every znode of it away."""
    name = re.sub(r"\W+", "_", request.node.name)

    def create(settings=""):
        cluster.on_both(f"CREATE TABLE {name} {COLUMNS} {replicated(name, settings)}")
        cluster.wait_healthy(name)
        return name

    yield create
    cluster.start_what_is_down()
    cluster.on_both(f"DROP TABLE IF EXISTS {name}")
    assert name not in cluster.first.znodes(TABLES)


@pytest.fixture
def table(new_table):
    return new_table()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Tells the fixtures of a test whether it failed."""
    report = yield
    item.failed = getattr(item, "failed", False) or report.failed
    return report
