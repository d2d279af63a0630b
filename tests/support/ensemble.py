"""Several servers that keep the same state, on loopback."""

import time

from support.server import READY_TIMEOUT_S, Server, ServerError, free_ports


class Ensemble:
    """Members below `workdir`, all started on the same zoo.cfg but for directories and ports.

    Nothing runs until `start()`; as a context manager it is started and killed. `config` and `kind` are as for a `Server`;
    `own` makes more lines of each member.
    """

    def __init__(self, workdir, members=3, config=None, kind=None, own=dict):
        ports = free_ports(2 * members)
        lines = {f"server.{n + 1}": f"127.0.0.1:{ports[2 * n]}:{ports[2 * n + 1]}" for n in range(members)}
        settings = lines | {"initLimit": 10, "syncLimit": 5} | (config or {})
        self.members = [
            Server(workdir / f"member-{n + 1}", kind=kind, config=settings | own()) for n in range(members)
        ]
        self.quorum_ports = [f"127.0.0.1:{ports[2 * n]}" for n in range(members)]
        for n, member in enumerate(self.members):
            (member.data_dir / "myid").write_text(str(n + 1))

    @property
    def addresses(self):
        """Host and port of every member."""
        return [address for member in self.members for address in member.addresses]

    def is_running(self):
        """Whether all members run."""
        return all(member.is_running() for member in self.members)

    def start(self):
        """Starts the members that are down and waits until one leads and the others follow."""
        for member in self.members:
            if not member.is_running():
                member.start()
        self.leader()

    # What is down is all that has to be started, for a single server as for this.
    restart = start

    def leader(self, timeout_s=READY_TIMEOUT_S):
        """The member that leads; waits until there is one and all that run follow it."""
        deadline = time.monotonic() + timeout_s
        while True:
            modes = {member: mode(member) for member in self.members if member.is_running()}
            leaders = [member for member in modes if modes[member] == "leader"]
            if len(leaders) == 1 and list(modes.values()).count("follower") == len(modes) - 1:
                return leaders[0]
            if time.monotonic() > deadline:
                raise ServerError(f"no leader that all follow after {timeout_s} s\n{self.log_tail()}")
            time.sleep(0.02)

    def follower(self):
        """Some member that does not lead."""
        leader = self.leader()
        return next(member for member in self.members if member is not leader)

    def log_tail(self):
        return "\n".join(member.log_tail() for member in self.members)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for member in self.members:
            if member.is_running():
                member.kill()


def mode(member):
    """What a member is to the others, as it says itself; nothing if it does not serve."""
    lines = member.try_word("srvr").splitlines()
    return next((line.removeprefix("Mode: ") for line in lines if line.startswith("Mode: ")), None)
