"""Ensembles with several Raft groups, whose znodes below split points are spread over all of them.

With TEST_GROUPS=8 in the environment each ensemble of the tests has eight groups. TEST_SPREAD says where the znodes of a test lie:

    each    the root of a test is a split point, so that its znodes lie in all groups
    whole   the roots of tests are children of one split point, so that each test has its znodes in one group, mostly not the home group
"""

import contextlib
import json
import os
import subprocess

from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from support.ensemble import Ensemble
from support.server import environment, free_port
from support.waiting import eventually

GROUPS = int(os.environ.get("TEST_GROUPS", "1"))
SPREAD = os.environ.get("TEST_SPREAD", "each")
# The znodes of a test lie in several groups.
IS_ROOT_SPREAD = GROUPS > 1 and SPREAD == "each"
# The split point below which whole tests lie, named as kazoo's harness begins the names of its roots.
WHOLE = "/kazootests"
PATIENCE_S = 60
_USER, _PASSWORD = "owner", "secret"


def settings(count=GROUPS, split_points=()):
    """Lines of zoo.cfg for an ensemble with groups."""
    lines = {"paddock.group_count": count}
    if split_points:
        lines["paddock.split_points"] = ",".join(split_points)
    return lines


def admin_settings():
    """Lines of zoo.cfg by which a member has an interface for administrators, at a port of its own."""
    return {
        "admin.enableServer": "true",
        "admin.serverAddress": "127.0.0.1",
        "admin.serverPort": free_port(),
    }


class Groups:
    """What an administrator does with the groups of an ensemble. `members` have `admin_settings()` of their own."""

    def __init__(self, members, workdir, count=GROUPS):
        self._members = members
        self._count = count
        self._identity = workdir / "identity"
        self._identity.write_text(f"digest:{_USER}:{_PASSWORD}")

    def prepare(self):
        """Names the administrator, and returns when each group has a leader."""
        self.name_administrator()
        self.wait_led()

    def name_administrator(self):
        with self._client() as client:
            everyone = make_acl("world", "anyone", all=True)
            client.set_acls("/", [everyone, make_digest_acl(_USER, _PASSWORD, all=True)])

    def wait_led(self):
        """Returns when all members know the leader of each group."""
        eventually(self._led, [self._count] * len(self._members), PATIENCE_S)

    def spread(self, path, at_once=1024):
        """Creates a znode, unless it is there, makes it a split point, and gives its slots to all groups evenly."""
        with self._client() as client:
            client.ensure_path(path)
        self.run("split", path)
        self.move(path, "--evenly", "--at-once", str(at_once))

    def move(self, path, *where):
        """Moves slots of a split point."""
        return self.run("move", path, *where)

    @contextlib.contextmanager
    def _client(self):
        client = KazooClient(self._members[0].hosts)
        client.start(timeout=PATIENCE_S)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def list(self):
        """Groups and split points, as a member tells them."""
        return json.loads(self.run("list", "--json"))

    def groups_of(self, path):
        """The groups that have slots of a split point."""
        points = [point for point in self.list()["split_points"] if point["path"] == path]
        return sorted({run["group"] for point in points for run in point["slots"]})

    def run(self, command, *arguments):
        """Runs `paddock groups COMMAND` at a member that is up."""
        member = next(member for member in self._members if member.is_running())
        host = f"127.0.0.1:{member.settings['admin.serverPort']}"
        done = subprocess.run(
            [environment("PADDOCK_BIN"), "groups", command, host, *arguments, "--auth", f"@{self._identity}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"paddock groups {command} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def _led(self):
        return [groups_with_leader(member) for member in self._members]


def groups_with_leader(member):
    """The number of groups that a member takes part in and that have a leader, as it knows them."""
    words = dict(line.split("\t", 1) for line in member.try_word("mntr").splitlines() if "\t" in line)
    numbers = [words.get(f"zk_groups{name}") for name in ("", "_without_leader", "_joining")]
    if None in numbers:
        return None
    groups, without, joining = map(int, numbers)
    return groups - without - joining


def root_of_test(server, path, connect):
    """Creates the root of a test's znodes, `path` with one group; returns where it is."""
    if SPREAD == "whole" and server.groups:
        path = WHOLE + path
    if IS_ROOT_SPREAD and server.groups:
        server.groups.spread(path)
    else:
        connect(server).ensure_path(path)
    return path


def see_all(client):
    """Lets a client see what other sessions were told. With one group it does, since they are clients of one member; with several it has to ask."""
    if GROUPS > 1:
        client.sync("/")


@contextlib.contextmanager
def ensemble(workdir, members=3, config=None):
    """Members with groups; those of a split point for whole tests are spread already."""
    with Ensemble(workdir, members, config=settings() | (config or {}), own=admin_settings) as started:
        groups = Groups(started.members, workdir)
        groups.prepare()
        if SPREAD == "whole":
            groups.spread(WHOLE)
        for member in started.members:
            member.groups = groups
        yield started
