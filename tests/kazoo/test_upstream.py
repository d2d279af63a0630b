"""The integration tests that come with kazoo itself, run against our server.

`NOT_OURS` names the few that ask for something else than one plain server.
"""

import importlib
import unittest

from support import kazoo_cluster

kazoo_cluster.install()

MODULES = [
    "barrier",
    "cache",
    "client",
    "connection",
    "counter",
    "election",
    "lease",
    "lock",
    "partitioner",
    "party",
    "queue",
    "watchers",
]

NOT_OURS = {
    "client.TestClient.test_create_large_value": "demands ZooKeeper's limit of 1 MiB; see test_values.py",
    "client.TestClient.test_update_host_list": "grows an ensemble to three members",
    "client.TestReconfig": "changes the members of an ensemble",
    "client.TestSSLClient": "asks for TLS",
    "connection.TestReadOnlyMode": "takes two of three members away",
}


def _adopt():
    """Puts kazoo's test cases into this module, where pytest looks for them."""
    for module_name in MODULES:
        module = importlib.import_module(f"kazoo.tests.test_{module_name}")
        for name, value in vars(module).items():
            is_case = isinstance(value, type) and issubclass(value, unittest.TestCase)
            if is_case and value.__module__ == module.__name__ and f"{module_name}.{name}" not in NOT_OURS:
                globals()[f"{module_name}_{name}"] = value


def _leave_out():
    for name in NOT_OURS:
        module_name, case, *method = name.split(".")
        case = getattr(importlib.import_module(f"kazoo.tests.test_{module_name}"), case)
        if method:
            delattr(case, method[0])


_adopt()
_leave_out()
