"""The file alone, and the RPM."""

import os
import subprocess
import time
from pathlib import Path

from support.server import free_port
from test_debian import first_steps


def test_the_file_alone(bare, archive):
    begin = time.monotonic()
    bare.run("tar", "--extract", "--no-same-owner", "--strip-components=1", "--directory=/opt", "--file", bare.put(archive))
    port = free_port()
    server = bare.start("/opt/paddock", "server", "--listen", f"127.0.0.1:{port}", "--data-dir", "/data", stderr=subprocess.DEVNULL)
    assert first_steps(f"127.0.0.1:{port}") == "1"
    print(f"unpacked and kazoo's first writes after {time.monotonic() - begin:.1f} s")
    server.terminate()
    assert server.wait(timeout=20) == 0
    for name in ["LICENSE", "THIRD-PARTY.txt", "man/man1/paddock.1", "completions/zsh/_paddock"]:
        assert (bare.path / "opt" / name).stat().st_size > 100
    notices = (bare.path / "opt/THIRD-PARTY.txt").read_text()
    assert "\nrustls 0." in notices and "OpenSSL" in notices


def test_sums_are_signed(tmp_path):
    dist = Path(os.environ["DIST"])
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=dist, check=True)
    summed = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert summed == {file.name for file in dist.iterdir()} - {"SHA256SUMS", "SHA256SUMS.minisig"}
    verify = [os.environ["MINISIGN"], "-V", "-p", os.environ["MINISIGN_KEY"], "-x", dist / "SHA256SUMS.minisig", "-m"]
    subprocess.run([*verify, dist / "SHA256SUMS"], check=True, capture_output=True)
    changed = tmp_path / "SHA256SUMS"
    changed.write_text((dist / "SHA256SUMS").read_text().replace("a", "b"))
    assert subprocess.run([*verify, changed], check=False, capture_output=True).returncode != 0


def test_symbols_belong_to_the_program(archive, tmp_path):
    """Both files in one directory: a debugger finds lines of the sources for addresses of the program."""
    for file in [archive, archive.with_name(archive.name.replace("-linux.", "-linux-debug."))]:
        subprocess.run(["tar", "--extract", "--strip-components=1", "--file", file], cwd=tmp_path, check=True)
    names = subprocess.run(["nm", "paddock.debug"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (main,) = [line.split()[0] for line in names.splitlines() if line.endswith(" main")]
    assert subprocess.run(["nm", "paddock"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout == ""
    told = subprocess.run(["addr2line", "-f", "-e", "paddock", f"0x{main}"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[0] == "main", told.stdout


def test_the_rpm(tools, rpm):
    file = tools.put(rpm)
    # Names of packages are those of other systems; what the package does is tried.
    tools.run("rpm", "--install", "--nodeps", file)
    assert tools.run("stat", "-c", "%U %a", "/var/lib/paddock").strip() == "paddock 700"
    assert tools.run("rpm", "--verify", "--nodeps", "paddock") == ""
    port = free_port()
    (tools.path / "etc/paddock/paddock.toml").write_text(f'listen = "127.0.0.1:{port}"\n')
    server = tools.start(
        "paddock", "server", "--config", "/etc/paddock/paddock.toml", "--data-dir", "/var/lib/paddock", user="paddock", stderr=subprocess.DEVNULL
    )
    assert first_steps(f"127.0.0.1:{port}") == "1"
    tools.run("rpm", "--upgrade", "--nodeps", "--force", file)
    assert first_steps(f"127.0.0.1:{port}") == "2"
    assert (tools.path / "etc/paddock/paddock.toml").read_text() == f'listen = "127.0.0.1:{port}"\n'
    server.terminate()
    assert server.wait(timeout=20) == 0
    tools.run("rpm", "--erase", "paddock")
    assert not (tools.path / "usr/bin/paddock").exists() and (tools.path / "var/lib/paddock/log").is_dir()
