"""Pytest fixtures around `Server`, for the conftest.py of each directory of tests to import."""

import pytest

from support.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server that all tests share. It stays up: who wants to stop or kill one takes `own_server`."""
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path):
    """A server for one test, which may do with it what it likes."""
    with Server(tmp_path) as running:
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
