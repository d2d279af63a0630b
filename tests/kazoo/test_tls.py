"""TLS: on a port of its own and on the one for plaintext, with certificates as identities, good ones and bad ones."""

import os
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import ACL, Id

from support.certificates import Authority
from support.server import Server, free_port
from support.waiting import eventually

IS_PADDOCK = os.environ.get("TEST_SERVER", "paddock") == "paddock"
SUBJECT = "/C=DE/O=Example, Inc./CN=client"
# As Java's `X500Principal.getName()` writes it.
IDENTITY = "CN=client,O=Example\\, Inc.,C=DE"


class Stage:
    """A server with a port for plaintext or TLS and one for TLS only, and what its clients need."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = Authority(directory, "ours")
        _, _, store = self.authority.issue("server", "/CN=server", host="127.0.0.1")
        self.key, self.certificate, _ = self.authority.issue("client", SUBJECT)
        self.secure_port = free_port()
        config = {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": self.secure_port,
            "secureClientPortAddress": "127.0.0.1",
            "client.portUnification": "true",
            "ssl.keyStore.location": store,
            "ssl.trustStore.location": self.authority.file,
            "X509AuthenticationProvider.superUser": "CN=root",
            "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        }
        self.server = Server(directory, config=config)

    @property
    def secure_hosts(self):
        return f"127.0.0.1:{self.secure_port}"

    def client(self, hosts, key=None, certificate=None, **options):
        """A client that speaks TLS and shows the certificate of `client`, or another one."""
        return KazooClient(
            hosts,
            use_ssl=True,
            ca=str(self.authority.file),
            keyfile=str(key or self.key),
            certfile=str(certificate or self.certificate),
            **options,
        )


@pytest.fixture
def stage(tmp_path):
    built = Stage(tmp_path)
    with built.server:
        yield built


@pytest.fixture
def started():
    """`started(client)` starts a client, which is stopped after the test."""
    clients = []

    def start(client):
        clients.append(client)
        client.start(timeout=10)
        return client

    yield start
    for client in clients:
        client.stop()
        client.close()


def test_both_ports_serve_tls_and_the_first_one_plaintext_too(stage, started):
    plaintext = started(KazooClient(stage.server.hosts))
    unified = started(stage.client(stage.server.hosts))
    secure = started(stage.client(stage.secure_hosts))
    value = os.urandom(900_000)
    secure.create("/large", value)
    plaintext.sync("/large")
    assert plaintext.get("/large")[0] == value
    assert unified.get("/large")[0] == value
    seen = threading.Event()
    unified.exists("/large", watch=lambda event: seen.set())
    plaintext.delete("/large")
    assert seen.wait(10)


def test_a_certificate_is_an_identity(stage, started):
    owner = started(stage.client(stage.secure_hosts))
    owner.create("/mine", b"secret", acl=[ACL(31, Id("auth", ""))])
    [acl] = owner.get_acls("/mine")[0]
    assert (acl.id.scheme, acl.id.id) == ("x509", IDENTITY)
    also_owner = started(stage.client(stage.server.hosts))
    also_owner.create("/named", b"", acl=[ACL(31, Id("x509", IDENTITY))])
    assert also_owner.get("/mine")[0] == b"secret"
    with pytest.raises(NoAuthError):
        started(KazooClient(stage.server.hosts)).get("/mine")
    other = stage.authority.issue("other", "/CN=other")
    with pytest.raises(NoAuthError):
        started(stage.client(stage.secure_hosts, *other[:2])).get("/mine")
    root = stage.authority.issue("root", "/CN=root")
    assert started(stage.client(stage.secure_hosts, *root[:2])).get("/mine")[0] == b"secret"


def test_strangers_are_turned_away_and_harm_nobody(stage, started, tmp_path):
    neighbour = started(stage.client(stage.secure_hosts))
    foreign = Authority(tmp_path, "foreign").issue("stranger", "/CN=stranger")
    strangers = [
        (stage.client(stage.secure_hosts, *foreign[:2]), "put the certificate of who signed it into the trust store"),
        (KazooClient(stage.secure_hosts), "plaintext on a port for TLS"),
        (KazooClient(stage.secure_hosts, use_ssl=True, ca=str(stage.authority.file)), "it shows no certificate"),
    ]
    if IS_PADDOCK:
        old = stage.authority.issue("old", "/CN=old", version=1)
        strangers.append((stage.client(stage.secure_hosts, *old[:2]), "it is of version 1"))
    for stranger, reason in strangers:
        with pytest.raises(KazooTimeoutError):
            stranger.start(timeout=2)
        stranger.stop()
        stranger.close()
        log = stage.server.log_file.read_text()
        assert not IS_PADDOCK or any("rejected" in line and reason in line for line in log.splitlines())
        neighbour.exists("/")
    assert neighbour.connected


@pytest.mark.skipif(not IS_PADDOCK, reason="a property of Paddock")
def test_certificates_are_replaced_under_load_without_a_failed_request(stage, started):
    client = started(stage.client(stage.secure_hosts))
    states = []
    client.add_listener(states.append)
    client.create("/load", b"")
    failures, requests, done = [], [], threading.Event()

    def load():
        while not done.is_set():
            try:
                client.set("/load", b"%d" % len(requests))
                requests.append(1)
            except Exception as error:  # noqa: BLE001
                failures.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for round_number in range(5):
            _, _, store = stage.authority.issue(f"server-{round_number}", f"/CN=server {round_number}", host="127.0.0.1")
            store.replace(stage.directory / "server.pem")
            newcomer = started(stage.client(stage.secure_hosts))
            assert newcomer.exists("/load")
            before = len(requests)
            eventually(lambda: len(requests) > before + 20)
            assert f"server {round_number}" in stage.server.log_file.read_text()
    finally:
        done.set()
        thread.join()
    assert (failures, states) == ([], [])
