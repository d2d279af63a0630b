"""Packages as `cargo xtask dist` makes them, and Debians to install them on.

DIST is the directory of what is shipped, DEBIAN_ROOT a bare Debian 12, TOOLS_ROOT one with systemd, lintian and rpm,
MINISIGN and MINISIGN_KEY the program and the public key by which check sums are signed.
"""

import os
import subprocess
from pathlib import Path

import pytest

from roots import Directory, Machine


def copied(kind, variable, path):
    if os.geteuid() != 0:
        pytest.skip("root file systems take root")
    return kind(os.environ[variable], path)


def the_file(pattern):
    (file,) = Path(os.environ["DIST"]).glob(pattern)
    return file


@pytest.fixture
def bare(tmp_path):
    return copied(Directory, "DEBIAN_ROOT", tmp_path / "bare")


@pytest.fixture
def tools(tmp_path):
    return copied(Directory, "TOOLS_ROOT", tmp_path / "tools")


@pytest.fixture
def machine(tmp_path):
    with copied(Machine, "TOOLS_ROOT", tmp_path / "machine").running() as machine:
        yield machine


@pytest.fixture
def package():
    return the_file("*_amd64.deb")


@pytest.fixture
def next_package(package, tmp_path):
    """The same program as the next revision of the package."""
    tree, made = tmp_path / "next", tmp_path / package.name.replace("-1_", "-2_")
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("-1\nArch", "-2\nArch"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, made], check=True, capture_output=True)
    return made


@pytest.fixture
def rpm():
    return the_file("*.x86_64.rpm")


@pytest.fixture
def archive():
    return the_file("paddock-*-x86_64-linux.tar.gz")
