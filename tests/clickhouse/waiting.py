"""Waiting for what another process will do: by looking again until a deadline, never by a fixed pause."""

import time

DEADLINE_S = 30
PAUSE_S = 0.02


def wait_for(read, expected, within_s=DEADLINE_S, pause_s=PAUSE_S, while_true=None):
    """Looks with `read()` until it returns `expected`. A failed look counts as one that saw something else.

    `while_true` ends the wait early when there is nothing left to wait for.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            seen = read()
        except Exception as error:
            seen = error
        if seen == expected:
            return
        assert time.monotonic() < deadline, f"waited {within_s} s for {expected!r}, last saw {seen!r}"
        assert while_true is None or while_true(), f"no use to wait for {expected!r}, last saw {seen!r}"
        time.sleep(pause_s)
