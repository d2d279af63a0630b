"""Readiness, as Kubernetes asks for it: a leader that is told to end says no while it hands over the lead, a member without a
quorum for as long as there is none."""

import json
import threading
import urllib.error
import urllib.request

from support.ensemble import Ensemble
from support.server import free_port

# A hand-over may be over between two questions. Then another leader is asked.
LEADERS = 5


def ready(port):
    """The status of the answer, or "gone"."""
    return ask(port)[0]


def ask(port):
    """The status of the answer and its details; "gone" and none if there is no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return answer.status, json.load(answer)["details"]
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)["details"]
    except OSError:
        return "gone", {}


def with_http(tmp_path):
    """An ensemble, and the port of each member that tells of readiness."""
    ensemble = Ensemble(tmp_path)
    ports = {member: free_port() for member in ensemble.members}
    for member, port in ports.items():
        with member.config_file.open("a") as config:
            config.write(f"admin.enableServer=true\nadmin.serverAddress=127.0.0.1\nadmin.serverPort={port}\n")
    return ensemble, ports


class Probe(threading.Thread):
    """Asks all the time until the server is gone; `answers` has each that differs from the one before."""

    def __init__(self, port):
        super().__init__()
        self.answers = []
        self.is_ready = threading.Event()
        self._port = port

    def run(self):
        while self.answers[-1:] != ["gone"]:
            answer = ready(self._port)
            if answer == 200:
                self.is_ready.set()
            if self.answers[-1:] != [answer]:
                self.answers.append(answer)


def test_a_leader_that_hands_over_is_not_ready(tmp_path):
    ensemble, ports = with_http(tmp_path)
    with ensemble:
        for _ in range(LEADERS):
            leader = ensemble.leader()
            probe = Probe(ports[leader])
            probe.start()
            assert probe.is_ready.wait(10)
            leader.stop()
            probe.join(10)
            # A new leader may need a moment to be ready.
            answers = probe.answers[probe.answers.index(200) :]
            assert answers in [[200, 503, "gone"], [200, "gone"]]
            if 503 in answers:
                return
            ensemble.start()
    raise AssertionError("no leader said that it is not ready")


def test_a_member_without_a_quorum_is_not_ready(tmp_path):
    ensemble, ports = with_http(tmp_path)
    with ensemble:
        last, *others = ensemble.members
        for member in others:
            member.kill()
        # It looks for a leader, and serves reads after a while: it is ready for neither.
        roles = []
        while "read-only" not in roles:
            status, details = ask(ports[last])
            if details["role"] not in ("leader", "follower"):
                assert status == 503
                assert details["reason"]
            if roles[-1:] != [details["role"]]:
                roles.append(details["role"])
        assert details["reason"].startswith("no quorum")
        assert last.word("isro") == "ro"
        for member in others:
            member.start()
        while ready(ports[last]) != 200:
            pass
        assert last.word("isro") == "rw"
