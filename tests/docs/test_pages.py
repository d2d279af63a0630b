"""Every command on every page runs, and says what the page shows."""

import os
import shlex
import subprocess

import pytest

from conftest import ROOT
from pages import commands_of, matches, split_script

# Pages that tell of this program to those who use it; decisions tell of what was tried once.
PAGES = [
    *[ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")],
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts),
]
COMMANDS = [
    command
    for page in PAGES
    if page.exists()
    for command in commands_of(str(page.relative_to(ROOT)), page.read_text())
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_command(command, request):
    if command.not_run:
        check_options(command)
        pytest.skip(command.not_run)
    sandbox = request.getfixturevalue("sandbox_of")(command.page)
    if sandbox.broken:
        pytest.fail(f"{sandbox.broken} went wrong before", pytrace=False)
    if trouble := sandbox.run(command):
        sandbox.broken = command.name
        pytest.fail(f"{command.text}\n{trouble}", pytrace=False)


def check_options(command):
    """Of a command that is not run, Paddock's options are looked at: asked for help behind them, it refuses those that it does not know."""
    words = shlex.split(command.text.replace("\\\n", " "), comments=True)
    if words[0] == "paddock" and not {"&&", "|", "&"} & set(words):
        # What stands behind `--` is not an option, and behind `>` not of the command.
        words = words[: min([words.index(end) for end in ("--", ">") if end in words], default=len(words))]
        asked = subprocess.run([os.environ["PADDOCK_BIN"], *words[1:], "--help"], capture_output=True, text=True)
        if asked.returncode:
            pytest.fail(f"{command.text}\n{asked.stderr}", pytrace=False)


def test_a_command_that_fails_is_noticed(sandbox_of):
    def trouble(text):
        [command] = commands_of("none", f"```console\n{text}\n```")
        return sandbox_of("none").run(command)

    assert not trouble("$ echo a b\na …")
    assert "ended 1" in trouble("$ false")
    assert "the page shows\nb\nand it said\na" in trouble("$ echo a\nb")
    assert "ended 127" in trouble("$ paddocc")


def test_blocks_are_cut_into_commands():
    text = "```console\n$ a \\\n> b\nout …\n$ c\n```\n  ```sh not-run=\"so\"\n  d\n  ```\n```\ne\n```"
    first, second, third = commands_of("p", text)
    assert (first.text, first.output, first.line) == ("a \\\nb", ("out …",), 2)
    assert (second.text, third.text, third.not_run) == ("c", "d", "so")


def test_a_command_of_a_script_takes_the_lines_that_it_needs():
    lines = list(enumerate(["# no", "cat <<END", "x", "END", "", "for n in 1; do", "  a", "done", "b \\", "c"], 1))
    assert [line for line, *_ in split_script(lines)] == [2, 6, 9]


def test_dots_stand_for_anything():
    assert matches(["a …", "…", "z"], "a b\nc\nd\nz\n")
    assert matches(["a", "…"], "a\n")
    assert not matches(["a"], "a\nb\n")
    assert not matches(["a …"], "b\n")
