"""The four-letter words: scripts and dashboards read them, so keys, lines and meaning are as in ZooKeeper."""

import re
from operator import itemgetter

import pytest

from support.ensemble import Ensemble
from support.fixtures import MEMBERS
from support.server import Server
from support.waiting import eventually

NUMBER = r"-?\d+(\.\d+)?"
MODE = "standalone" if MEMBERS == 1 else "follower"
SUMMARY = [
    r"Latency min/avg/max: \d+/\d+\.\d+/\d+",
    r"Received: \d+",
    r"Sent: \d+",
    r"Connections: \d+",
    r"Outstanding: \d+",
    r"Zxid: 0x[0-9a-f]+",
    f"Mode: {MODE}",
    r"Node count: \d+",
]
VERSION = r"Zookeeper version: \d+\.\d+\.\d+\S*, built on .+"
CONNECTION = r" /127\.0\.0\.1:\d+\[\d+\]\(queued=\d+,recved=\d+,sent=\d+\S*\)"

GAUGES = """
    avg_latency max_latency min_latency packets_received packets_sent num_alive_connections outstanding_requests uptime
    znode_count watch_count ephemerals_count approximate_data_size global_sessions local_sessions
    open_file_descriptor_count max_file_descriptor_count connection_drop_probability last_client_response_size
    max_client_response_size min_client_response_size outstanding_tls_handshake auth_failed_count cnt_fsynctime
    non_mtls_remote_conn_count non_mtls_local_conn_count
""".split()


def check_lines(text, patterns):
    lines = text.splitlines()
    assert len(lines) == len(patterns), text
    for line, pattern in zip(lines, patterns):
        assert re.fullmatch(pattern, line), f"{line!r} is not like {pattern!r}"


def mntr(server):
    lines = [line.split("\t") for line in server.word("mntr").splitlines()]
    assert all(len(line) == 2 for line in lines), lines
    return dict(lines)


def test_ruok(server):
    assert server.word("ruok") == "imok"


def test_isro(server):
    assert server.word("isro") == "rw"


def test_srvr(server):
    check_lines(server.word("srvr"), [VERSION, *SUMMARY])


def test_srvr_counts_znodes_and_writes(server, client):
    def fact(name):
        return re.search(rf"^{name}: (\S+)$", server.word("srvr"), re.MULTILINE).group(1)

    nodes, zxid = int(fact("Node count")), int(fact("Zxid"), 16)
    stat = client.create("/new", include_data=True)[1]
    assert int(fact("Node count")) == nodes + 1
    assert zxid < int(fact("Zxid"), 16) == stat.czxid


def test_stat_lists_the_clients(server, client):
    text = server.word("stat")
    head, summary = text.split("\n\n")
    version, title, *connections = head.splitlines()
    assert re.fullmatch(VERSION, version)
    assert title == "Clients:"
    # The client, its helper that made the chroot, and the connection that asks.
    assert len(connections) >= 2
    for line in connections:
        assert re.fullmatch(CONNECTION, line), line
    check_lines(summary, SUMMARY)


def test_cons_describes_each_session(server, client):
    client.create("/node")
    session = f"sid={client.client_id[0]:#x}"
    [line] = [line for line in server.word("cons").splitlines() if session in line]
    assert re.fullmatch(
        r" /127\.0\.0\.1:\d+\[\d+\]\(queued=0,recved=\d+,sent=\d+,"
        r"sid=0x[0-9a-f]+,lop=[A-Z0-9]+,est=\d+,to=10000,lcxid=0x[0-9a-f]+,lzxid=0x[0-9a-f]+,lresp=\d+,"
        r"llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)",
        line,
    ), line
    assert "lop=CREA" in line


def test_mntr_has_the_gauges(server):
    values = mntr(server)
    assert re.fullmatch(VERSION.removeprefix("Zookeeper version: "), values["zk_version"])
    assert values["zk_server_state"] == MODE
    for gauge in GAUGES:
        assert re.fullmatch(NUMBER, values.get(f"zk_{gauge}", "")), gauge


def test_mntr_follows_what_happens(server, client, connect):
    before = mntr(server)
    client.create("/node", b"x" * 1000)
    client.create("/mine", ephemeral=True)
    client.get("/node", watch=print)
    connect(server)
    after = mntr(server)

    def grown(name):
        return int(after[f"zk_{name}"]) - int(before[f"zk_{name}"])

    assert grown("znode_count") == 2
    assert grown("ephemerals_count") == 1
    assert grown("watch_count") == 1
    assert grown("num_alive_connections") == 1
    assert grown("global_sessions") == 1
    assert grown("approximate_data_size") >= 1000
    assert grown("packets_received") >= 4
    assert grown("packets_sent") >= 4


