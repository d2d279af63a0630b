"""One server process for the tests: Paddock or Apache ZooKeeper, started on the same zoo.cfg.

The environment says which one runs and where it is, so that one test proves itself against the original and then judges
Paddock:

    TEST_SERVER          "paddock" (default) or "zookeeper"
    PADDOCK_BIN          the paddock binary
    ZOOKEEPER_CLASSPATH  a class path for `java -cp` that holds Apache ZooKeeper's server

A server keeps its port and its data directory over `kill()` and `restart()`, so clients find it again.
"""

import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

READY_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20

# Ports below Linux's ephemeral range. A port from inside it could be taken by some client's outgoing connection while
# our server is down, and a client that keeps dialling such a port can even connect to itself.
# TEST_PORTS narrows the choice, where other tests start servers meanwhile.
PORTS = range(*map(int, os.environ.get("TEST_PORTS", "20000..32000").split("..")))
# Ports that this process has given to servers.
given_ports = set()


class ServerError(Exception):
    """The server did not do what the test needs; the message ends with its last log lines."""


class Server:
    """A server below `workdir`. Nothing runs until `start()`; as a context manager it is started and killed.

    `etcd` is the endpoint of an etcd that orders writes and keeps the data in place of the server's own log;
    `arguments` stand behind it on Paddock's command line.
    `config` adds lines to zoo.cfg or replaces some. `jvm_flags` are system properties as for ZooKeeper's JVM.
    """

    def __init__(self, workdir, kind=None, config=None, jvm_flags=(), etcd=None, arguments=()):
        self.etcd = etcd
        self._arguments = [str(argument) for argument in arguments]
        self.workdir = Path(workdir)
        self.kind = kind or os.environ.get("TEST_SERVER", "paddock")
        self.host = "127.0.0.1"
        self.port = free_port()
        self.data_dir = self.workdir / "data"
        self.config_file = self.workdir / "zoo.cfg"
        self.log_file = self.workdir / "server.log"
        self._jvm_flags = list(jvm_flags)
        self._process = None
        # An administrator of the groups of its ensemble, if it has several.
        self.groups = None

        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.configure(config or {})

    def configure(self, config):
        """Writes the zoo.cfg that the server reads at its next start."""
        self.settings = self._default_settings() | config
        self.config_file.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))

    @property
    def hosts(self):
        """What a client's connection string needs."""
        return f"{self.host}:{self.port}"

    @property
    def addresses(self):
        """Host and port of everything that clients may connect to."""
        return [(self.host, self.port)]

    @property
    def pid(self):
        return self._process.pid if self.is_running() else None

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def start(self):
        """Starts the process and returns at once; see `wait_ready()`."""
        assert not self.is_running(), "the server runs already"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                cwd=self.workdir,
                # As ZooKeeper's scripts are told them.
                env=os.environ | {"SERVER_JVMFLAGS": " ".join(self._jvm_flags)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_ready(self, timeout_s=READY_TIMEOUT_S):
        """Returns when the server serves clients."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self.is_running():
                code = self._process.returncode if self._process else None
                raise ServerError(f"{self.kind} ended with {code} before it was ready\n{self.log_tail()}")
            # Before ZooKeeper serves, `srvr` answers with one line that says so.
            if "Mode: " in self.try_word("srvr"):
                return
            time.sleep(0.02)
        raise ServerError(f"{self.kind} was not ready after {timeout_s} s\n{self.log_tail()}")

    def stop(self, timeout_s=STOP_TIMEOUT_S):
        """Asks the server to end. Paddock promises exit code 0; a JVM ends with 143 by its own custom."""
        code = self._end(signal.SIGTERM, timeout_s)
        if self.kind == "paddock" and code != 0:
            raise ServerError(f"paddock ended with {code} on SIGTERM\n{self.log_tail()}")

    def kill(self):
        """Ends the server the way a crash does: SIGKILL, no goodbye to anybody."""
        self._end(signal.SIGKILL, STOP_TIMEOUT_S)

    def pause(self):
        """Stops the process from running, as a machine that hangs does."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def restart(self):
        """Starts the server again on its data, stopping it first if it runs, and waits until it serves."""
        if self.is_running():
            self.stop()
        self.start()
        self.wait_ready()

    def word(self, word, timeout_s=5):
        """Sends a four-letter word and returns the whole answer."""
        with socket.create_connection((self.host, self.port), timeout=timeout_s) as connection:
            connection.sendall(word.encode())
            answer = bytearray()
            while chunk := connection.recv(65536):
                answer += chunk
        return answer.decode()

    def try_word(self, word):
        """Like `word()`, but an unreachable server answers with the empty string."""
        try:
            # A connection that ZooKeeper accepts while it starts may never be answered.
            return self.word(word, timeout_s=1)
        except OSError:
            return ""

    def log_tail(self, lines=60):
        """The last lines of the server's output, for the report of a failed test."""
        if not self.log_file.exists():
            return "(no server log)"
        text = self.log_file.read_text(errors="replace")
        return f"--- end of {self.kind}'s log\n" + "\n".join(text.splitlines()[-lines:])

    def __enter__(self):
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        if self.is_running():
            self.kill()

    def _default_settings(self):
        return {
            "dataDir": self.data_dir,
            "clientPort": self.port,
            "clientPortAddress": self.host,
            # Sessions may be as short as two ticks, so expiry can be tested in seconds.
            "tickTime": 500,
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "*",
            "admin.enableServer": "false",
            "extendedTypesEnabled": "true",
            "znode.container.checkIntervalMs": 200,
        }

    def _command(self):
        if self.kind == "paddock":
            engine = ["--engine", "etcd", "--etcd-endpoints", self.etcd] if self.etcd else []
            return [environment("PADDOCK_BIN"), "server", "--config", str(self.config_file), *engine, *self._arguments]
        assert self.kind == "zookeeper", f"unknown TEST_SERVER {self.kind!r}"
        return [
            "java",
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            # The one property that zoo.cfg can't set: keys of the file get a `zookeeper.` in front, this one has none.
            "-Dznode.container.checkIntervalMs=200",
            *self._jvm_flags,
            "-cp",
            environment("ZOOKEEPER_CLASSPATH"),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self.config_file),
        ]

    def _end(self, signal_number, timeout_s):
        assert self._process is not None, "the server was never started"
        if self._process.poll() is None:
            self._process.send_signal(signal_number)
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ServerError(f"{self.kind} did not end within {timeout_s} s\n{self.log_tail()}") from None


def free_port():
    """A port on 127.0.0.1 that nobody listens on, and that no server has been given: it may not listen yet."""
    for port in random.sample(sorted(set(PORTS) - given_ports), 100):
        with socket.socket() as probe:
            # As servers do it: a port with connections in TIME_WAIT counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            given_ports.add(port)
            return port
    raise ServerError("no free port found")


def free_ports(count):
    return [free_port() for _ in range(count)]


def environment(name):
    value = os.environ.get(name)
    if not value:
        raise ServerError(f"{name} is not set; run the tests with `cargo xtask test`")
    return value
