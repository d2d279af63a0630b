"""A shell for one page: in namespaces of its own, so that a page's usual ports, names and directories are free and stay there.

`on MACHINE SCRIPT` runs a script where /etc/paddock and /var/lib/paddock are those of that machine. The network, which all share, has loopback with the addresses 10.0.0.1 to 10.0.0.5 beside 127.0.0.1, its /etc and /var take what is written and forget
it, and every process that a page started ends with it.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import time

from pages import matches

# Addresses of the machines that pages have, with their names.
MACHINES = {f"10.0.0.{number}": f"zoo{number}.example.org" for number in range(1, 6)}
PATIENCE_S = 60
# A shell's own line on a process that was killed, at whatever moment it notices.
NOTICE = re.compile(r"^\S+: line \d+: +\d+ (?:Killed|Terminated) .*\n", re.MULTILINE)
# In place of a line from the shell.
LATE = "late"

# A tmpfs takes all that is written; `/mnt` is there on every Debian.
PREPARE = """
set -e
ip link set lo up
%(addresses)s
mount -t tmpfs none /mnt
mkdir /mnt/home /mnt/bin /mnt/out /mnt/up-etc /mnt/work-etc /mnt/up-var /mnt/work-var
for place in etc var; do
    mount -t overlay overlay -o lowerdir=/$place,upperdir=/mnt/up-$place,workdir=/mnt/work-$place /$place
done
mkdir -p /etc/paddock /var/lib/paddock
for machine in zoo1 zoo2 zoo3 zoo4 zoo5; do
    mkdir -p /mnt/machines/$machine/home /mnt/machines/$machine/etc/paddock /mnt/machines/$machine/var/lib/paddock
done
chmod 700 /var/lib/paddock
cat >> /etc/hosts <<'END'
%(hosts)s
END
cp %(programs)s/* /mnt/bin/
cd /mnt/home
on() {
    MACHINE=$1 unshare --mount bash -c '
        for place in etc var/lib; do mount --bind /mnt/machines/$MACHINE/$place/paddock /$place/paddock || exit; done
        cd /mnt/machines/$MACHINE/home && . "$0"' "$2"
}
set +e -m
echo prepared
"""


def unshare():
    """The command that gives a program namespaces of its own; whoever is not root becomes root in there."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]


def missing():
    """Why there can be no sandbox here, or nothing."""
    if not shutil.which("unshare"):
        return "there is no unshare"
    tried = subprocess.run([*unshare(), "ip", "link", "set", "lo", "up"], capture_output=True, text=True)
    return f"no namespaces: {tried.stderr.strip()}" if tried.returncode else ""


class Sandbox:
    """The shell of a page. `programs` is a directory of programs that pages use by their names."""

    def __init__(self, directory, programs, path):
        self._directory = directory
        self._count = 0
        self.broken = ""
        self._out = directory / "out"
        self._out.mkdir()
        environment = {
            "HOME": "/mnt/home", "LC_ALL": "C.UTF-8", "PATH": f"/mnt/bin:{path}",
        }
        self._shell = subprocess.Popen(
            [*unshare(), "bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=(directory / "shell.log").open("w"), env=environment, text=True, start_new_session=True,
        )
        addresses = "\n".join(f"ip address add {address}/32 dev lo" for address in MACHINES)
        hosts = "\n".join(f"{address} {name}" for address, name in MACHINES.items())
        self._say(PREPARE % {"addresses": addresses, "hosts": hosts, "programs": programs})
        assert self._hear() == "prepared", (directory / "shell.log").read_text()

    def run(self, command):
        """Carries a command out. Returns what is wrong with it, or nothing."""
        self._count += 1
        script, output = self._out / f"{self._count}.sh", self._out / f"{self._count}.out"
        goes_on = command.keeps_running or command.text.rstrip().endswith("&")
        text = command.text.rstrip()
        script.write_text(f"{text} &\n" if command.keeps_running else f"{text}\n")
        start = f"on {command.machine}" if command.machine else "."
        self._say(f'{start} "{script}" > "{output}" 2>&1 < /dev/null; echo "ended $?"\n')
        status = self._hear()
        if status == LATE:
            return f"it did not end within {PATIENCE_S} s\n{output.read_text()}"
        if status != "ended 0":
            return f"{status or 'the shell ended'}\n{output.read_text()}"
        return self._compare(command, output, goes_on)

    def close(self):
        self._shell.stdin.close()
        # The first process of a PID namespace takes all others with it.
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        self._shell.stdout.close()

    def _compare(self, command, output, goes_on):
        """A command that goes on has some time until it has said what the page shows."""
        end = time.monotonic() + (PATIENCE_S if goes_on else 0)
        while True:
            found = NOTICE.sub("", output.read_text())
            if not command.output or matches(command.output, found):
                return ""
            if time.monotonic() >= end:
                shown = "\n".join(command.output)
                return f"the page shows\n{shown}\nand it said\n{found}"
            time.sleep(0.02)

    def _say(self, text):
        try:
            self._shell.stdin.write(text)
            self._shell.stdin.flush()
        except BrokenPipeError:
            pass  # `_hear` tells.

    def _hear(self):
        ready, _, _ = select.select([self._shell.stdout], [], [], PATIENCE_S)
        return self._shell.stdout.readline().strip() if ready else LATE