@pytest.mark.skipif(MEMBERS == 1, reason="a server alone leads nobody")
def test_mntr_of_an_ensemble(tmp_path):
    with Ensemble(tmp_path, MEMBERS) as ensemble:
        leader, follower = mntr(ensemble.leader()), mntr(ensemble.follower())
        assert (leader["zk_server_state"], leader["zk_peer_state"]) == ("leader", "leading - broadcast")
        assert (follower["zk_server_state"], follower["zk_peer_state"]) == ("follower", "following - broadcast")
        assert leader["zk_quorum_size"] == str(MEMBERS)
        others = itemgetter("zk_learners", "zk_synced_followers")
        eventually(lambda: others(mntr(ensemble.leader())), (str(MEMBERS - 1), str(MEMBERS - 1)))
        leader = mntr(ensemble.leader())
        assert (leader["zk_synced_observers"], leader["zk_synced_non_voting_followers"]) == ("0", "0")
        assert float(leader["zk_leader_uptime"]) >= 0
        assert not {"zk_learners", "zk_leader_uptime", "zk_synced_followers"} & set(follower)


def test_srst_and_crst_reset_statistics(server, client):
    for number in range(50):
        client.create(f"/reset-{number}")
    assert int(mntr(server)["zk_packets_received"]) >= 50
    assert server.word("srst") == "Server stats reset.\n"
    assert int(mntr(server)["zk_packets_received"]) < 50
    session = f"sid={client.client_id[0]:#x}"

    def described():
        [line] = [line for line in server.word("cons").splitlines() if session in line]
        return line

    assert "lop=CREA" in described()
    assert server.word("crst") == "Connection stats reset.\n"
    assert "lop=CREA" not in described()
    assert "lcxid" not in described() or "lop=PING" in described()


def test_conf(server):
    lines = [line.split("=", 1) for line in server.word("conf").splitlines()]
    assert [line[0] for line in lines][:12] == [
        "clientPort",
        "secureClientPort",
        "dataDir",
        "dataDirSize",
        "dataLogDir",
        "dataLogSize",
        "tickTime",
        "maxClientCnxns",
        "minSessionTimeout",
        "maxSessionTimeout",
        "clientPortListenBacklog",
        "serverId",
    ]
    # Behind them a member of an ensemble tells all members, below a line without a value.
    values = dict(line for line in lines if len(line) == 2)
    assert values["clientPort"] == str(server.port)
    assert values["dataDir"].startswith(str(server.data_dir))
    assert (values["tickTime"], values["maxClientCnxns"]) == ("500", "0")
    assert (values["minSessionTimeout"], values["maxSessionTimeout"]) == ("1000", "10000")


def test_envi(server):
    title, *lines = server.word("envi").splitlines()
    assert title == "Environment:"
    values = dict(line.split("=", 1) for line in lines)
    # Without the facts about a Java virtual machine.
    keys = "zookeeper.version host.name os.name os.arch os.version user.name user.home user.dir"
    for key in keys.split():
        assert values.get(key), key
    assert values["os.name"] == "Linux"


def test_dirs(server, client):
    client.create("/node", b"x" * 1000)
    check_lines(server.word("dirs"), [r"datadir_size: \d+", r"logdir_size: [1-9]\d*"])


def test_wchs(server, client, other):
    check_lines(server.word("wchs"), [r"\d+ connections watching \d+ paths", r"Total watches:\d+"])

    def counts():
        return [int(number) for number in re.findall(r"\d+", server.word("wchs"))]

    connections, paths, watches = counts()
    client.create("/a")
    client.get("/a", watch=print)
    client.exists("/b", watch=print)
    other.get("/a", watch=print)
    assert counts() == [connections + 2, paths + 2, watches + 3]


@pytest.mark.parametrize("whitelist", ["ruok, srvr"])
def test_words_outside_the_whitelist_are_refused(tmp_path, whitelist):
    with Server(tmp_path, config={"4lw.commands.whitelist": whitelist}) as server:
        assert server.word("ruok") == "imok"
        assert server.word("mntr").strip() == "mntr is not executed because it is not in the whitelist."
