"""Programs that pages use by their names, a sandbox for each page, and the account of what was run."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from sandbox import Sandbox, missing

ROOT = Path(__file__).parents[2]


# The service of the packages, on each of the machines.
SYSTEMCTL = """
at=/mnt/machines/$MACHINE
stop() { [ ! -e $at/pid ] || { kill $(cat $at/pid); while kill -0 $(cat $at/pid) 2> /dev/null; do sleep 0.05; done; rm $at/pid; }; }
start() {
    setsid paddock server --config /etc/paddock/paddock.toml --data-dir /var/lib/paddock >> $at/log 2>&1 &
    echo $! > $at/pid
}
case "$*" in
    "enable --now paddock" | "start paddock") start ;;
    "stop paddock") stop ;;
    "restart paddock") stop; start ;;
    "reload paddock") kill -HUP $(cat $at/pid) ;;
    *) exit 2 ;;
esac"""
# Copies files to HOST:DIRECTORY.
SCP = """
for to; do :; done
host=${to%%.*}
while [ $# -gt 1 ]; do cp "$1" "/mnt/machines/$host${to#*:}"; shift; done"""


def program(directory, name, text):
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """`paddock`, ZooKeeper's two scripts, systemctl and scp for the machines of pages, and a Cargo for which everything is built."""
    directory = tmp_path_factory.mktemp("bin")
    paddock, jars = os.environ["PADDOCK_BIN"], os.environ["ZOOKEEPER_CLASSPATH"]
    program(directory, "paddock", f'exec "{paddock}" "$@"')
    java = f'exec java -cp "{jars}" -Dzookeeper.admin.enableServer=false'
    program(directory, "zkCli.sh", f'{java} org.apache.zookeeper.ZooKeeperMain "$@"')
    zookeeper = f'{java} org.apache.zookeeper.server.quorum.QuorumPeerMain "$2"'
    program(directory, "zkServer.sh", f'[ "$1" = start-foreground ] || exit 2\n{zookeeper}')
    program(directory, "systemctl", SYSTEMCTL)
    program(directory, "scp", SCP)
    # The user of the packages is not here.
    program(directory, "chown", '[ "$1" != -R ] || shift\n[ "$1" = paddock:paddock ] && shift && ls -d "$@" > /dev/null')
    # The stage `build` has built it as this command does.
    run = f'exec "{paddock}" "$@"'
    program(directory, "cargo", f'[ "$1 $2 $3" = "run --release --" ] || exit 2\nshift 3\n{run}')
    return directory


@pytest.fixture(scope="session")
def sandbox_of(programs, tmp_path_factory):
    """`sandbox_of(page)` is the sandbox of that page; pages come one after the other, and the one before ends."""
    if reason := missing():
        pytest.skip(reason)
    open_one = {}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def find(page):
        if page not in open_one:
            close()
            open_one[page] = Sandbox(tmp_path_factory.mktemp("page"), programs, path)
        return open_one[page]

    def close():
        while open_one:
            open_one.popitem()[1].close()

    yield find
    close()


def pytest_terminal_summary(terminalreporter):
    """Writes how many commands were run of each page, and why others were not, to where the stage prints it from."""
    def reports(outcome):
        return [report for report in terminalreporter.getreports(outcome) if "test_command" in report.nodeid]

    ran = Counter(page(report) for outcome in ("passed", "failed") for report in reports(outcome))
    skipped = Counter((report.longrepr[2].removeprefix("Skipped: "), page(report)) for report in reports("skipped"))
    lines = [f"{count:4} ran         {name}" for name, count in sorted(ran.items())]
    lines += [f"{count:4} not run     {name}: {reason}" for (reason, name), count in sorted(skipped.items())]
    lines.append(f"{sum(ran.values())} commands of pages ran, {sum(skipped.values())} were not run")
    if account := os.environ.get("PAGES_ACCOUNT"):
        Path(account).parent.mkdir(parents=True, exist_ok=True)
        Path(account).write_text("\n".join(lines) + "\n")
    terminalreporter.write_line("\n".join(lines))


def page(report):
    return report.nodeid.split("[", 1)[1].rsplit(":", 1)[0]
