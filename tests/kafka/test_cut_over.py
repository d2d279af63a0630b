"""Kafka keeps its cluster while Paddock takes over from the Apache ZooKeeper that it began with."""

import contextlib
import json

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from broker import Broker
from support.cutover import CutOver
from support.waiting import eventually
from traffic import Consumer, Producer

PATIENCE_S = 100
# Records that have to be acknowledged and read before, during and after the move.
RECORDS = 100


@pytest.fixture
def move(tmp_path):
    with CutOver(tmp_path) as running:
        yield running


@pytest.fixture
def brokers(tmp_path, move):
    """Two brokers; every record is on both before it is acknowledged."""
    with contextlib.ExitStack() as running:
        brokers = [running.enter_context(Broker(tmp_path, number, move.hosts)) for number in (1, 2)]
        yield brokers
        for broker in brokers:
            print(broker.log_tail())
        print(move.log_tail())


@pytest.fixture
def client(move):
    """A client of both sides, as the brokers are."""
    client = KazooClient(move.hosts, timeout=18)
    client.start()
    yield client
    client.stop()
    client.close()


def registrations(client):
    """Which session holds each broker's registration, since which transaction, and where it listens."""
    if client.exists("/kafka/brokers/ids") is None:
        return {}
    found = {}
    for name in client.get_children("/kafka/brokers/ids"):
        data, stat = client.get(f"/kafka/brokers/ids/{name}")
        found[name] = (stat.ephemeralOwner, stat.czxid, json.loads(data)["endpoints"])
    return found


@pytest.mark.timeout(300)
def test_records_go_on_through_a_cut_over(move, brokers, client):
    eventually(lambda: sorted(registrations(client)), ["1", "2"], PATIENCE_S)
    eventually(lambda: all(broker.is_serving() for broker in brokers), True, PATIENCE_S)
    before = registrations(client)
    addresses = [broker.address for broker in brokers]
    admin = KafkaAdminClient(bootstrap_servers=addresses)
    admin.create_topics([NewTopic("records", num_partitions=3, replication_factor=2)])
    producer, consumer = Producer(addresses, "records"), Consumer(addresses, "records")
    producer.start()
    consumer.start()

    def go_on():
        """Waits for more records, acknowledged and read."""
        goal = len(producer.acknowledged) + RECORDS

        def have_gone_on():
            assert producer.error is None and consumer.error is None, (producer.error, consumer.error)
            return len(producer.acknowledged) >= goal and len(consumer.seen) >= goal

        eventually(have_gone_on, True, PATIENCE_S)

    go_on()
    move.follow()
    go_on()
    move.cut_over()
    go_on()
    assert registrations(client) == before, "the sessions of both brokers have gone on"

    # The controller is told of what is new by a watch that it had set at ZooKeeper.
    admin.create_topics([NewTopic("later", num_partitions=1, replication_factor=2)])
    later = Producer(addresses, "later")
    later.start()
    eventually(lambda: len(later.acknowledged) >= RECORDS, True, PATIENCE_S)
    later.stop()

    producer.stop()
    sent = producer.acknowledged
    eventually(lambda: len(consumer.seen) >= len(sent), True, PATIENCE_S)
    consumer.stop()
    assert sorted(consumer.seen) == sent, "every record once"
    admin.close()
    print(f"{len(sent)} records acknowledged and read, {len(later.acknowledged)} of a topic made later")
