"""Programs that operators have: they are told by Paddock what Apache ZooKeeper tells them, alone, by a leader and by a follower.

SCRIPTS_ROOT names the directory where Debian's packages `zktop`, `zookeeper` and `collectd-core` are unpacked.
"""

import contextlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

from support.waiting import eventually

ROOT = Path(os.environ["SCRIPTS_ROOT"])


def zktop(server):
    """What zktop understands of `stat`."""
    sys.argv = ["zktop"]
    place = str(ROOT / "usr/lib/python3/dist-packages")
    if place not in sys.path:
        sys.path.insert(0, place)
    zktop_of = importlib.import_module("zktop").ZKServer
    told = zktop_of(server.hosts, 0)
    if told.unavailable and server.kind == "zookeeper":
        # What zktop shows then for a moment. The next look is what counts; of Paddock it is the first one.
        told = zktop_of(server.hosts, 0)
    assert not told.unavailable, f"{server.kind} answered {server.word('stat')!r}"
    return told


def test_zktop(pair):
    role, (zookeeper, paddock) = pair
    expected, told = zktop(zookeeper), zktop(paddock)
    assert vars(told).keys() == vars(expected).keys()
    for same in ["version", "mode", "node_count", "outstanding", "connections"]:
        assert getattr(told, same) == getattr(expected, same), same
    assert told.mode == role
    assert len(told.sessions) == len(expected.sessions)
    for left, right in zip(told.sessions, expected.sessions):
        assert vars(left).keys() == vars(right).keys()
    # It shows them as numbers.
    for number in [told.received, told.sent, told.min_latency, told.avg_latency, told.max_latency]:
        float(number)
    int(told.zxid, 16)


def status(server, workdir):
    """Exit code and text of `zkServer.sh status`, for a server with this zoo.cfg."""
    (workdir / "zkServer.sh").write_text((ROOT / "usr/share/zookeeper/bin/zkServer.sh").read_text())
    # Debian's script reads /etc/zookeeper/conf/environment, which is the administrator's.
    (workdir / "zkEnv.sh").write_text(
        f'ZOOCFGDIR={server.workdir}\nZOOCFG={server.config_file}\nJAVA=java\nCLASSPATH="{os.environ["ZOOKEEPER_CLASSPATH"]}"\n'
        f"ZOO_LOG_DIR={workdir}\n"
    )
    ended = subprocess.run(
        ["bash", workdir / "zkServer.sh", "status"], capture_output=True, text=True, timeout=30, check=False
    )
    return ended.returncode, ended.stdout.replace(str(server.port), "PORT")


def test_zk_server_status(pair, tmp_path):
    role, (zookeeper, paddock) = pair
    (tmp_path / "zookeeper").mkdir()
    (tmp_path / "paddock").mkdir()
    code, text = told = status(paddock, tmp_path / "paddock")
    assert told == status(zookeeper, tmp_path / "zookeeper")
    assert code == 0, text
    assert text.endswith(f"Mode: {role}\n")


@contextlib.contextmanager
def collectd(server, workdir):
    """Runs collectd's plugin for ZooKeeper; the directory where it writes what it has read."""
    (workdir / "base").mkdir(parents=True)
    config = workdir / "collectd.conf"
    config.write_text(
        f"""
        BaseDir "{workdir}/base"
        PIDFile "{workdir}/pid"
        PluginDir "{ROOT}/usr/lib/collectd"
        TypesDB "{ROOT}/usr/share/collectd/types.db"
        Hostname "member"
        FQDNLookup false
        Interval 0.5
        LoadPlugin csv
        LoadPlugin zookeeper
        <Plugin csv>
            DataDir "{workdir}/csv"
        </Plugin>
        <Plugin zookeeper>
            Host "{server.host}"
            Port "{server.port}"
        </Plugin>
        """
    )
    process = subprocess.Popen(
        [ROOT / "usr/sbin/collectd", "-f", "-C", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield workdir / "csv/member/zookeeper"
    finally:
        process.terminate()
        process.wait()


def read(directory):
    """The newest value of each kind."""
    values = {}
    for file in directory.glob("*"):
        lines = file.read_text().splitlines()
        # Its name ends with the day. A line may be half written.
        if len(lines) > 1 and "," in lines[-1]:
            values[file.name[: -len("-2026-01-01")]] = lines[-1].split(",")[1]
    return values


# Values that differ between two servers that do the same; sizes of proposals are those of the log's entries.
OWN = ("latency", "packets", "file_handles-open", "bytes-last_proposal", "bytes-min_proposal", "bytes-max_proposal")


def test_collectd(pair, tmp_path):
    role, (zookeeper, paddock) = pair
    with collectd(zookeeper, tmp_path / "zookeeper") as expected, collectd(paddock, tmp_path / "paddock") as told:
        count = 19 if role == "leader" else 14
        eventually(lambda: (len(read(expected)), sorted(read(expected).keys() - read(told).keys())), (count, []))
        seen, wanted = read(told), read(expected)
    # A leader here tells `zk_followers`, as older ZooKeepers do; with it collectd also sees a quorum.
    own = OWN + ("count-quorum",) if role == "leader" else OWN
    assert seen.keys() - wanted.keys() == ({"count-followers"} if role == "leader" else set())
    same = [name for name in wanted if not name.startswith(own)]
    assert {name: seen[name] for name in same} == {name: wanted[name] for name in same}
