"""Lets kazoo's own integration tests run against our server.

Kazoo's harness starts a ZooKeeper ensemble by the classes of `kazoo.testing.common`. `install()` puts this module in
the place of that one: the same classes, as far as the tests use them, over a `Server`. It also spares us the TLS
libraries that the original imports.
"""

import contextlib
import os
import sys
import tempfile
import uuid
from pathlib import Path
from types import SimpleNamespace

from support import groups
from support.server import Server, given_ports

# The password of "super" is "test" in kazoo's tests.
SETTINGS = {"DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}


def install():
    """Call it before anything of `kazoo.testing` is imported."""
    assert "kazoo.testing.common" not in sys.modules, "kazoo's own harness is loaded already"
    sys.modules["kazoo.testing.common"] = sys.modules[__name__]
    # Tests that need a newer ZooKeeper than this skip themselves.
    os.environ["ZOOKEEPER_VERSION"] = "3.9.5"
    os.environ["ZOOKEEPER_CLUSTER_SIZE"] = "1"
    if groups.GROUPS > 1:
        _spread_roots()


def _spread_roots():
    """Lets the root of each test, which kazoo's harness creates, be below a split point or be one."""
    from kazoo.testing import harness

    set_up = harness.KazooTestHarness.setup_zookeeper

    def set_up_and_spread(case, **options):
        set_up(case, **options)
        if groups.IS_ROOT_SPREAD:
            case.cluster[0].spread(case.hosts[case.hosts.index("/") :])

    harness.KazooTestHarness.setup_zookeeper = set_up_and_spread
    if not groups.IS_ROOT_SPREAD:
        # The harness puts a number behind the name that it gives to roots.
        assert groups.WHOLE == "/kazootests"
        harness.uuid = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"/{uuid.uuid4().hex}"))


class ZookeeperCluster:
    """Kazoo's name for the ensemble. Kazoo makes one per process; whatever stops it ends its server too."""

    def __init__(self, size, **_):
        assert size == 1, "a cluster has one member here"
        self._members = [Member()]

    def __getitem__(self, index):
        return self._members[index]

    def __iter__(self):
        return iter(self._members)

    def start(self):
        for member in self:
            member.run()

    def terminate(self):
        for member in self:
            member.destroy()

    def get_logs(self):
        return [member.log_tail() for member in self]


class Member:
    """One server, made anew by `run()` after a `destroy()`, with the property names that kazoo's tests use."""

    def __init__(self):
        self._directory = None
        self._server = None
        # What ends the other members of its ensemble.
        self._ensemble = contextlib.ExitStack()

    @property
    def running(self):
        return self._server is not None and self._server.is_running()

    @property
    def address(self):
        if self._server is None:
            self._create()
        return self._server.hosts

    @property
    def client_port(self):
        return self._server.port

    def run(self):
        if self._server is None:
            self._create()
        if not self.running:
            self._server.start()
            self._server.wait_ready()

    def stop(self):
        if self.running:
            self._server.stop()

    def destroy(self):
        if self._server is None:
            return
        self.stop()
        self._server = None
        self._ensemble.close()
        # A run makes more servers than there are ports.
        given_ports.difference_update(self._ports)
        self._directory.cleanup()

    def spread(self, path):
        """Gives the children of a znode to all groups."""
        self._server.groups.spread(path)

    def log_tail(self):
        return self._server.log_tail() if self._server else ""

    def _create(self):
        before = set(given_ports)
        self._directory = tempfile.TemporaryDirectory(prefix="kazoo-")
        if groups.GROUPS > 1:
            started = self._ensemble.enter_context(groups.ensemble(Path(self._directory.name), config=SETTINGS))
            self._server = started.follower()
        else:
            self._server = Server(self._directory.name, config=SETTINGS)
        self._ports = given_ports - before
