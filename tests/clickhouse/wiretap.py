"""A proxy in front of the coordination server that remembers what clients greet with."""

import contextlib
import socket
import threading

GREETING_BYTES = 8


class Wiretap:
    """Listens on `port` while its context lasts; `greetings` holds the version of each connection's greeting."""

    def __init__(self, server):
        self._server = (server.host, server.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.greetings = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Wakes the thread that accepts; closing alone would leave it waiting.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            threading.Thread(target=self._pass_on, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(server, client, False), daemon=True).start()

    def _pass_on(self, source, target, is_client):
        greeting = b""
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                if is_client and len(greeting) < GREETING_BYTES:
                    greeting += chunk[: GREETING_BYTES - len(greeting)]
                    if len(greeting) == GREETING_BYTES:
                        self.greetings.append(int.from_bytes(greeting[4:], signed=True))
                target.sendall(chunk)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
