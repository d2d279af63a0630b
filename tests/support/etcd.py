"""A real etcd for the tests, of one member or more, and front ends on it. `ETCD_BIN` names etcd's program."""

import base64
import contextlib
import json
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

from support.server import Server, ServerError, environment, free_ports

READY_TIMEOUT_S = 30


class Tls:
    """Files by which an etcd has TLS and asks for certificates, and those of a client; all signed by `authority`."""

    def __init__(self, authority, host="127.0.0.1"):
        self.authority = authority
        self.server_key, self.server_certificate, _ = authority.issue("etcd", "/CN=etcd", host=host)
        self.key, self.certificate, self.both = authority.issue("front", "/CN=front")

    @property
    def etcd_arguments(self):
        files = {"cert-file": self.server_certificate, "key-file": self.server_key, "trusted-ca-file": self.authority.file}
        return ["--client-cert-auth", *(f"--{name}={file}" for name, file in files.items())]

    @property
    def context(self):
        context = ssl.create_default_context(cafile=self.authority.file)
        context.check_hostname = False
        context.load_cert_chain(self.certificate, self.key)
        return context


class Etcd:
    """An etcd below `workdir`, which keeps its ports and its data over `kill()` and `start()`."""

    def __init__(self, workdir, tls=None, arguments=()):
        self.workdir = Path(workdir)
        client, peer = free_ports(2)
        self.tls = tls
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{client}"
        self._peer = f"http://127.0.0.1:{peer}"
        self._arguments = [*(tls.etcd_arguments if tls else []), *arguments]
        self._process = None

    def start(self):
        self.workdir.mkdir(parents=True, exist_ok=True)
        with (self.workdir / "etcd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    environment("ETCD_BIN"),
                    "--data-dir",
                    str(self.workdir / "etcd"),
                    "--listen-client-urls",
                    self.endpoint,
                    "--advertise-client-urls",
                    self.endpoint,
                    "--listen-peer-urls",
                    self._peer,
                    "--initial-advertise-peer-urls",
                    self._peer,
                    "--initial-cluster",
                    f"default={self._peer}",
                    *self._arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                with self._open(self.endpoint + "/health", timeout=1) as health:
                    if json.load(health).get("health") == "true":
                        return
            time.sleep(0.02)
        raise ServerError(f"etcd was not ready after {READY_TIMEOUT_S} s")

    def post(self, method, body):
        """A call of etcd's JSON gateway."""
        request = urllib.request.Request(f"{self.endpoint}/v3/{method}", json.dumps(body).encode())
        with self._open(request, timeout=10) as answer:
            return json.load(answer)

    def enable_users(self, prefix="/paddock", read_only=None):
        """A root, and a user `front` with the password `hush` who may read and write below the prefix, and read below another."""
        encode = lambda text: base64.b64encode(text.encode()).decode()  # noqa: E731
        permission = lambda kind, below: {  # noqa: E731
            "name": "fronts",
            "perm": {"permType": kind, "key": encode(below + "/"), "range_end": encode(below + "0")},
        }
        self.post("auth/user/add", {"name": "root", "password": "root"})
        self.post("auth/user/grant", {"user": "root", "role": "root"})
        self.post("auth/role/add", {"name": "fronts"})
        self.post("auth/role/grant", permission("READWRITE", prefix))
        if read_only:
            self.post("auth/role/grant", permission("READ", read_only))
        self.post("auth/user/add", {"name": "front", "password": "hush"})
        self.post("auth/user/grant", {"user": "front", "role": "fronts"})
        self.post("auth/enable", {})

    def _open(self, request, timeout):
        return urllib.request.urlopen(request, timeout=timeout, context=self.tls.context if self.tls else None)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


@contextlib.contextmanager
def front_ends(workdir, count, config=None, etcd=None, arguments=()):
    """`count` front ends on one etcd, which comes first; `etcd` starts it. Each front end gets these arguments more."""
    workdir = Path(workdir)
    with contextlib.ExitStack() as running:
        etcd = running.enter_context(etcd or Etcd(workdir / "cluster"))
        settings = {"config": config, "etcd": etcd.endpoint, "arguments": arguments}
        servers = [Server(workdir / f"front{n}", **settings) for n in range(count)]
        for server in servers:
            running.enter_context(server)
        yield [etcd, *servers]
