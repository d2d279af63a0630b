"""Exporters that operators have read of Paddock what they read of Apache ZooKeeper: the same names, of the same kinds.

EXPORTERS_BIN is the program of `tests/exporters`: Telegraf's plugin for ZooKeeper, and the parsers of go-zookeeper. SCRIPTS_ROOT names the
directory with Debian's `netcat-traditional`, by which the health check of PyPI asks.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from support.server import free_port
from support.waiting import eventually

# What stands in front of a summary's name.
PARTS = ("avg_", "min_", "max_", "cnt_", "sum_", "p50_", "p95_", "p99_", "p999_")
METRICS = Path(__file__).parents[2] / "docs/monitoring/zookeeper-metrics.md"


def exporters(server):
    """What programs in Go understand of a server's words."""
    told = subprocess.run([os.environ["EXPORTERS_BIN"], server.hosts], capture_output=True, text=True, timeout=30, check=False)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def missing(name):
    """True if the table of metrics says that there is no such thing here."""
    table = METRICS.read_text().split("## Those that are not")[1]
    rows = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    parts = [name, name.split("_", 1)[-1]] if name.startswith(PARTS) else [name]
    keyed = [row for row in rows if row.endswith("_per_namespace") or row.startswith("learner_handler_")]
    return any(part in rows or part.endswith(tuple(keyed)) for part in parts)


# Names that Paddock tells beside ZooKeeper's. A leader has told of its followers up to ZooKeeper 3.5.
OWN = (
    *("client_buffer_", "memory_limit_exceeded", "quorum_size", "feature_level", "followers", "prepared_list_bytes"),
    *("groups", "group_items_pending", "clocks_ahead"),
)


def test_telegraf(pair):
    role, (zookeeper, paddock) = pair
    zookeepers, paddocks = exporters(zookeeper), exporters(paddock)
    expected, told = zookeepers["telegraf"], paddocks["telegraf"]
    assert told["tags"] == expected["tags"] | {"port": str(paddock.port)}
    assert told["tags"]["state"] == role
    # Integers, fractions and text: what reads them has a column for one kind only.
    fields = paddocks["kinds"]
    wanted = {name: kind for name, kind in zookeepers["kinds"].items() if not missing(name)}
    assert len(wanted) > 150
    assert {name: fields.get(name) for name in wanted} == wanted
    assert [name for name in fields if name not in wanted and not name.startswith(OWN)] == []
    same = ["znode_count", "watch_count", "ephemerals_count", "approximate_data_size", "synced_followers", "learners"]
    assert {name: told["fields"].get(name) for name in same} == {name: expected["fields"].get(name) for name in same}


def test_go_zookeeper(pair):
    role, (zookeeper, paddock) = pair
    expected, told = exporters(zookeeper), exporters(paddock)
    assert (told["is_ok"], expected["is_ok"]) == (True, True)
    # It does not read the form of the date that ZooKeeper has since 3.7, so it reads nothing of such an answer. Paddock has the one before.
    assert (told["is_read"], expected["is_read"]) == (True, False)
    srvr = told["srvr"]
    assert srvr["Version"].startswith("3.9.5-paddock-")
    assert srvr["BuildTime"] > "2026"
    modes = {"leader": 1, "follower": 2, "standalone": 3}
    assert (srvr["Mode"], srvr["NodeCount"], srvr["Outstanding"]) == (modes[role], told["telegraf"]["fields"]["znode_count"], 0)


@pytest.fixture
def nc(tmp_path):
    """A directory in which Debian's netcat has the name by which it is called."""
    places = [Path(os.environ["SCRIPTS_ROOT"]) / place / "nc.traditional" for place in ("bin", "usr/bin")]
    (tmp_path / "nc").symlink_to(next(place for place in places if place.exists()))
    return tmp_path


def health(server, nc, modes):
    """Status and answer of the health check, which asks by netcat for `ruok` and `stat`."""
    port = free_port()
    arguments = ["--port", port, "--zookeeper-host", server.host, "--zookeeper-port", server.port, "--healthy-modes", modes]
    process = subprocess.Popen(
        [sys.executable, "-c", "from zookeeper_healthcheck.main import main; main()", *map(str, arguments)],
        env=os.environ | {"PATH": f"{nc}:{os.environ['PATH']}"},
        stderr=subprocess.DEVNULL,
    )

    def ask():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)
        except OSError:
            return None

    try:
        eventually(lambda: ask() is not None, True)
        return ask()
    finally:
        process.terminate()
        process.wait()


def test_zookeeper_healthcheck(pair, nc):
    role, (zookeeper, paddock) = pair
    others = {"standalone", "leader", "follower"} - {role}
    for modes, status in [(role, 200), (",".join(sorted(others)), 503)]:
        told = health(paddock, nc, modes)
        assert told == health(zookeeper, nc, modes)
        assert told[0] == status
