"""Servers of which programs of operators are told."""

import contextlib

import pytest
from kazoo.client import KazooClient

from support.ensemble import Ensemble
from support.server import Server

ROLES = ["standalone", "leader", "follower"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """By its role, a ZooKeeper and a Paddock that have had the same requests."""
    workdir = tmp_path_factory.mktemp("pairs")
    with contextlib.ExitStack() as stack:
        kinds = ["zookeeper", "paddock"]
        alone = [Server(workdir / f"{kind}-alone", kind=kind) for kind in kinds]
        ensembles = [Ensemble(workdir / kind, kind=kind) for kind in kinds]
        for server in alone:
            server.start()
            stack.callback(server.kill)
        ensembles = [stack.enter_context(ensemble) for ensemble in ensembles]
        for server in alone:
            server.wait_ready()
        pairs = {
            "standalone": alone,
            "leader": [ensemble.leader() for ensemble in ensembles],
            "follower": [ensemble.follower() for ensemble in ensembles],
        }
        for servers in [pairs["standalone"], pairs["follower"]]:
            for server in servers:
                client = KazooClient(server.hosts)
                client.start()
                stack.callback(client.close)
                stack.callback(client.stop)
                client.create("/data", b"0123456789")
                client.create("/ephemeral", ephemeral=True)
                client.get("/data", watch=print)
        yield pairs


@pytest.fixture(params=ROLES)
def pair(request, pairs):
    return request.param, pairs[request.param]
