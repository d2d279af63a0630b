"""Readiness, as Kubernetes asks for it: a leader that is told to end says no while it hands over the lead."""

import threading
import urllib.error
import urllib.request

from support.ensemble import Ensemble
from support.server import free_port

# A hand-over may be over between two questions. Then another leader is asked.
LEADERS = 5


def ready(port):
    """The status of the answer, or "gone"."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return "gone"


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
    ensemble = Ensemble(tmp_path)
    ports = {member: free_port() for member in ensemble.members}
    for member, port in ports.items():
        with member.config_file.open("a") as config:
            config.write(f"admin.enableServer=true\nadmin.serverAddress=127.0.0.1\nadmin.serverPort={port}\n")
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
