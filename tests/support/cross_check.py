"""Servers that check their answers against an Apache ZooKeeper, and the judgement of what they found.

TEST_CROSS_CHECK in the environment names a list of what they may find: regular expressions for lines of the log, one a line,
with the reason in a comment above.
"""

import contextlib
import os
import re
from pathlib import Path

from support.etcd import front_ends
from support.server import Server
from support.waiting import eventually

LIST = os.environ.get("TEST_CROSS_CHECK")
IS_ON = bool(LIST) and os.environ.get("TEST_SERVER", "paddock") == "paddock"

FOUND = ("cross-check found a difference", "cross-check gave up on a connection")


@contextlib.contextmanager
def paddock_checked_by_zookeeper(workdir):
    """A server that checks its answers against an Apache ZooKeeper, which comes second."""
    with Server(workdir / "reference", kind="zookeeper") as reference:
        arguments = ["--cross-check", reference.hosts]
        if os.environ.get("TEST_ENGINE") == "etcd":
            # Writes that share a zxid could go to the reference in another order.
            arguments.append("--etcd-separate-writes")
            with front_ends(workdir, 1, arguments=arguments) as (_, server):
                yield server, reference
        else:
            with Server(workdir / "checked", arguments=arguments) as server:
                yield server, reference


@contextlib.contextmanager
def judged(workdir, documented_in=LIST):
    """A checked server for tests; in the end, when all its clients are gone, it may have found only what a list names."""
    with paddock_checked_by_zookeeper(workdir) as (server, _):
        yield server
        # Those that tests have left over end with their sessions.
        eventually(lambda: counts(server)["connections"], 0, timeout_s=40)
        told = counts(server)
        assert told["compared"] > 0
        # A thread of its own writes the log, behind the counters. It drops lines when there are many.
        eventually(lambda: len(found_by(server)), told["differences"] + told["given_up"])
        found = found_by(server)
        patterns = documented(documented_in)
        unknown = [line for line in found if not any(pattern.search(line) for pattern in patterns)]
        assert not unknown, "\n".join([f"{len(unknown)} that are not documented in {documented_in}:", *unknown])


def found_by(server):
    """The lines of a server's log on differences and on connections that it gave up."""
    return [line for line in server.log_file.read_text().splitlines() if any(what in line for what in FOUND)]


def counts(server):
    """The figures of a server's cross-check."""
    told = dict(line.removeprefix("zk_").split("\t") for line in server.word("mntr").splitlines())
    return {name.removeprefix("cross_check_"): int(told[name]) for name in told if name.startswith("cross_check_")}


def documented(list_file):
    lines = Path(list_file).read_text().splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]
