"""TLS to etcd, and etcd's users: a front end that is let in serves, one that is not says why, and a token may expire."""

import subprocess
import threading
import time
from contextlib import nullcontext

import pytest

from support.certificates import Authority
from support.etcd import Etcd, Tls, front_ends
from support.server import Server, environment
from support.waiting import eventually


@pytest.fixture
def tls(tmp_path):
    return Tls(Authority(tmp_path, "ours"))


def arguments(tls):
    return ["--etcd-ca", tls.authority.file, "--etcd-cert", tls.certificate, "--etcd-key", tls.key]


def check_refused(workdir, etcd, arguments, reason):
    """Starts a front end that etcd does not let in: its log says why, and it serves nobody."""
    front = Server(workdir, etcd=etcd.endpoint, arguments=arguments)
    front.start()
    try:
        eventually(lambda: reason in front.log_tail())
        told = [line for line in front.log_tail().splitlines() if "etcd does not answer" in line]
        assert len(told) == 1, told
        assert front.try_word("srvr") == ""
    finally:
        front.kill()


def test_a_front_end_with_tls_serves(tmp_path, tls, connect):
    etcd = Etcd(tmp_path / "cluster", tls=tls)
    with front_ends(tmp_path, 2, etcd=etcd, arguments=arguments(tls)) as (_, first, second):
        writer, reader = connect(first), connect(second)
        writer.create("/secret", b"x" * 200_000)
        reader.sync("/secret")
        assert reader.get("/secret")[0] == b"x" * 200_000


def test_key_and_certificate_may_be_one_file_and_are_read_again(tmp_path, tls, connect):
    etcd = Etcd(tmp_path / "cluster", tls=tls)
    options = ["--etcd-ca", tls.authority.file, "--etcd-key", tls.both]
    with front_ends(tmp_path, 1, etcd=etcd, arguments=options) as (_, front):
        client = connect(front, timeout=20)
        client.create("/a")
        # etcd comes back with another authority, and the front end gets its files meanwhile.
        etcd.kill()
        (tmp_path / "new").mkdir()
        renewed = Tls(Authority(tmp_path / "new", "renewed"))
        tls.authority.file.write_bytes(renewed.authority.file.read_bytes())
        for name in ("both", "key", "certificate", "server_key", "server_certificate"):
            getattr(tls, name).write_bytes(getattr(renewed, name).read_bytes())
        etcd.start()
        client.retry(client.ensure_path, "/b")


def test_a_wrong_authority_is_named(tmp_path, tls):
    with Etcd(tmp_path / "cluster", tls=tls) as etcd:
        stranger = Authority(tmp_path, "stranger")
        options = ["--etcd-ca", stranger.file, "--etcd-cert", tls.certificate, "--etcd-key", tls.key]
        check_refused(tmp_path / "front", etcd, options, "put the certificate of who signed it into the file of --etcd-ca")


def test_a_missing_certificate_is_named(tmp_path, tls):
    with Etcd(tmp_path / "cluster", tls=tls) as etcd:
        check_refused(tmp_path / "front", etcd, ["--etcd-ca", tls.authority.file], "by --etcd-cert and --etcd-key")


def test_a_certificate_for_another_host_is_named(tmp_path):
    tls = Tls(Authority(tmp_path, "ours"), host="10.1.2.3")
    with Etcd(tmp_path / "cluster", tls=tls) as etcd:
        check_refused(tmp_path / "front", etcd, arguments(tls), "have it issued for the host of the endpoint")


def test_wrong_settings_are_told_before_anything_begins(tmp_path, tls):
    def refusal(*options):
        command = [environment("PADDOCK_BIN"), "server", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0"]
        command += ["--engine", "etcd", *options]
        ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=20)
        return ended.returncode, ended.stderr

    code, told = refusal("--etcd-endpoints", "https://127.0.0.1:1")
    assert code == 2 and "--etcd-ca" in told
    code, told = refusal("--etcd-endpoints", "https://127.0.0.1:1", "--etcd-ca", tmp_path / "none.pem")
    assert code != 0 and "TLS to etcd" in told and "none.pem" in told


# A token is good for so long. Tests wait for several of them.
TOKEN_S = 2


@pytest.fixture
def short_tokens(tmp_path):
    """Arguments of an etcd whose tokens expire by themselves, whoever uses them."""
    private, public = tmp_path / "token-key.pem", tmp_path / "token-public.pem"
    openssl = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)  # noqa: E731
    openssl("genrsa", "-traditional", "-out", private, "2048")
    openssl("rsa", "-in", private, "-pubout", "-out", public)
    options = f"jwt,pub-key={public},priv-key={private},sign-method=RS256,ttl={TOKEN_S}s"
    return ["--auth-token", options]


def login(tmp_path, password="hush"):
    file = tmp_path / "password"
    file.write_text(password + "\n")
    return ["--etcd-user", "front", "--etcd-password-file", file]


def test_tokens_expire_and_clients_notice_nothing(tmp_path, short_tokens, connect):
    with Etcd(tmp_path / "cluster", arguments=short_tokens) as etcd:
        etcd.enable_users()
        with front_ends(tmp_path, 2, etcd=nullcontext(etcd), arguments=login(tmp_path)) as (_, first, second):
            writer, reader = connect(first), connect(second)
            states = []
            writer.add_listener(states.append)
            reader.add_listener(states.append)
            writer.create("/token")
            reader.sync("/token")
            deadline = time.monotonic() + 4 * TOKEN_S
            count = 0
            while time.monotonic() < deadline:
                fired = threading.Event()
                reader.get("/token", watch=lambda _: fired.set())
                writer.set("/token", b"%d" % count)
                count += 1
                assert fired.wait(5), "the watch stream has ended"
            assert writer.get("/token")[1].version == count
            assert states == [], "a client lost its connection"
            told = dict(line.split("\t") for line in first.word("mntr").splitlines())
            assert int(told["zk_etcd_logins"]) >= 3, "no token has expired"
            assert told["zk_etcd_connections"] == "1", "a token was renewed by a new connection"


def test_a_wrong_password_is_named(tmp_path, short_tokens):
    with Etcd(tmp_path / "cluster", arguments=short_tokens) as etcd:
        etcd.enable_users()
        check_refused(tmp_path / "front", etcd, login(tmp_path, "wrong"), "invalid user ID or password")
