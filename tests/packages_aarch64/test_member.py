"""The file alone serves kazoo, and goes on with its data; the packages are for the architecture that they name."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.server import free_port

DIST = Path(os.environ["DIST"])
FIRST_STEPS = Path(__file__).parent.parent / "packages/first_steps.py"


def the_file(pattern):
    (file,) = DIST.glob(pattern)
    return file


@pytest.fixture
def program(tmp_path):
    """The command that runs the program of the archive."""
    archive = the_file("paddock-*-aarch64-linux.tar.gz")
    subprocess.run(["tar", "--extract", "--strip-components=1", "--file", archive, "--directory", tmp_path], check=True)
    head = (tmp_path / "paddock").read_bytes()[:20]
    assert head[:4] == b"\x7fELF" and head[18:20] == b"\xb7\x00", "it is a program for aarch64"
    return [os.environ["EMULATOR"], "-L", os.environ["FOREIGN_LIBRARIES"], tmp_path / "paddock"]


def first_steps(hosts):
    done = subprocess.run([sys.executable, FIRST_STEPS, hosts, "/first"], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_a_member_serves_and_goes_on_with_its_data(program, tmp_path):
    version = subprocess.run([*program, "version", "--verbose"], capture_output=True, text=True, check=True).stdout
    assert "aarch64" in version, version
    port = free_port()
    command = [*program, "server", "--listen", f"127.0.0.1:{port}", "--data-dir", tmp_path / "data"]
    for count in ["1", "2"]:
        begin = time.monotonic()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as member:
            try:
                assert first_steps(f"127.0.0.1:{port}") == count
                print(f"started and kazoo's first writes in the emulator after {time.monotonic() - begin:.1f} s")
                member.terminate()
                assert member.wait(timeout=60) == 0, member.stderr.read()
            finally:
                member.kill()


def test_packages_name_their_architecture():
    package = the_file("*_arm64.deb")
    told = subprocess.run(["dpkg-deb", "--field", package, "Architecture"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "arm64"
    assert the_file("*.aarch64.rpm").stat().st_size > 1 << 20
