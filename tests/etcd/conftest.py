"""What the tests of front ends on etcd share: two of them on one etcd, and clients that are closed again."""

import pytest
from kazoo.client import KazooClient

from support.etcd import front_ends
from support.fixtures import pytest_runtest_makereport  # noqa: F401


@pytest.fixture
def fronts(tmp_path):
    """An etcd and two front ends for one test."""
    with front_ends(tmp_path, 2) as running:
        yield running


@pytest.fixture
def connect():
    clients = []

    def start(*servers, **options):
        hosts = ",".join(server.hosts for server in servers)
        client = KazooClient(hosts, randomize_hosts=False, **options)
        clients.append(client)
        client.start(timeout=30)
        return client

    yield start
    for client in clients:
        client.stop()
        client.close()
