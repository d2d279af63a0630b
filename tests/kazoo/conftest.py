"""What the kazoo tests share: clients that are closed again, each in a corner of the tree of its own."""

import itertools

import pytest
from kazoo.client import KazooClient

from support.groups import root_of_test
from support.fixtures import own_server, pytest_runtest_makereport, server  # noqa: F401

_chroots = itertools.count(1)


@pytest.fixture
def connect():
    """`connect(server, **options)` starts a KazooClient; all of them are stopped after the test."""
    clients = []

    def start(server, chroot="", **options):
        client = KazooClient(server.hosts + chroot, **options)
        clients.append(client)
        client.start()
        return client

    yield start
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def chroot(server, connect):
    """An empty znode of the shared server, for this test alone."""
    return root_of_test(server, f"/test-{next(_chroots)}", connect)


@pytest.fixture
def client(server, connect, chroot):
    """A client of the shared server; its root is this test's `chroot`."""
    return connect(server, chroot)


@pytest.fixture
def other(server, connect, chroot):
    """A second client with the same root as `client`."""
    return connect(server, chroot)
