"""A kazoo client in a process of its own, so that a test can kill it: no close, no goodbye to the server.

    python -m support.client_process HOSTS TIMEOUT_S ROLE PATH

The roles: `ephemeral` creates an ephemeral znode, `lock` takes a Lock, `elect` runs for an Election. The process prints
`ready` when it has what its role is after, and keeps it until it is killed.
"""

import subprocess
import sys
import threading
from pathlib import Path

from kazoo.client import KazooClient


class ClientProcess:
    """The test's side: started in the constructor, killed at the end of the `with` block at the latest."""

    def __init__(self, hosts, role, path, timeout_s=1.0):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.client_process", hosts, str(timeout_s), role, path],
            cwd=Path(__file__).parent.parent,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_ready(self):
        line = self._process.stdout.readline()
        assert line == "ready\n", f"the client process ended: {line!r}, code {self._process.poll()}"

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._process.stdout.close()


def main(hosts, timeout_s, role, path):
    client = KazooClient(hosts, timeout=float(timeout_s))
    client.start()
    ROLES[role](client, path)


def keep():
    print("ready", flush=True)
    threading.Event().wait()


def be_ephemeral(client, path):
    client.create(path, ephemeral=True)
    keep()


def hold_lock(client, path):
    with client.Lock(path, "process"):
        keep()


def run_for_election(client, path):
    client.Election(path, "process").run(keep)


ROLES = {"ephemeral": be_ephemeral, "lock": hold_lock, "elect": run_for_election}

if __name__ == "__main__":
    main(*sys.argv[1:])
