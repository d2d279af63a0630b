"""Backups in a bucket of S3: a round trip, and what is told when the store refuses, breaks off, is slow, or gives other bytes than it got."""

import os
import socket
import socketserver
import subprocess
import threading
import time
import urllib.request

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, Id, Permissions

from support.server import Server, environment, free_port

IDENTITY = "digest:owner:secret"
BUCKET = "backups"
# More than goes into one request to the store.
LARGE = 20


class Proxy(socketserver.ThreadingTCPServer):
    """Stands between the command and the store, and harms what goes through as `harm` says: a function of direction and bytes, which returns
    the bytes that go on, or `None` to break off."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port, target):
        self.target = target
        self.harm = lambda direction, data: data
        self.connections = 0
        super().__init__(("127.0.0.1", port), ProxyConnection)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class ProxyConnection(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.connections += 1
        with socket.create_connection(("127.0.0.1", self.server.target)) as store:
            there = threading.Thread(target=self.carry, args=("request", self.request, store), daemon=True)
            there.start()
            self.carry("answer", store, self.request)

    def carry(self, direction, source, sink):
        try:
            while data := source.recv(65536):
                data = self.server.harm(direction, data)
                if data is None:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for side in (source, sink):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The port of a store with an empty bucket."""
    port = free_port()
    log = (tmp_path_factory.mktemp("store") / "log").open("wb")
    with subprocess.Popen([environment("MOTO_BIN"), "-p", str(port)], stdout=log, stderr=log) as process:
        deadline = time.monotonic() + 60
        while True:
            try:
                ask = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
                urllib.request.urlopen(ask, timeout=10).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "the store does not answer"
                time.sleep(0.05)
        yield port
        process.kill()


@pytest.fixture
def proxy(store):
    with Proxy(free_port(), store) as proxy:
        yield proxy
        proxy.shutdown()


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    """A member with some data, and the address of its HTTP interface."""
    port = free_port()
    config = {"admin.enableServer": "true", "admin.serverPort": port, "admin.rateLimiterIntervalInMS": 1}
    with Server(tmp_path_factory.mktemp("member"), kind="paddock", config=config) as server:
        client = KazooClient(server.hosts, auth_data=[("digest", "owner:secret")])
        client.start()
        client.set_acls("/", [ACL(Permissions.ALL, Id("world", "anyone")), ACL(Permissions.ALL, Id("auth", ""))])
        for number in range(LARGE):
            client.create(f"/large-{number}", os.urandom(1 << 20))
        client.create("/counted", b"")
        client.create("/counted/n-", b"", sequence=True)
        yield server, f"127.0.0.1:{port}", client
        client.stop()


