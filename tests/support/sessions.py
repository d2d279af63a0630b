"""What programs of many sessions share: lines on standard output, and a life that ends when standard input does."""

import logging
import sys


def say(*words):
    # One call for a line: threads share the stream.
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def live(make_sessions):
    # What becomes of connections is told by the sessions.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    sessions = make_sessions()
    say("ready")
    for session in sessions:
        session.start()
    sys.stdin.read()
    for session in sessions:
        session.stop()
    for session in sessions:
        session.close()
