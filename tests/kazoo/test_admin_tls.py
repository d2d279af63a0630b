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

    def ask(self, path, context=None, method="GET", headers=None, body=None):
        """Status and body of an answer, over HTTPS if there is a context."""
        if context:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body=body, headers=headers or {})
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


@pytest.mark.skipif(not IS_PADDOCK, reason="ZooKeeper takes no certificate for orders")
def test_no_page_elsewhere_gives_orders_by_a_certificate(start):
    """A browser shows its owner's certificate to whatever page asks for something."""
    stage = start({"admin.forceHttps": "true"})
    root = stage.context(name="root")

    def status(method, path, headers, body=None):
        return stage.ask(path, root, method, headers, body)[0]

    create = ("POST", "/api/create")
    body = json.dumps({"path": "/x", "mode": "persistent"})
    json_type = {"Content-Type": "application/json"}
    commands = "/api/v1/commands?command="
    for foreign in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert status(*create, foreign | json_type, body) == 403
        assert status("POST", "/commands/shed_connections", foreign | json_type, '{"percentage":100}') == 403
        assert status("GET", commands + "get+/", foreign) == 403
        assert status("GET", "/commands/snapshot?streaming=false", foreign) == 403
    for plain in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        assert status(*create, plain, body) == 403
        assert status("POST", commands + "create+/x+y", plain) == 403
    for command in ("create+/x+y", "rm+/zookeeper", "csnp"):
        assert status("GET", commands + command, {}) == 405
    assert stage.ask("/api/v1/commands?command=exists+/x", root)[1] == b'{"result":"0\\n"}'

    own = {"Origin": f"https://127.0.0.1:{stage.port}", "Sec-Fetch-Site": "same-origin"}
    assert status(*create, own | json_type, body) == 200
    assert status("POST", commands + "rm+/x", {"Paddock-Request": "1"}) == 200
    assert status("POST", "/api/v1/lead/yield", {"Paddock-Request": "1"}) == 409
