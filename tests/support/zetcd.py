"""A zetcd for the tests, on an etcd. `ZETCD_BIN` names its program."""

import subprocess
from pathlib import Path

from support.server import environment, free_port
from support.waiting import eventually


class Zetcd:
    """A zetcd on an etcd, with its log below `workdir`. Runs while its context lasts."""

    def __init__(self, workdir, etcd):
        self._log = Path(workdir) / "zetcd.log"
        self._endpoint = etcd.endpoint
        self.hosts = f"127.0.0.1:{free_port()}"
        self._process = None

    def start(self):
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [environment("ZETCD_BIN"), "-endpoint", self._endpoint, "-zkaddr", self.hosts],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        eventually(self._listens)

    def _listens(self):
        assert self._process.poll() is None, self._log.read_text()
        return "listening" in self._log.read_text()

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