@pytest.fixture
def paddock(tmp_path, member):
    """Runs a command against the store at a port."""
    identity = tmp_path / "identity"
    identity.write_text(IDENTITY)

    def run(port, *arguments):
        aws = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        }
        return subprocess.run(
            [environment("PADDOCK_BIN"), *map(str, arguments)],
            env=os.environ | aws | {"TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def backup(port, prefix, *more):
        place = f"s3://{BUCKET}/{prefix}"
        return run(port, "backup", member[1], "--auth", f"@{identity}", "--to", place, *more)

    def restore(port, prefix, name, *more):
        return run(port, "restore", "--from", f"s3://{BUCKET}/{prefix}", "--data-dir", tmp_path / name, *more)

    run.backup, run.restore = backup, restore
    return run


def succeed(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(done):
    """The line with which a command refuses."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout, done.stdout + done.stderr
    return done.stderr


def test_a_round_trip(store, member, paddock, tmp_path):
    server, _, client = member
    succeed(paddock.backup(store, "round/trip", "--with-log"))
    client.create("/counted/n-", b"later", sequence=True)
    succeed(paddock.backup(store, "round/trip", "--incremental"))
    listed = succeed(paddock(store, "restore", "--from", f"s3://{BUCKET}/round/trip", "--list"))
    assert len(listed.splitlines()) == 1 and " zxid 0x" in listed
    succeed(paddock.restore(store, "round/trip", "restored"))
    same = paddock(store, "diff", "--exclude", "/zookeeper/config", server.hosts, tmp_path / "restored")
    assert " 0 different, 0 only in A, 0 only in B" in succeed(same)
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".unfinished")] == []


def test_the_oldest_go(store, paddock):
    for _ in range(3):
        succeed(paddock.backup(store, "kept", "--keep", "2"))
    listed = succeed(paddock(store, "restore", "--from", f"s3://{BUCKET}/kept", "--list"))
    assert len(listed.splitlines()) == 2


def test_a_store_that_is_not_there(paddock, store):
    told = refused(paddock(free_port(), "restore", "--from", f"s3://{BUCKET}/x", "--data-dir", "never"))
    assert f"s3://{BUCKET}/x" in told
    told = refused(paddock(store, "restore", "--from", "s3://no-such-bucket/x", "--data-dir", "never"))
    assert "s3://no-such-bucket/x" in told and "NoSuchBucket" in told and "<" not in told
    told = refused(paddock.restore(store, "nothing/here", "never"))
    assert "there is no backup in" in told


def test_a_store_that_refuses(proxy, paddock):
    body = b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
    answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    sent = []

    def harm(direction, data):
        if direction == "request":
            return data
        # Once a connection: an answer may come in several pieces.
        if threading.get_ident() in sent:
            return b""
        sent.append(threading.get_ident())
        return answer + body

    proxy.harm = harm
    told = refused(paddock.backup(proxy.server_address[1], "refused"))
    assert f"s3://{BUCKET}/refused/" in told and "403" in told and "AccessDenied: Access Denied" in told


def test_a_store_that_breaks_off_once(store, proxy, paddock, member, tmp_path):
    succeed(paddock.backup(store, "broken"))
    carried, broken = [0], []

    def harm(direction, data):
        if direction == "answer":
            carried[0] += len(data)
            if carried[0] > 5 << 20 and not broken:
                broken.append(carried[0])
                return None
        return data

    proxy.harm = harm
    succeed(paddock.restore(proxy.server_address[1], "broken", "restored"))
    assert broken and proxy.connections > 1
    same = paddock(store, "diff", "--exclude", "/zookeeper/config", member[0].hosts, tmp_path / "restored")
    assert succeed(same)


def test_a_store_that_always_breaks_off(store, proxy, paddock, tmp_path):
    succeed(paddock.backup(store, "always"))
    carried = [0]

    def harm(direction, data):
        if direction == "answer":
            carried[0] += len(data)
            if carried[0] > 3 << 20:
                return None
        return data

    proxy.harm = harm
    told = refused(paddock.restore(proxy.server_address[1], "always", "restored"))
    assert f"s3://{BUCKET}/always/" in told
    assert not (tmp_path / "restored").exists()


def test_a_slow_store(store, proxy, paddock):
    succeed(paddock.backup(store, "slow"))

    def harm(direction, data):
        time.sleep(0.005)
        return data

    proxy.harm = harm
    succeed(paddock.restore(proxy.server_address[1], "slow", "restored"))


def test_a_store_that_gives_other_bytes(store, proxy, paddock, tmp_path):
    succeed(paddock.backup(store, "other"))
    carried = [0]

    def harm(direction, data):
        if direction == "answer":
            before, carried[0] = carried[0], carried[0] + len(data)
            if before < 4 << 20 <= carried[0]:
                return data[:-1] + bytes([data[-1] ^ 1])
        return data

    proxy.harm = harm
    told = refused(paddock.restore(proxy.server_address[1], "other", "restored"))
    assert "its checksum is not that of the manifest" in told
    assert not (tmp_path / "restored").exists()


def test_an_upload_that_breaks_off_leaves_no_backup(store, proxy, paddock):
    carried = [0]

    def harm(direction, data):
        if direction == "request":
            carried[0] += len(data)
            if carried[0] > 17 << 20:
                return None
        return data

    proxy.harm = harm
    told = refused(paddock.backup(proxy.server_address[1], "half"))
    assert f"s3://{BUCKET}/half/" in told
    told = refused(paddock.restore(store, "half", "never"))
    assert "there is no backup in" in told


def test_a_member_makes_backups_by_itself(store, proxy, paddock, monkeypatch, tmp_path):
    def listed():
        done = paddock(store, "restore", "--from", f"s3://{BUCKET}/schedule", "--list")
        return done.stdout if done.returncode == 0 else ""

    def wait_until(is_so):
        deadline = time.monotonic() + 120
        while not is_so():
            assert time.monotonic() < deadline, listed()
            time.sleep(0.2)

    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://127.0.0.1:{proxy.server_address[1]}",
        "TMPDIR": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    config = {"paddock.backup.to": f"s3://{BUCKET}/schedule", "paddock.backup.log_interval_ms": 1000}
    with Server(tmp_path / "member", kind="paddock", config=config) as server:
        client = KazooClient(server.hosts)
        client.start()
        wait_until(lambda: " zxid 0x" in listed())

        def zxid_of(path):
            client.create(path, b"")
            return client.exists(path).czxid

        def reached():
            return int(listed().rsplit(" to 0x", 1)[1].split()[0], 16)

        first = zxid_of("/first")
        wait_until(lambda: reached() >= first)
        # The store is away for a while, and clients do not notice.
        proxy.harm = lambda direction, data: None
        second = zxid_of("/second")
        seen = proxy.connections
        wait_until(lambda: proxy.connections > seen)
        assert reached() < second
        proxy.harm = lambda direction, data: data
        wait_until(lambda: reached() >= second)
        assert len(listed().splitlines()) == 1
        client.stop()
    succeed(paddock.restore(store, "schedule", "scheduled"))
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".unfinished")] == []
