"""The Debian package on a bare Debian 12, and on one with systemd."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from kazoo.client import KazooClient

from roots import HERE
from support.server import free_port
from support.waiting import eventually

EXPOSURE_MAX = 2.5


def first_steps(hosts, path="/count"):
    command = [sys.executable, HERE / "first_steps.py", hosts, path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


class Member:
    """A member of the installed program, of the package's user, in a directory below that of the service."""

    def __init__(self, root, number, members, clients):
        self.root, self.port = root, clients[number]
        settings = root.path / f"etc/paddock/{number}.toml"
        table = "".join(
            f'[[ensemble.member]]\nid = {other}\nhost = "127.0.0.1"\nquorum_port = {port}\nclient_port = {clients[other]}\n'
            for other, port in members.items()
        )
        settings.write_text(f'listen = "127.0.0.1:{self.port}"\nmember = {number}\n{table}')
        self.command = ["paddock", "server", "--config", f"/etc/paddock/{number}.toml", "--data-dir", f"/var/lib/paddock/{number}"]
        self.start()

    def start(self):
        self.process = self.root.start(*self.command, user="paddock", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines = []
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=20) == 0, self.lines


def test_three_members_on_a_bare_debian(bare, package, next_package):
    before = bare.files()
    begin = time.monotonic()
    bare.run("dpkg", "-i", bare.put(package))
    installed = time.monotonic() - begin
    assert bare.run("dpkg", "--verify", "paddock") == ""
    assert bare.run("stat", "-c", "%U %a", "/var/lib/paddock").strip() == "paddock 700"

    members = {number: free_port() for number in (1, 2, 3)}
    clients = {number: free_port() for number in (1, 2, 3)}
    hosts = ",".join(f"127.0.0.1:{port}" for port in clients.values())
    ensemble = [Member(bare, number, members, clients) for number in members]
    try:
        assert first_steps(hosts) == "1"
        answered = time.monotonic() - begin
        print(f"installed after {installed:.1f} s, three members and kazoo's first writes after {answered:.1f} s")

        # While it is upgraded, members serve, and none of their clients is disconnected.
        client = KazooClient(hosts)
        client.start()
        session, states = client.client_id, []
        client.add_listener(states.append)
        upgrade = bare.start("dpkg", "-i", bare.put(next_package), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        writes = 0
        while upgrade.poll() is None:
            client.set("/count", b"1")
            writes += 1
        assert upgrade.returncode == 0, upgrade.stdout.read()
        assert writes > 0 and states == [] and client.client_id == session
        for member in ensemble:
            member.stop()
            member.start()
            eventually(lambda member=member: any("ready for clients" in line for line in member.lines), timeout_s=30)
            client.retry(client.set, "/count", b"1")
        assert client.client_id == session
        client.stop()
        assert first_steps(hosts) == "2"
    finally:
        for member in ensemble:
            member.stop()

    bare.run("dpkg", "-r", "paddock")
    assert (bare.path / "var/lib/paddock/1").is_dir() and (bare.path / "etc/paddock/paddock.toml").is_file()
    for number in members:
        (bare.path / f"etc/paddock/{number}.toml").unlink()
    bare.run("dpkg", "-P", "paddock")
    left = {path for path in bare.files() - before if not path.startswith(("var/lib/dpkg", "var/log", "root"))}
    # The user stays, as Debian's policy would have it: files elsewhere may be of its number.
    assert {path for path in left if not path.startswith("etc/")} == set()
    assert "paddock" not in " ".join(left)


def test_zoo_cfg_is_taken_over(bare, package):
    port = free_port()
    bare.run("dpkg", "-i", bare.put(package))
    zoo = bare.path / "etc/zookeeper/conf"
    zoo.mkdir(parents=True)
    (zoo / "zoo.cfg").write_text(f"dataDir=/var/lib/zookeeper\nclientPort={port}\ntickTime=3000\nsnapCount=5000\n")
    told = bare.run("sh", "-c", "paddock server --check --config /etc/zookeeper/conf/zoo.cfg > /etc/paddock/paddock.toml; cat /etc/paddock/paddock.toml")
    assert "tick_ms = 3000" in told and "snapshot_writes = 5000" in told
    # The command of the unit.
    server = bare.start(
        "paddock", "server", "--config", "/etc/paddock/paddock.toml", "--data-dir", "/var/lib/paddock", user="paddock", stderr=subprocess.DEVNULL
    )
    assert first_steps(f"127.0.0.1:{port}") == "1"
    server.terminate()
    assert server.wait(timeout=20) == 0
    # What its owner has changed is left alone by an upgrade.
    bare.run("dpkg", "--force-confold", "-i", bare.put(package))
    assert bare.run("cat", "/etc/paddock/paddock.toml") == told


def test_the_service(machine, package, next_package):
    before = machine.files()
    machine.run("dpkg", "-i", machine.put(package))
    assert machine.ended("systemctl", "is-enabled", "paddock")[1].strip() == "disabled"
    assert machine.ended("systemctl", "is-active", "paddock")[1].strip() == "inactive"
    rated = machine.run("systemd-analyze", "security", "--no-pager", "paddock").splitlines()[-1]
    assert float(re.search(r"level for paddock.service: ([0-9.]+)", rated)[1]) < EXPOSURE_MAX, rated
    told = machine.run("systemd-analyze", "verify", "paddock.service")
    assert "paddock" not in told

    machine.run("systemctl", "enable", "--now", "paddock")
    assert machine.python("first_steps.py", "127.0.0.1:2181", "/count") == "1"
    assert "ready for clients" in machine.run("journalctl", "--no-pager", "-u", "paddock")
    first = main_process(machine)
    machine.run("systemctl", "reload", "paddock")
    machine.run("dpkg", "-i", machine.put(next_package))
    assert main_process(machine) != first
    assert machine.python("first_steps.py", "127.0.0.1:2181", "/count") == "2"
    assert machine.run("systemctl", "is-enabled", "paddock").strip() == "enabled"

    # Settings of a ZooKeeper, by the variable of the unit.
    (machine.path / "etc/zoo.cfg").write_text("dataDir=/var/lib/zookeeper\nclientPort=2199\n")
    (machine.path / "etc/default/paddock").write_text("PADDOCK_CONFIG=/etc/zoo.cfg\n")
    machine.run("systemctl", "restart", "paddock")
    assert machine.python("first_steps.py", "127.0.0.1:2199", "/count") == "3"

    # It comes again when it is killed, and does not try again with settings that are wrong.
    machine.run("systemctl", "kill", "--signal=KILL", "paddock")
    assert machine.python("first_steps.py", "127.0.0.1:2199", "/count") == "4"
    (machine.path / "etc/zoo.cfg").write_text("clientPort=none\n")
    machine.ended("systemctl", "restart", "paddock")
    eventually(lambda: machine.ended("systemctl", "is-failed", "paddock")[1].strip(), "failed")
    assert "zoo.cfg:1" in machine.run("journalctl", "--no-pager", "-u", "paddock")
    (machine.path / "etc/zoo.cfg").write_text("dataDir=/var/lib/zookeeper\nclientPort=2199\n")
    machine.run("systemctl", "restart", "paddock")

    machine.run("dpkg", "-r", "paddock")
    assert machine.ended("sh", "-c", "grep -qx paddock /proc/[0-9]*/comm")[0] == 1
    assert (machine.path / "var/lib/paddock/log").is_dir()
    machine.run("dpkg", "-P", "paddock")
    (machine.path / "etc/zoo.cfg").unlink()
    left = {path for path in machine.files() - before if "paddock" in path}
    assert {path for path in left if not path.startswith(("var/lib/dpkg", "var/cache/man", "root"))} == set()


def main_process(machine):
    return machine.run("systemctl", "show", "--property=MainPID", "--value", "paddock").strip()


def test_lintian_finds_nothing(tools, package):
    assert tools.run("lintian", "--allow-root", "--fail-on", "error,warning,info", tools.put(package)) == ""


def test_pages_and_completions(tools, package):
    tools.run("dpkg", "-i", tools.put(package))
    for page in ["paddock", "paddock-server", "paddock-bench-run"]:
        told = tools.run("sh", "-c", f"man --warnings -Tutf8 {page} 2>&1 >/dev/null; man {page} | head -4")
        assert "warning" not in told and "NAME" in told, told
    script = "/usr/share/bash-completion/completions/paddock"
    told = tools.run("bash", "-c", f"source {script}; COMP_WORDS=(paddock se); COMP_CWORD=1; _paddock paddock se paddock; echo ${{COMPREPLY[@]}}")
    assert told.strip() == "server"


def test_the_bill_is_in_the_program(tools, package):
    """The list of crates that scanners read out of a program."""
    tools.run("dpkg", "-i", tools.put(package))
    program = tools.path / "usr/bin/paddock"
    headers = subprocess.run(["objdump", "-h", program], capture_output=True, text=True, check=True).stdout
    assert ".dep-v0" in headers
    needed = subprocess.run(["objdump", "-T", program], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", needed)}
    assert max(versions) <= (2, 17), versions
    text = Path(program).read_bytes()
    for place in [os.environ["HOME"].encode() + b"/", str(HERE.parents[1]).encode() + b"/"]:
        assert place not in text, f"it names {place} of the machine that built it"
