"""Commands in pages: the blocks of `sh` and `console`, cut into commands with the output that the page shows.

A fence's info string may say more behind the language:

    ```console keeps-running     its commands go on behind those that follow, as in a terminal of its own
    ```sh not-run="needs root"   nothing of it is run; the reason is printed

In `console` a prompt may name the machine, `zoo2$ `: there /etc/paddock and /var/lib/paddock are others.
A line `<!-- commands are not run: REASON -->` says the same of a whole page, from there on.
"""

import re
import subprocess
from dataclasses import dataclass, replace

FENCE = re.compile(r"^(\s*)```(\w*)[ ,]?(.*)$")
NOT_RUN = re.compile(r'not-run="([^"]+)"')
PROMPT = re.compile(r"^(zoo\d)?\$ ")
PAGE_NOT_RUN = re.compile(r"<!-- commands are not run: (.+) -->")


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str
    # Lines that the page shows as its output, with `…` for anything; none if it shows nothing.
    output: tuple = ()
    keeps_running: bool = False
    # Machine on which it is run; none is the reader's own.
    machine: str = ""
    # Reason for which it is not run.
    not_run: str = ""

    @property
    def name(self):
        return f"{self.page}:{self.line}"


def commands_of(page, text):
    """All commands of a page, in their order."""
    commands, block, page_reason = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if block is None:
            if reason := PAGE_NOT_RUN.search(line):
                page_reason = reason[1]
            if fence:
                block = (fence, [])
        elif fence and not fence[2]:
            commands += commands_of_block(page, *block, page_reason)
            block = None
        else:
            block[1].append((number, line.removeprefix(block[0][1])))
    assert block is None, f"{page}: a block does not end"
    return commands


def commands_of_block(page, fence, lines, page_reason):
    language, info = fence[2], fence[3]
    if language not in ("sh", "console"):
        return []
    reason = NOT_RUN.search(info)
    rest = NOT_RUN.sub("", info).strip()
    assert rest in ("", "keeps-running"), f"{page}:{lines[0][0] - 1}: {rest!r} is not known"
    split = split_console(lines) if language == "console" else split_script(lines)
    about = Command(
        page=page, line=0, text="", keeps_running=bool(rest), not_run=reason[1] if reason else page_reason
    )
    return [
        replace(about, line=line, text=text, output=tuple(output), machine=machine)
        for line, machine, text, output in split
    ]


def split_console(lines):
    """Commands stand behind `$ `, their further lines behind `> `; everything else is output."""
    commands = []
    for number, line in lines:
        if prompt := PROMPT.match(line):
            commands.append((number, prompt[1] or "", line[prompt.end():], []))
        elif (line == ">" or line.startswith("> ")) and not commands[-1][3]:
            at, machine, text, output = commands[-1]
            commands[-1] = (at, machine, f"{text}\n{line[2:]}", output)
        else:
            commands[-1][3].append(line)
    return commands


def split_script(lines):
    """Each command takes as many lines as the shell needs to understand it."""
    commands, open_lines, begin = [], [], 0
    for number, line in lines:
        if not open_lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begin = begin if open_lines else number
        open_lines.append(line)
        if is_whole("\n".join(open_lines)):
            commands.append((begin, "", "\n".join(open_lines), []))
            open_lines = []
    assert not open_lines, f"the shell does not understand {open_lines}"
    return commands


def is_whole(text):
    check = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
    return not text.endswith("\\") and check.returncode == 0 and not check.stderr


def matches(expected, found):
    """True if the output is what the page shows, where `…` stands for anything, over several lines if it is alone on one."""
    # A line that is only `…` may stand for no line.
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + r"\s*\n"
        for line in expected
    )
    return re.fullmatch(pattern, found if found.endswith("\n") or not found else found + "\n") is not None
