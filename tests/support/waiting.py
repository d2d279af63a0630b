"""Waiting without sleeping blindly: ask again until it is so, or fail with what was seen last."""

import time


def eventually(observe, expected=True, timeout_s=10):
    """Calls `observe()` until it returns `expected`; the last answer is in the failure."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = observe()
        if seen == expected:
            return
        assert time.monotonic() < deadline, f"after {timeout_s} s: {seen!r} instead of {expected!r}"
        time.sleep(0.02)
