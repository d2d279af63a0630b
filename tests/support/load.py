"""Sessions of kazoo that write without a pause worth the name, and tell of each write. tests/src/load.rs reads it.

    python -m support.load ROOT HOSTS...

One session for each HOSTS, a connection string. Each creates a znode of its own below ROOT and counts in it: write N sets its
data to N, one write at a time. Below that it has an ephemeral znode, `here`. The lines on standard output:

    session NUMBER ID               the session is there
    ready                           all of them are
    write NUMBER START END VERSION  a write went well; times are of the monotonic clock, in nanoseconds
    failed NUMBER START END ERROR   a write did not
    state NUMBER STATE              the connection or the session changed after that
    closed NUMBER ID DATA           the session in the end, and what its znode holds

It ends when its standard input does.
"""

import sys
import threading
import time

from kazoo.client import KazooClient

from support.sessions import live, say

# Enough to leave the machine's cores to the servers, and little beside the gaps that are measured.
PAUSE_S = 0.004
SESSION_TIMEOUT_S = 20


class Session:
    def __init__(self, number, root, hosts):
        self._number = number
        self._path = f"{root}/{number}"
        # In the order given, so that the sessions are spread over the members.
        self._client = KazooClient(hosts, timeout=SESSION_TIMEOUT_S, randomize_hosts=False)
        self._client.start()
        self._client.create(self._path, b"0", makepath=True)
        self._client.create(f"{self._path}/here", ephemeral=True)
        say("session", number, self._id())
        self._client.add_listener(self._tell_state)
        self._thread = threading.Thread(target=self._write)
        self._stopping = threading.Event()

    def start(self):
        self._thread.start()

    def stop(self):
        self._stopping.set()

    def close(self):
        self._thread.join()
        data, _ = self._client.retry(self._client.get, self._path)
        say("closed", self._number, self._id(), data.decode())
        self._client.remove_listener(self._tell_state)
        self._client.stop()
        self._client.close()

    def _tell_state(self, state):
        say("state", self._number, state)

    def _id(self):
        return f"{self._client.client_id[0] & (1 << 64) - 1:#x}"

    def _write(self):
        count = 0
        while not self._stopping.wait(PAUSE_S):
            count += 1
            start = time.monotonic_ns()
            try:
                stat = self._client.set(self._path, b"%d" % count)
                say("write", self._number, start, time.monotonic_ns(), stat.version)
            except Exception as error:
                say("failed", self._number, start, time.monotonic_ns(), type(error).__name__)


def main(root, *all_hosts):
    live(lambda: [Session(number, root, hosts) for number, hosts in enumerate(all_hosts)])


if __name__ == "__main__":
    main(*sys.argv[1:])
