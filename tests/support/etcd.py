"""A real etcd of one node for the tests, and front ends on it. `ETCD_BIN` names etcd's program."""

import contextlib
import json
import subprocess
import time
import urllib.request
from pathlib import Path

from support.server import Server, ServerError, environment, free_ports

READY_TIMEOUT_S = 30


class Etcd:
    """An etcd below `workdir`, which keeps its ports and its data over `kill()` and `start()`."""

    def __init__(self, workdir):
        self.workdir = Path(workdir)
        client, peer = free_ports(2)
        self.endpoint = f"http://127.0.0.1:{client}"
        self._peer = f"http://127.0.0.1:{peer}"
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
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(self.endpoint + "/health", timeout=1) as health:
                    if json.load(health).get("health") == "true":
                        return
            time.sleep(0.02)
        raise ServerError(f"etcd was not ready after {READY_TIMEOUT_S} s")

    def post(self, method, body):
        """A call of etcd's JSON gateway."""
        request = urllib.request.Request(f"{self.endpoint}/v3/{method}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


@contextlib.contextmanager
def front_ends(workdir, count, config=None):
    """`count` front ends on one etcd, which comes first."""
    workdir = Path(workdir)
    with contextlib.ExitStack() as running:
        etcd = running.enter_context(Etcd(workdir / "cluster"))
        servers = [Server(workdir / f"front{n}", config=config, etcd=etcd.endpoint) for n in range(count)]
        for server in servers:
            running.enter_context(server)
        yield [etcd, *servers]
