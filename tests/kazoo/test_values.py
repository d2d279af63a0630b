"""Values of every size."""

import os

import pytest

KIB, MIB = 1 << 10, 1 << 20


def pattern(size):
    """Bytes that differ along the way, so that a piece out of place is noticed."""
    return b"".join(b"%08x" % number for number in range(size // 8 + 1))[:size]


@pytest.mark.parametrize("size", [0, 1, 4 * KIB, 64 * KIB + 1, 1000 * KIB])
def test_a_value_comes_back_as_it_went(client, size):
    value = pattern(size)
    client.create("/node", value)
    data, stat = client.get("/node")
    assert data == value
    assert stat.dataLength == size


def test_many_children_in_one_list(client):
    names = [f"child-with-a-rather-long-name-{number:06}" for number in range(5000)]
    for result in [client.create_async(f"/{name}") for name in names]:
        result.get(timeout=60)
    assert sorted(client.get_children("/")) == names


@pytest.mark.skipif(os.environ.get("TEST_SERVER") == "zookeeper", reason="ZooKeeper's limit is 1 MiB")
def test_five_mebibytes(own_server, connect):
    client = connect(own_server)
    value = pattern(5 * MIB)
    client.create("/large", value)
    client.set("/large", value[::-1])
    assert client.get("/large")[0] == value[::-1]

    own_server.kill()
    own_server.restart()
    assert connect(own_server).get("/large")[0] == value[::-1]
