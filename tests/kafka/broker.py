"""One broker of Apache Kafka on loopback, whose cluster is kept in a ZooKeeper."""

import signal
import socket
import subprocess

from support.server import environment, free_port

STOP_TIMEOUT_S = 30
SESSION_TIMEOUT_MS = 18_000
LOGGING = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %-5p %c{1} %m%n
"""


class Broker:
    """Broker `number` below `workdir`, on a ZooKeeper at `hosts`. Runs while its context lasts."""

    def __init__(self, workdir, number, hosts):
        self.number = number
        self.port = free_port()
        self._workdir = workdir / f"broker-{number}"
        self._workdir.mkdir(parents=True)
        self._hosts = hosts
        self._process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        (self._workdir / "log4j.properties").write_text(LOGGING)
        settings = {
            "broker.id": self.number,
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self._workdir / "data",
            "zookeeper.connect": f"{self._hosts}/kafka",
            "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
            "default.replication.factor": 2,
            "min.insync.replicas": 2,
            "offsets.topic.replication.factor": 2,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 2,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }
        config = self._workdir / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        logging = f"-Dlog4j.configuration=file:{self._workdir}/log4j.properties"
        with (self._workdir / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", logging]
                + ["-cp", environment("KAFKA_CLASSPATH"), "kafka.Kafka", str(config)],
                cwd=self._workdir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def is_serving(self):
        """Whether clients can connect, which is later than its registration."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def log_tail(self, lines=40):
        log = self._workdir / "broker.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return f"--- end of broker {self.number}'s log\n" + "\n".join(text.splitlines()[-lines:])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.is_running():
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(STOP_TIMEOUT_S)
