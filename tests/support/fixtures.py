"""Pytest fixtures around `Server`, for the conftest.py of each directory of tests to import.

With TEST_MEMBERS=3 in the environment, each server is a follower of an ensemble of three: what it does not decide itself
it has to get from the leader, and a test should not see the difference. With TEST_ENGINE=etcd, each is a front end on an
etcd of its own. With TEST_GROUPS=8, each is a follower of an ensemble with groups (`support/groups.py`). With TEST_CROSS_CHECK, each checks its answers against an Apache ZooKeeper (`support/cross_check.py`).
"""

import contextlib
import os

import pytest

from support import cross_check, groups
from support.ensemble import Ensemble
from support.etcd import Etcd, front_ends
from support.server import Server

MEMBERS = int(os.environ.get("TEST_MEMBERS", "1"))
ENGINE = os.environ.get("TEST_ENGINE", "log")


@contextlib.contextmanager
def running_server(workdir, config=None, txn_operations=None):
    """A server as the environment wants it, with more lines in its configuration unless it is cross-checked.

    Tests with larger multis than etcd takes by itself say how many operations these have at most.
    """
    if cross_check.IS_ON:
        with cross_check.judged(workdir) as server:
            yield server
    elif ENGINE == "etcd":
        etcd, arguments = None, []
        if txn_operations:
            etcd = Etcd(workdir / "cluster", arguments=["--max-txn-ops", str(txn_operations)])
            arguments = ["--etcd-txn-operations-max", str(txn_operations)]
        with front_ends(workdir, 1, config=config, etcd=etcd, arguments=arguments) as (_, server):
            yield server
    elif groups.GROUPS > 1:
        with groups.ensemble(workdir, config=config) as ensemble:
            yield ensemble.follower()
    elif MEMBERS == 1:
        with Server(workdir, config=config) as server:
            yield server
    else:
        assert not config, "an ensemble has the configuration of its own"
        with Ensemble(workdir, MEMBERS) as ensemble:
            yield ensemble.follower()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server that all tests share. It stays up: who wants to stop or kill one takes `own_server`."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path):
    """A server for one test, which may do with it what it likes."""
    with running_server(tmp_path) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Adds the server's last log lines to the report of a test that failed."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Server):
                report.sections.append((f"log of {name}", value.log_tail()))
    return report
