"""Root file systems of Debian 12 in which packages are installed: as a mere directory, and as a machine that systemd runs."""

import contextlib
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

from support.waiting import eventually

HERE = Path(__file__).parent
# Each command has its own /proc in the directory, which is gone when it ends.
IN_DIRECTORY = 'mount -t proc proc "$0/proc" && exec chroot $USERSPEC "$0" "$@"'
CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


class Directory:
    """A copy of a root file system, in which programs run by chroot: no systemd, and the network of this machine."""

    def __init__(self, source, path):
        self.path = Path(path)
        subprocess.run(["cp", "-a", "--reflink=auto", source, self.path], check=True)

    def command(self, *words, user=None):
        userspec = f"--userspec={user}:{user}" if user else ""
        return ["env", f"USERSPEC={userspec}", "unshare", "--mount", "sh", "-c", IN_DIRECTORY, str(self.path), *words]

    def start(self, *words, user=None, **options):
        return subprocess.Popen(self.command(*words, user=user), env=CLEAN, stdin=subprocess.DEVNULL, **options)

    def run(self, *words, user=None):
        """What the program prints; it has to succeed."""
        code, told = self.ended(*words, user=user)
        assert code == 0, f"{words}: {code}\n{told}"
        return told

    def ended(self, *words, user=None):
        """The exit code, and what the program prints."""
        with self.start(*words, user=user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            told = process.communicate(timeout=100)[0]
        return process.returncode, told

    def put(self, file):
        """A copy of a file; its path inside."""
        shutil.copy(file, self.path / "root")
        return f"/root/{Path(file).name}"

    def files(self):
        """Paths of everything that is not of the kernel or of a moment."""
        skipped = {self.path / name for name in ["proc", "sys", "dev", "run", "tmp"]}
        found = set()
        for directory, names, files in os.walk(self.path):
            names[:] = [name for name in names if Path(directory) / name not in skipped]
            found.update(str((Path(directory) / name).relative_to(self.path)) for name in names + files)
        return found


class Machine(Directory):
    """A container in which systemd runs as the first process."""

    @contextlib.contextmanager
    def running(self):
        group = next(path for path in control_groups() if path) / f"paddock-test-{uuid.uuid4().hex[:8]}"
        group.mkdir()
        self.log = open(self.path.with_suffix(".log"), "wb")
        process = subprocess.Popen(
            ["sh", HERE / "boot.sh", self.path, group], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        try:
            eventually(lambda: child_of(process.pid) is not None)
            self.first = child_of(process.pid)
            eventually(lambda: self.ended("systemctl", "is-system-running")[1].strip(), "running", timeout_s=60)
            yield self
        finally:
            process.kill()
            process.wait()
            eventually(lambda: removed(group))

    def command(self, *words, user=None):
        assert user is None
        return ["nsenter", "--target", str(self.first), "--all", *words]

    def python(self, script, *arguments):
        """Runs a script of this directory with this machine's Python, in the container's network."""
        command = ["nsenter", "--target", str(self.first), "--net", sys.executable, HERE / script, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()


def control_groups():
    """Where the second version of control groups is."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            yield Path(place)


def child_of(process):
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    # The shell that becomes systemd has made its mounts by then.
    return children[0] if children and b"init" in Path(f"/proc/{children[0]}/cmdline").read_bytes()[:20] else None


def removed(group):
    for inner in sorted(group.rglob("*"), reverse=True):
        if inner.is_dir():
            with contextlib.suppress(OSError):
                inner.rmdir()
    try:
        group.rmdir()
    except OSError:
        return False
    return True
