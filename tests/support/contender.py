"""Sessions of kazoo that take turns at a lock, an ephemeral znode that whoever creates it holds. A session believes that it holds the
lock from the answer to its create on, until it gives it back or is told that its connection is gone. It writes

    held CLIENT SINCE UNTIL    in nanoseconds of the monotonic clock
"""

import threading
import time

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from support.sessions import say

SESSION_TIMEOUT_S = 2
# Whoever waits looks this often, should it have missed that the lock is free.
LOOK_S = 0.2
KEPT_S = 0.3
# Longer than a session lasts that nobody hears.
KEPT_LONG_S = 8
PATIENCE_S = 30


class Contender:
    def __init__(self, number, lock, host):
        self._number = number
        self._lock = lock
        self._turns = 0
        self._told = threading.Event()
        self._told_ns = 0
        self._stopping = threading.Event()
        self._client = KazooClient(
            host,
            timeout=SESSION_TIMEOUT_S,
            connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 1},
        )
        self._client.add_listener(self._hear)
        self._client.start(timeout=60)
        self._thread = threading.Thread(target=self._work)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stopping.set()

    def close(self):
        self._thread.join()
        self._client.stop()
        self._client.close()

    def _hear(self, state):
        if state != KazooState.CONNECTED:
            self._told_ns = time.monotonic_ns()
            self._told.set()

    def _work(self):
        while not self._stopping.is_set():
            self._told.clear()
            try:
                self._client.create_async(self._lock, ephemeral=True).get(timeout=PATIENCE_S)
                self._hold(time.monotonic_ns())
            except exceptions.NodeExistsError:
                self._wait()
            except (exceptions.KazooException, KazooTimeoutError):
                self._stopping.wait(LOOK_S)

    def _wait(self):
        """Waits until the lock may be free, or holds it if a create that was not answered has been carried out."""
        freed = threading.Event()
        try:
            stat = self._client.exists_async(self._lock, watch=lambda _event: freed.set()).get(timeout=PATIENCE_S)
            session = self._client.client_id
            if stat is not None and session is not None and stat.ephemeralOwner == session[0]:
                self._hold(time.monotonic_ns())
                return
        except (exceptions.KazooException, KazooTimeoutError):
            pass
        freed.wait(LOOK_S)

    def _hold(self, since):
        self._turns += 1
        keep = KEPT_LONG_S if self._turns % 3 == self._number % 3 else KEPT_S
        # Its end is told of, or that of a connection before: then it finds that the lock is its own.
        end = time.monotonic() + keep
        while not self._stopping.is_set() and not self._told.wait(min(0.05, max(0, end - time.monotonic()))):
            if time.monotonic() >= end:
                break
        until = self._told_ns if self._told_ns >= since else time.monotonic_ns()
        say("held", self._number, since, until)
        if not self._told.is_set():
            try:
                self._client.delete_async(self._lock).get(timeout=PATIENCE_S)
            except (exceptions.KazooException, KazooTimeoutError):
                pass
