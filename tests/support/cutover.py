"""A move from an ensemble of Apache ZooKeeper to Paddock under its clients, by `paddock import follow` as a process."""

import subprocess

from support.ensemble import Ensemble, mode
from support.server import Server, environment
from support.waiting import eventually

PATIENCE_S = 60
# An ensemble that shares few cores with others should not lose its followers for that.
SETTINGS = {"tickTime": 2000}


class CutOver:
    """Three members of ZooKeeper, a Paddock that follows them, and all their addresses for clients.

    As a context manager it starts ZooKeeper, and kills whatever runs at the end.
    """

    def __init__(self, workdir):
        self.source = Ensemble(workdir / "zookeeper", config=SETTINGS, kind="zookeeper")
        self.target = Server(workdir / "paddock", kind="paddock", config=SETTINGS)
        self._log_file = workdir / "follow.log"
        self._follower = None

    @property
    def addresses(self):
        return self.source.addresses + self.target.addresses

    @property
    def hosts(self):
        """What a client's connection string needs."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    def is_running(self):
        return self.source.is_running() or (self._follower is not None and self._follower.poll() is None)

    def follow(self):
        """Starts to follow, and returns when all that was written has arrived."""
        with self._log_file.open("ab") as log:
            self._follower = subprocess.Popen(
                [environment("PADDOCK_BIN"), "import", "follow", "--from", ",".join(self.source.quorum_ports)]
                + ["--to", str(self.target.data_dir), "--cutover", "--config", str(self.target.config_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_for_word("ready for the cut-over")

    def cut_over(self):
        """Ends ZooKeeper, its leader last, and returns when Paddock serves."""
        leader = self.source.leader()
        for member in self.source.members:
            if member is not leader:
                member.kill()
        eventually(lambda: mode(leader) == "leader", False, PATIENCE_S)
        leader.kill()
        self._wait_for_word("took over in ")
        eventually(lambda: mode(self.target), "standalone", PATIENCE_S)

    def log(self):
        return self._log_file.read_text() if self._log_file.exists() else ""

    def log_tail(self):
        return f"{self.source.log_tail()}\n--- the follower's log\n{self.log()}"

    def _wait_for_word(self, word):
        def has_said_it():
            assert self._follower.poll() is None, f"the follower has ended:\n{self.log()}"
            return word in self.log()

        eventually(has_said_it, True, PATIENCE_S)

    def __enter__(self):
        self.source.__enter__()
        return self

    def __exit__(self, *_):
        self.source.__exit__()
        if self._follower is not None and self._follower.poll() is None:
            self._follower.kill()
            self._follower.wait()
