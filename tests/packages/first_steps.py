"""What kazoo finds at a server: `first_steps.py HOSTS PATH`. Makes the znode if it is missing, counts in it, and prints the count."""

import sys

from kazoo.client import KazooClient

client = KazooClient(sys.argv[1], timeout=10)
client.start(timeout=20)
client.ensure_path(sys.argv[2])
data, stat = client.get(sys.argv[2])
client.set(sys.argv[2], str(int(data or b"0") + 1).encode(), version=stat.version)
print(client.get(sys.argv[2])[0].decode())
client.stop()
