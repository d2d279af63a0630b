"""What a real zetcd keeps in etcd is served by Paddock: on that etcd, and by a member with a log of its own."""

import subprocess

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_digest_acl

from support.certificates import Authority
from support.etcd import Etcd, Tls
from support.server import Server, environment
from support.waiting import eventually
from support.zetcd import Zetcd

# Timeout of the session that zetcd knows last.
TIMEOUT_S = 5
SECRET = "/secret"
# Znodes of each server's own.
OWN = (("/", "zookeeper"),)


@pytest.fixture
def etcd(tmp_path):
    with Etcd(tmp_path / "cluster") as etcd:
        yield etcd


def import_zetcd(etcd, *arguments, timeout=60):
    command = [environment("PADDOCK_BIN"), "import", "zetcd", "--from", etcd.endpoint, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def write(client):
    client.create("/a", b"one")
    client.set("/a", b"two")
    client.create("/a/b", b"")
    for _ in range(3):
        client.create("/a/s-", b"x", sequence=True)
    client.delete("/a/s-0000000001")
    transaction = client.transaction()
    transaction.create("/multi", b"m")
    transaction.set_data("/a/b", b"set")
    assert not any(isinstance(result, Exception) for result in transaction.commit())
    client.create("/wide")
    for number in range(200):
        client.create(f"/wide/{number}", b"%d" % number)
    client.create(SECRET, b"hidden", acl=[make_digest_acl("ann", "pw", all=True)])
    client.create("/mine", b"ephemeral", ephemeral=True)


def seen(client, path="/", without=OWN):
    """All znodes with data and Stat as any server tells them. zetcd's times are in microseconds."""
    data, stat = client.get(path)
    facts = stat._asdict()
    for time in ("ctime", "mtime"):
        facts[time] = facts[time] // 1000 if facts[time] > 10**14 else facts[time]
    found = {path: (data or b"", facts)}
    for child in client.get_children(path):
        if (path, child) not in without:
            found |= seen(client, f"{path.rstrip('/')}/{child}", without)
    return found


@pytest.fixture
def left(tmp_path, etcd):
    """What a zetcd served before it was killed, with one session that had not ended."""
    with Zetcd(tmp_path, etcd) as zetcd:
        client = KazooClient(zetcd.hosts, timeout=TIMEOUT_S)
        client.start(timeout=30)
        write(client)
        served = seen(client)
    assert len(served) > 200 and served["/mine"][1]["ephemeralOwner"] != 0
    yield served
    client.stop()
    client.close()


def check(server, connect, left):
    client = connect(server)
    client.add_auth("digest", "ann:pw")
    # The session may end while this looks, which changes the root, too.
    now, before = seen(client, without=(*OWN, ("/", "mine"))), left.copy()
    del now["/"], before["/"], before["/mine"]
    assert now == before
    with pytest.raises(NoAuthError):
        connect(server).get(SECRET)
    assert client.create("/a/s-", sequence=True) == "/a/s-0000000004", "counted on, with /a/b"
    eventually(lambda: client.exists("/mine") is None, timeout_s=60)
    assert client.get_children("/wide") != [] and client.set("/a", b"three").version == 2


def test_front_ends_stay_on_the_etcd_of_a_zetcd(tmp_path, etcd, left, connect):
    dry = import_zetcd(etcd, "--dry-run")
    assert dry.returncode == 0 and "written   nothing" in dry.stdout, dry
    done = import_zetcd(etcd, "--to-prefix", "/paddock")
    assert done.returncode == 0 and "1 ephemeral; 1 sessions" in done.stdout, done
    with Server(tmp_path / "front", etcd=etcd.endpoint) as front:
        check(front, connect, left)
    again = import_zetcd(etcd, "--to-prefix", "/paddock")
    assert again.returncode == 1 and "nothing is written over" in again.stderr, again
    own = import_zetcd(etcd, "--to-prefix", "/zk/x")
    assert own.returncode == 1 and "zetcd's own keys" in own.stderr, own


def test_a_member_begins_with_what_a_zetcd_had(tmp_path, etcd, left, connect):
    server = Server(tmp_path / "member")
    server.data_dir.rmdir()
    done = import_zetcd(etcd, "--to", server.data_dir)
    assert done.returncode == 0, done
    with server:
        check(server, connect, left)


def test_an_etcd_without_a_zetcd_is_told(etcd):
    done = import_zetcd(etcd, "--dry-run")
    assert done.returncode == 1 and "no key below /zk/" in done.stderr, done


def test_an_etcd_with_tls_and_users_lets_the_import_in(tmp_path, etcd, left, connect):
    # zetcd wrote without either; the same etcd asks for both from now on.
    etcd.kill()
    tls = Tls(Authority(tmp_path, "ours"))
    password, wrong = tmp_path / "password", tmp_path / "wrong"
    password.write_text("hush\n")
    wrong.write_text("loud\n")
    authority = ["--etcd-ca", tls.authority.file]
    certificate = [*authority, "--etcd-cert", tls.certificate, "--etcd-key", tls.key]
    login = [*certificate, "--etcd-user", "front", "--etcd-password-file", password]
    with Etcd(tmp_path / "cluster", tls=tls) as secured:
        secured.enable_users(read_only="/zk")

        def refusal(*arguments):
            done = import_zetcd(secured, *arguments)
            assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done
            return done.stderr

        assert "--etcd-cert and --etcd-key" in refusal("--dry-run", *authority)
        assert "invalid user ID or password" in refusal("--dry-run", *login[:-1], wrong)
        assert "permission denied" in refusal("--to-prefix", "/elsewhere", *login)
        # The certificate's name is that of the user, which is enough for etcd.
        dry = import_zetcd(secured, "--dry-run", *certificate)
        assert dry.returncode == 0 and "written   nothing" in dry.stdout, dry
        done = import_zetcd(secured, "--to-prefix", "/paddock", *login)
        assert done.returncode == 0 and "below /paddock" in done.stdout, done
        with Server(tmp_path / "front", etcd=secured.endpoint, arguments=login) as front:
            check(front, connect, left)


# A tree that takes many pages, some of them of values as large as a client may write.
MANY = 20_000
SMALL, LARGE = b"s" * 2_000, b"l" * 900_000
LARGE_COUNT = 80


def value(number):
    # The large ones are neighbours among etcd's keys.
    return LARGE if number < LARGE_COUNT else SMALL + b"%d" % number


@pytest.fixture
def large(tmp_path):
    with Etcd(tmp_path / "cluster", arguments=["--quota-backend-bytes", "2147483648"]) as etcd:
        with Zetcd(tmp_path, etcd) as zetcd:
            client = KazooClient(zetcd.hosts, timeout=30)
            client.start(timeout=30)
            client.create("/many")
            wanted = [(f"/many/{number:05}", value(number)) for number in range(MANY)]
            for start in range(0, MANY, 100):
                created = [client.create_async(path, data) for path, data in wanted[start : start + 100]]
                assert all(one.get(timeout=60) for one in created)
            client.stop()
            client.close()
        yield etcd


def check_many(client):
    assert len(client.get_children("/many")) == MANY
    for start in range(0, MANY, 100):
        read = [(number, client.get_async(f"/many/{number:05}")) for number in range(start, start + 100)]
        assert all(one.get(timeout=60)[0] == value(number) for number, one in read)


@pytest.mark.timeout(600)
def test_a_large_tree_is_read_and_written_in_pages(tmp_path, large, connect):
    done = import_zetcd(large, "--to-prefix", "/paddock", timeout=300)
    assert done.returncode == 0, done
    with Server(tmp_path / "front", etcd=large.endpoint) as front:
        check_many(connect(front, timeout=30))
    server = Server(tmp_path / "member")
    server.data_dir.rmdir()
    done = import_zetcd(large, "--to", server.data_dir, timeout=300)
    assert done.returncode == 0, done
    with server:
        check_many(connect(server, timeout=30))
