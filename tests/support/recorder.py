"""Sessions of kazoo that ask things of a few znodes and write down what they were told. tests/src/torture/clients.rs reads it.

    python -m support.recorder SEED FIRST HOSTS...

One session for each HOSTS, a connection string; they are clients FIRST, FIRST + 1 and so on, and SEED decides what they ask.
One that begins with "lock@" takes turns at a lock instead (contender.py). The lines on standard output:

    ready                   all sessions are there
    {...}                   a request, as tests/porcupine reads it; without an answer if nobody knows what came of it
    refused CLIENT ERROR    a request that was refused by a member that cannot write: it was not carried out
    complaint CLIENT ERROR  an answer that no correct server gives

It ends when its standard input does. The library sends a request once at most: a lost connection is told, never hidden by
another try.
"""

import json
import random
import sys
import threading
import time

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from support.contender import Contender
from support.sessions import live, say

KEYS = 4
# Of a session, after each request: the machine has few cores.
PAUSE_S = 0.008
# Short, so that a session soon looks for another member when its own is silent.
SESSION_TIMEOUT_S = 4
# Data are numbers with blanks behind them, so that the log grows: disks fill, files of the log come and go.
DATA_BYTES = 1000
# A request that takes longer may still be carried out.
PATIENCE_S = 20

# Refusals that say how the znode is.
CODES = {
    exceptions.NoNodeError: "NoNode",
    exceptions.NodeExistsError: "NodeExists",
    exceptions.BadVersionError: "BadVersion",
}
UNKNOWN = (
    exceptions.ConnectionLoss,
    exceptions.ConnectionClosedError,
    exceptions.SessionExpiredError,
    # The session's new connection was faster than what was on its way from the former one.
    exceptions.SessionMovedError,
    KazooTimeoutError,
)


class Unsynced(Exception):
    """A read whose connection is not that of its sync: another kind of read."""


class Session:
    def __init__(self, number, seed, hosts):
        self._number = number
        self._chance = random.Random(f"{seed}-{number}")
        self._values = number * 1_000_000
        # What the session knows of each znode, so that its requests often fit.
        self._versions = {}
        self._connections = 0
        # In the order given, so that the sessions are spread over the members. A member that is away is tried again soon.
        self._client = KazooClient(
            hosts,
            timeout=SESSION_TIMEOUT_S,
            randomize_hosts=False,
            connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 1},
        )
        # Called before anything comes over another connection.
        self._client.add_listener(self._count_connection)
        self._client.start(timeout=60)
        self._thread = threading.Thread(target=self._work)
        self._stopping = threading.Event()

    def start(self):
        self._thread.start()

    def stop(self):
        self._stopping.set()

    def close(self):
        self._thread.join()
        self._client.stop()
        self._client.close()

    def _count_connection(self, _state):
        self._connections += 1

    def _work(self):
        while not self._stopping.wait(PAUSE_S):
            key = f"/register-{self._chance.randrange(KEYS)}"
            kind, perform, request = self._choose(key)
            line = {"client": self._number, "key": key, **request, "start": time.monotonic_ns()}
            try:
                answer = perform(key, request)
            except tuple(CODES) as refusal:
                answer = {"code": CODES[type(refusal)]}
            except exceptions.NotReadOnlyCallError as error:
                say("refused", self._number, type(error).__name__)
                continue
            except UNKNOWN:
                answer = None
            except Unsynced:
                continue
            except Exception as error:
                say("complaint", self._number, f"{kind} of {key}: {error!r}")
                continue
            if answer is not None:
                answer["end"] = time.monotonic_ns()
                self._remember(key, request, answer)
            say(json.dumps({**line, "answer": answer}))

    def _choose(self, key):
        self._values += 1
        value = {"value": self._values}
        known = self._versions.get(key)
        expected = {"expected": known if self._chance.random() < 0.7 else None}
        kind = self._chance.choices(
            ["create", "set", "checked set", "replace", "delete", "read"],
            weights=[2, 3, 1, 1, 1, 5],
        )[0]
        match kind:
            case "create":
                return kind, self._create, {"op": "create", **value}
            case "checked set" if known is not None:
                return kind, self._checked_set, {"op": "set", **value, "expected": known}
            case "set" | "checked set":
                return kind, self._set, {"op": "set", **value, **expected}
            case "replace":
                return kind, self._replace, {"op": "replace", **value, **expected}
            case "delete":
                return kind, self._delete, {"op": "delete", **expected}
        return kind, self._read, {"op": "read"}

    def _remember(self, key, request, answer):
        if answer["code"] != "ok" or request["op"] == "delete":
            version = None
        else:
            version = answer.get("version", 0)
        self._versions[key] = version

    def _create(self, key, request):
        self._client.create_async(key, text(request)).get(timeout=PATIENCE_S)
        return {"code": "ok"}

    def _set(self, key, request):
        stat = self._client.set_async(key, text(request), version(request)).get(timeout=PATIENCE_S)
        return {"code": "ok", "version": stat.version}

    def _checked_set(self, key, request):
        transaction = self._client.transaction()
        transaction.check(key, version(request))
        transaction.set_data(key, text(request))
        _, stat = commit(transaction)
        return {"code": "ok", "version": stat.version}

    def _replace(self, key, request):
        transaction = self._client.transaction()
        transaction.delete(key, version(request))
        transaction.create(key, text(request))
        commit(transaction)
        return {"code": "ok"}

    def _delete(self, key, request):
        self._client.delete_async(key, version(request)).get(timeout=PATIENCE_S)
        return {"code": "ok"}

    def _read(self, key, _request):
        connections = self._connections
        synced = self._client.sync_async(key)
        data = self._client.get_async(key)
        synced.get(timeout=PATIENCE_S)
        try:
            data, stat = data.get(timeout=PATIENCE_S)
        finally:
            if self._connections != connections:
                raise Unsynced
        return {"code": "ok", "value": int(data), "version": stat.version}


def commit(transaction):
    """Its results; raises why it was refused, which the other results only point to."""
    results = transaction.commit_async().get(timeout=PATIENCE_S)
    for result in results:
        if isinstance(result, tuple(CODES)):
            raise result
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def text(request):
    return (b"%d" % request["value"]).ljust(DATA_BYTES)


def version(request):
    expected = request["expected"]
    return -1 if expected is None else expected


def main(seed, first, *all_hosts):
    def session(number, hosts):
        if hosts.startswith("lock@"):
            return Contender(number, hosts.removeprefix("lock@"))
        return Session(number, seed, hosts)

    live(lambda: [session(int(first) + place, hosts) for place, hosts in enumerate(all_hosts)])


if __name__ == "__main__":
    main(*sys.argv[1:])
