"""Sessions of kazoo that ask things of a few znodes and write down what they were told. tests/src/torture/clients.rs reads it.

    python -m support.recorder SEED FIRST KEYS LOCK HOSTS...

One session for each HOSTS, a connection string; they are clients FIRST, FIRST + 1 and so on, and SEED decides what they ask. KEYS are
the znodes, with commas between; multis are about the first and the second of them, or the third and the fourth.
One that begins with "lock@" takes turns at LOCK instead (contender.py). The lines on standard output:

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
    def __init__(self, number, seed, keys, hosts):
        self._number = number
        self._keys = keys
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
            kind, perform, request = self._choose()
            line = {"client": self._number, **request, "start": time.monotonic_ns()}
            try:
                answer = perform(request)
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
                say("complaint", self._number, f"{kind}, {request}: {error!r}")
                continue
            if answer is not None:
                answer["end"] = time.monotonic_ns()
                self._remember_all(request, answer)
            say(json.dumps({**line, "answer": answer}))

    def _choose(self):
        self._values += 1
        place = self._chance.randrange(len(self._keys))
        key = self._keys[place]
        value = {"value": self._values}
        known = self._versions.get(key)
        expected = {"expected": known if self._chance.random() < 0.7 else None}
        kind = self._chance.choices(
            ["create", "set", "checked set", "replace", "delete", "read", "multi"],
            weights=[2, 3, 1, 1, 1, 5, 4],
        )[0]
        match kind:
            case "create":
                return kind, self._create, {"key": key, "op": "create", **value}
            case "checked set" if known is not None:
                return kind, self._checked_set, {"key": key, "op": "set", **value, "expected": known}
            case "set" | "checked set":
                return kind, self._set, {"key": key, "op": "set", **value, **expected}
            case "replace":
                return kind, self._replace, {"key": key, "op": "replace", **value, **expected}
            case "delete":
                return kind, self._delete, {"key": key, "op": "delete", **expected}
            case "multi":
                # The znode beside it: 0 and 1, or 2 and 3.
                return kind, self._multi, self._choose_multi(key, self._keys[place ^ 1])
        return kind, self._read, {"key": key, "op": "read"}

    def _choose_multi(self, *keys):
        """A multi about two znodes. Most expect no version: others have mostly changed one of the two."""
        ops = self._chance.choices(
            [("set", "set"), ("set", "check"), ("check", "check"), ("delete", "set"), ("create", "set"), ("replace", "set")],
            weights=[5, 1, 2, 1, 1, 1],
        )[0]
        parts = []
        for key, op in zip(keys, ops):
            part = {"key": key, "op": op}
            if op in ("create", "set", "replace"):
                part["value"] = self._values
            if op != "create" and self._chance.random() < (0.8 if op == "check" else 0.2):
                part["expected"] = self._versions.get(key)
            parts.append(part)
        return {"parts": parts}

    def _remember_all(self, request, answer):
        if "parts" not in request:
            self._remember(request, answer)
        elif answer["code"] != "ok":
            self._remember(request["parts"][answer["refused"]], answer)
        else:
            for part, told in zip(request["parts"], answer["parts"]):
                self._remember(part, {"code": "ok", **told})

    def _remember(self, request, answer):
        if answer["code"] != "ok" or request["op"] == "delete":
            version = None
        elif request["op"] == "check":
            version = request.get("expected")
        else:
            version = answer.get("version", 0)
        self._versions[request["key"]] = version

    def _create(self, request):
        self._client.create_async(request["key"], text(request)).get(timeout=PATIENCE_S)
        return {"code": "ok"}

    def _set(self, request):
        stat = self._client.set_async(request["key"], text(request), version(request)).get(timeout=PATIENCE_S)
        return {"code": "ok", "version": stat.version}

    def _checked_set(self, request):
        return self._multi_of_one(request)

    def _replace(self, request):
        return self._multi_of_one(request)

    def _multi_of_one(self, request):
        answer = self._multi({"parts": [request]})
        return {"code": answer["code"], **answer.get("parts", [{}])[0]}

    def _multi(self, request):
        """Parts of one transaction: all of them are carried out, or none."""
        transaction = self._client.transaction()
        # The part to which each operation belongs.
        owners = []
        for place, part in enumerate(request["parts"]):
            owners += [place] * add(transaction, part)
        results = transaction.commit_async().get(timeout=PATIENCE_S)
        # The other results only point to the one that says why it was refused.
        for place, result in zip(owners, results):
            if isinstance(result, tuple(CODES)):
                return {"code": CODES[type(result)], "refused": place}
        told = [{} for _ in request["parts"]]
        for place, result in zip(owners, results, strict=True):
            if isinstance(result, Exception):
                raise result
            if hasattr(result, "version"):
                told[place] = {"version": result.version}
        return {"code": "ok", "parts": told}

    def _delete(self, request):
        self._client.delete_async(request["key"], version(request)).get(timeout=PATIENCE_S)
        return {"code": "ok"}

    def _read(self, request):
        connections = self._connections
        synced = self._client.sync_async(request["key"])
        data = self._client.get_async(request["key"])
        synced.get(timeout=PATIENCE_S)
        try:
            data, stat = data.get(timeout=PATIENCE_S)
        finally:
            if self._connections != connections:
                raise Unsynced
        return {"code": "ok", "value": int(data), "version": stat.version}


def add(transaction, part):
    """Adds the operations of a part; how many it has."""
    key, expected = part["key"], version(part)
    match part["op"]:
        case "check":
            transaction.check(key, expected)
            return 1
        case "create":
            transaction.create(key, text(part))
            return 1
        case "delete":
            transaction.delete(key, expected)
            return 1
        case "set":
            transaction.check(key, expected)
            transaction.set_data(key, text(part))
            return 2
        case "replace":
            transaction.delete(key, expected)
            transaction.create(key, text(part))
            return 2


def text(request):
    return (b"%d" % request["value"]).ljust(DATA_BYTES)


def version(request):
    expected = request.get("expected")
    return -1 if expected is None else expected


def main(seed, first, keys, lock, *all_hosts):
    def session(number, hosts):
        if hosts.startswith("lock@"):
            return Contender(number, lock, hosts.removeprefix("lock@"))
        return Session(number, seed, keys.split(","), hosts)

    live(lambda: [session(int(first) + place, hosts) for place, hosts in enumerate(all_hosts)])


if __name__ == "__main__":
    main(*sys.argv[1:])
