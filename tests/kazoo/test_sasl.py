"""SASL with DIGEST-MD5: users of the JAAS file that ZooKeeper's servers are started with."""

import contextlib

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl

from support.server import Server
from support.waiting import eventually

JAAS = """
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_bob="bob's secret"
    user_ann="ann's secret"
    user_root="root's secret";
};
"""
PROVIDER = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "superUser": "root"}


@contextlib.contextmanager
def sasl_server(workdir, config=None):
    jaas = workdir / "jaas.conf"
    jaas.write_text(JAAS)
    flags = [f"-Djava.security.auth.login.config={jaas}"]
    with Server(workdir, config=PROVIDER | (config or {}), jvm_flags=flags) as server:
        yield server


@pytest.fixture
def server(tmp_path):
    with sasl_server(tmp_path) as running:
        yield running


def options(user, password=None):
    return {"mechanism": "DIGEST-MD5", "username": user, "password": password or f"{user}'s secret"}


def test_an_acl_names_users(server, connect):
    bob = connect(server, sasl_options=options("bob"))
    bob.create("/bobs", b"1", acl=[make_acl("sasl", "bob", all=True)])
    assert bob.get("/bobs")[0] == b"1"
    for other in [connect(server), connect(server, sasl_options=options("ann"))]:
        with pytest.raises(NoAuthError):
            other.get("/bobs")
        with pytest.raises(NoAuthError):
            other.set("/bobs", b"2")


def test_who_creates_for_itself_creates_for_its_user(server, connect):
    bob = connect(server, sasl_options=options("bob"))
    bob.create("/own", acl=[make_acl("auth", "", all=True)])
    acl = bob.get_acls("/own")[0]
    assert [(entry.id.scheme, entry.id.id) for entry in acl] == [("sasl", "bob")]


def test_the_super_user_may_do_everything(server, connect):
    bob = connect(server, sasl_options=options("bob"))
    bob.create("/bobs", b"1", acl=[make_acl("sasl", "bob", all=True)])
    root = connect(server, sasl_options=options("root"))
    assert root.get("/bobs")[0] == b"1"
    root.delete("/bobs")


def test_a_watch_tells_only_whom_the_znode_is_for(server, connect):
    bob = connect(server, sasl_options=options("bob"))
    events = []
    bob.exists("/bobs", watch=events.append)
    connect(server).create("/bobs", acl=[make_acl("sasl", "bob", all=True)])
    # The event comes before the next reply, but kazoo calls whoever watches from another thread.
    assert bob.get("/bobs")[0] == b""
    eventually(lambda: [event.path for event in events], ["/bobs"])


@pytest.mark.parametrize("user, password", [("bob", "wrong"), ("nobody", "bob's secret")])
def test_who_does_not_know_the_password_is_refused(server, connect, user, password):
    client = KazooClient(server.hosts, sasl_options=options(user, password))
    try:
        with pytest.raises((AuthFailedError, KazooTimeoutError)):
            client.start(timeout=3)
            client.exists("/")
    finally:
        client.stop()
        client.close()
    assert connect(server, sasl_options=options("bob")).exists("/") is not None


def test_identities_come_back_with_the_connection(server, connect):
    bob = connect(server, sasl_options=options("bob"))
    bob.create("/bobs", b"1", acl=[make_acl("sasl", "bob", all=True)])
    server.kill()
    server.restart()
    assert bob.retry(bob.get, "/bobs")[0] == b"1"


@pytest.mark.parametrize(
    "config",
    [
        {"sessionRequireClientSASLAuth": "true"},
        {"enforce.auth.enabled": "true", "enforce.auth.schemes": "sasl"},
    ],
)
def test_clients_without_sasl_are_turned_away_where_it_is_required(tmp_path, connect, config):
    with sasl_server(tmp_path, config) as server:
        connect(server, sasl_options=options("bob")).create("/open")
        plain = KazooClient(server.hosts, timeout=2)
        try:
            with pytest.raises(Exception):  # noqa: B017 - kazoo has no name for this error
                plain.start(timeout=3)
                plain.get("/open")
        finally:
            plain.stop()
            plain.close()
