"""One `clickhouse-server` process on loopback: its files, its life and death, and the queries sent to it."""

import http.client
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from string import Template
from typing import NamedTuple
from urllib.parse import urlencode

from clickhouse.waiting import wait_for

HERE = Path(__file__).parent

# Short, so that tests of expiry are; ClickHouse pings three times within it.
SESSION_TIMEOUT_S = 5
READY_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
QUERY_TIMEOUT_S = 60


class QueryFailed(Exception):
    """ClickHouse refused a statement, or could not be reached."""


class Ports(NamedTuple):
    tcp: int
    http: int
    interserver: int


class Replica:
    """A ClickHouse server below `workdir`. It keeps its ports and its data over `kill()` and `start()`."""

    def __init__(self, workdir, name, ports, settings):
        """`settings` fill the places of config.xml that replicas have in common."""
        self.name = name
        self.workdir = Path(workdir) / name
        self.log_file = self.workdir / "clickhouse.log"
        self._config_file = self.workdir / "config.xml"
        self._http_port = ports.http
        self._process = None

        self.workdir.mkdir(parents=True)
        config = Template((HERE / "config.xml").read_text()).substitute(
            settings,
            name=name,
            tcp_port=ports.tcp,
            http_port=ports.http,
            interserver_port=ports.interserver,
            data_dir=self.workdir / "data",
            users_config=HERE / "users.xml",
            session_timeout_ms=SESSION_TIMEOUT_S * 1000,
        )
        self._config_file.write_text(config)

    def __repr__(self):
        return f"Replica({self.name})"

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def start(self):
        """Starts the process and waits until it answers queries."""
        assert not self.is_running(), f"{self.name} runs already"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [clickhouse_server(), f"--config-file={self._config_file}"],
                cwd=self.workdir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: self.query("SELECT 1"), [[1]], READY_TIMEOUT_S, while_true=self.is_running)

    def stop(self):
        """Ends the server in good order: it takes its ephemeral znodes back."""
        self._end(signal.SIGTERM)

    def kill(self):
        """Ends the server as a crash does: nobody is told."""
        self._end(signal.SIGKILL)

    def freeze(self):
        """Stops the process from running; its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def query(self, sql, **settings):
        """Runs one statement and returns its rows: none for a statement without a result."""
        options = {"default_format": "JSONCompact", "output_format_json_quote_64bit_integers": 0} | settings
        connection = http.client.HTTPConnection("127.0.0.1", self._http_port, timeout=QUERY_TIMEOUT_S)
        try:
            connection.request("POST", f"/?{urlencode(options)}", body=sql.encode())
            response = connection.getresponse()
            body = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise QueryFailed(f"{self.name}: {sql}: {error!r}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise QueryFailed(f"{self.name}: {sql}: {body.strip()}")
        return json.loads(body)["data"] if body else []

    def column(self, sql):
        """The only column of a query's rows."""
        return [value for (value,) in self.query(sql)]

    def znodes(self, path):
        """The names of a znode's children, as ClickHouse sees them."""
        return self.column(f"SELECT name FROM system.zookeeper WHERE path = '{path}' ORDER BY name")

    def errors(self, lines=20):
        """The last errors in the server's log, for the report of a failed test."""
        log = self.log_file.read_text(errors="replace") if self.log_file.exists() else ""
        errors = [line[:400] for line in log.splitlines() if "<Error>" in line or "<Fatal>" in line]
        return "\n".join(errors[-lines:])

    def _end(self, signal_number):
        assert self._process is not None, f"{self.name} was never started"
        if self.is_running():
            self._process.send_signal(signal_number)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"{self.name} did not end within {STOP_TIMEOUT_S} s") from None


def clickhouse_server():
    """The server's program; Debian puts it where only root's PATH looks."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin"
    program = shutil.which("clickhouse-server", path=path)
    assert program, "clickhouse-server is not installed; see tests/clickhouse/README.md"
    return program
