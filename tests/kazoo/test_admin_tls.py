"""HTTPS at the port for administrators, with OpenSSL on the other side: forced, beside plaintext, with certificates of requesters."""

import http.client
import json
import os
import ssl

import pytest

from support.certificates import Authority
from support.server import Server, free_port

IS_PADDOCK = os.environ.get("TEST_SERVER", "paddock") == "paddock"


class Stage:
    """A server whose port for administrators has TLS, and those who ask there."""

    def __init__(self, directory, settings):
        self.authority = Authority(directory, "ours")
        self.stranger = Authority(directory, "theirs")
        _, _, store = self.authority.issue("server", "/CN=server", host="127.0.0.1")
        self.port = free_port()
        stores = {"keyStore.location": store, "trustStore.location": self.authority.file}
        config = {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": free_port(),
            "secureClientPortAddress": "127.0.0.1",
            "X509AuthenticationProvider.superUser": "CN=root",
            "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            "admin.enableServer": "true",
            "admin.serverAddress": "127.0.0.1",
            "admin.serverPort": self.port,
        }
        # ZooKeeper takes the keys of its members here, Paddock those of clients' ports first.
        for prefix in ("ssl", "ssl.quorum"):
            config |= {f"{prefix}.{key}": value for key, value in stores.items()}
        self.server = Server(directory, config=config | settings)

    def context(self, authority=None, name=None):
        """Trusts one authority, and shows the certificate of that name."""
        context = ssl.create_default_context(cafile=str((authority or self.authority).file))
        if name:
            key, certificate, _ = self.authority.issue(name, f"/CN={name}")
            context.load_cert_chain(certificate, key)
        return context

    def ask(self, path, context=None):
        """Status and body of an answer, over HTTPS if there is a context."""
        if context:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def start(tmp_path):
    """`start(settings)` starts a server with more lines in its zoo.cfg."""
    stages = []

    def started(settings):
        stage = Stage(tmp_path, settings)
        stages.append(stage)
        stage.server.start()
        stage.server.wait_ready()
        return stage

    yield started
    for stage in stages:
        stage.server.kill()


def test_forced_https_is_served_and_plaintext_is_not(start):
    stage = start({"admin.forceHttps": "true"})
    status, body = stage.ask("/commands/ruok", stage.context())
    assert (status, json.loads(body)["command"]) == (200, "ruok")
    with pytest.raises(ssl.SSLCertVerificationError):
        stage.ask("/commands/ruok", stage.context(stage.stranger))
    if IS_PADDOCK:
        status, body = stage.ask("/commands/ruok")
        assert (status, body) == (400, b"This port speaks HTTPS only: begin the address with https://\n")
    else:
        with pytest.raises((http.client.HTTPException, OSError)):
            stage.ask("/commands/ruok")


def test_one_port_for_both(start):
    stage = start({"admin.portUnification": "true"})
    for context in (stage.context(), None):
        status, body = stage.ask("/commands/ruok", context)
        assert (status, json.loads(body)["command"]) == (200, "ruok")


def test_who_asks_may_have_to_show_a_certificate(start):
    stage = start({"admin.forceHttps": "true", "admin.needClientAuth": "true"})
    assert stage.ask("/commands/ruok", stage.context(name="somebody"))[0] == 200
    with pytest.raises((ssl.SSLError, http.client.HTTPException, OSError)):
        stage.ask("/commands/ruok", stage.context())


@pytest.mark.skipif(not IS_PADDOCK, reason="ZooKeeper takes no certificate for who asks for a snapshot")
def test_a_certificate_is_an_identity(start):
    stage = start({"admin.forceHttps": "true"})
    assert stage.ask("/commands/snapshot", stage.context())[0] == 401
    assert stage.ask("/commands/snapshot", stage.context(name="somebody"))[0] == 403
    assert stage.ask("/commands/snapshot?streaming=false", stage.context(name="root"))[0] == 200
