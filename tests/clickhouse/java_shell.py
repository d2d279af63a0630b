"""ZooKeeper's own command line in a process of its own: its Java client, as a person uses it."""

import os
import subprocess

# A command whose answer is known, so that the answers before it are complete.
LAST = "version"
LAST_ANSWER = "ZooKeeper CLI version"


class JavaShell:
    """Connected while its context lasts."""

    def __init__(self, hosts):
        command = ["java", "-XX:TieredStopAtLevel=1", "-DLOG_LEVEL=OFF", "-cp", os.environ["ZOOKEEPER_CLASSPATH"]]
        self._process = subprocess.Popen(
            [*command, "org.apache.zookeeper.ZooKeeperMain", "-server", hosts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *commands):
        """What is said until all commands have been answered, events of watches included."""
        self._process.stdin.write("".join(f"{command}\n" for command in [*commands, LAST]))
        self._process.stdin.flush()
        lines = []
        while line := self._process.stdout.readline():
            if line.startswith(LAST_ANSWER):
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"{commands}: the client ended: {lines}")

    def quit(self):
        """Closes the session, and waits for the answer to that."""
        if self._process.poll() is None:
            self._process.communicate("quit\n", timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error is None:
            self.quit()
        self._process.kill()
        self._process.wait()
