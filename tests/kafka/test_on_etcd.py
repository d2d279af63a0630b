"""Kafka keeps its cluster in an etcd, by way of two front ends, and goes on when the one that it uses is killed."""

import contextlib
import json

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from broker import Broker
from support.etcd import front_ends
from support.waiting import eventually
from traffic import Consumer, Producer

PATIENCE_S = 100
# Records that have to be acknowledged and read before and after the loss.
RECORDS = 100


@pytest.mark.timeout(300)
def test_brokers_go_on_when_a_front_end_is_killed(tmp_path):
    with contextlib.ExitStack() as running:
        _, first, second = running.enter_context(front_ends(tmp_path, 2))
        hosts = f"{first.hosts},{second.hosts}"
        client = KazooClient(second.hosts, timeout=18)
        client.start()
        running.callback(client.close)
        running.callback(client.stop)
        brokers = [running.enter_context(Broker(tmp_path, number, hosts)) for number in (1, 2)]
        for broker in brokers:
            running.callback(lambda broker=broker: print(broker.log_tail()))

        def registrations():
            """Which session holds each broker's registration, and where it listens."""
            if client.exists("/kafka/brokers/ids") is None:
                return {}
            found = {}
            for name in client.get_children("/kafka/brokers/ids"):
                data, stat = client.get(f"/kafka/brokers/ids/{name}")
                found[name] = (stat.ephemeralOwner, json.loads(data)["endpoints"])
            return found

        eventually(lambda: sorted(registrations()), ["1", "2"], PATIENCE_S)
        eventually(lambda: all(broker.is_serving() for broker in brokers), True, PATIENCE_S)
        before = registrations()
        addresses = [broker.address for broker in brokers]
        admin = KafkaAdminClient(bootstrap_servers=addresses)
        running.callback(admin.close)

        def make_and_fill(topic, partitions):
            """A topic with records, as many acknowledged as read."""
            admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=2)])
            producer, consumer = Producer(addresses, topic), Consumer(addresses, topic)
            producer.start()
            consumer.start()
            eventually(lambda: len(producer.acknowledged) >= RECORDS, True, PATIENCE_S)
            producer.stop()
            sent = producer.acknowledged
            eventually(lambda: len(consumer.seen) >= len(sent), True, PATIENCE_S)
            consumer.stop()
            assert sorted(consumer.seen) == sent, "every record once"
            return len(sent)

        records = make_and_fill("before", 3)
        first.kill()
        # The controller is told of a topic by a watch that it sets again at the other front end.
        later = make_and_fill("after", 3)
        assert registrations() == before, "the sessions of both brokers have gone on"
        print(f"{records} records of a topic made before, {later} of one made after")
