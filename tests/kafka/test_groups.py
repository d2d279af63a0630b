"""Kafka on eight Raft groups: a hundred topics whose znodes lie in all of them, made, read and deleted again."""

import contextlib

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from broker import Broker
from support.ensemble import Ensemble
from support.groups import Groups, admin_settings, settings
from support.waiting import eventually
from traffic import Consumer, Producer

GROUPS = 8
TOPICS = [f"topic-{number}" for number in range(100)]
SPLIT = "/kafka/brokers/topics"
# Topics made by one request.
AT_ONCE = 10
PATIENCE_S = 120
RECORDS = 50


@contextlib.contextmanager
def brokers(workdir, ensemble):
    """Two brokers that know all members."""
    hosts = ",".join(f"{host}:{port}" for host, port in ensemble.addresses)
    with contextlib.ExitStack() as running:
        started = [running.enter_context(Broker(workdir, number, hosts)) for number in (1, 2)]
        try:
            eventually(lambda: all(broker.is_serving() for broker in started), True, PATIENCE_S)
            yield started
        except BaseException:
            for broker in started:
                print(broker.log_tail())
            print(ensemble.log_tail())
            raise


@pytest.mark.timeout(600)
def test_a_hundred_topics_in_eight_groups(tmp_path):
    config = settings(GROUPS, [SPLIT])
    with Ensemble(tmp_path, config=config, own=admin_settings) as ensemble:
        groups = Groups(ensemble.members, tmp_path, GROUPS)
        groups.prepare()
        with brokers(tmp_path, ensemble) as running:
            addresses = [broker.address for broker in running]
            client = KazooClient(ensemble.members[0].hosts)
            client.start()
            admin = KafkaAdminClient(bootstrap_servers=addresses, request_timeout_ms=PATIENCE_S * 1000)
            create(admin, TOPICS[:50])
            # Those that are there move, and those that are to come lie in all groups from the beginning.
            groups.move(SPLIT, "--evenly", "--at-once", "512")
            assert groups.groups_of(SPLIT) == list(range(GROUPS))
            create(admin, TOPICS[50:])
            expected = sorted(TOPICS)
            eventually(lambda: sorted(t for t in client.get_children(SPLIT) if t in TOPICS), expected, PATIENCE_S)
            eventually(lambda: partitions_with_leaders(client), expected, PATIENCE_S)
            for topic in (TOPICS[0], TOPICS[99]):
                send_and_read(addresses, topic)
            # Reassigning leaders and deleting topics is the controller's work, by watches and multis over many znodes.
            ensemble.leader().restart()
            ensemble.leader()
            admin.delete_topics(TOPICS[:50], timeout_ms=PATIENCE_S * 1000)
            eventually(lambda: sorted(t for t in client.get_children(SPLIT) if t in TOPICS), sorted(TOPICS[50:]), PATIENCE_S)
            send_and_read(addresses, TOPICS[98])
            admin.close()
            client.stop()
            client.close()


def create(admin, topics):
    for first in range(0, len(topics), AT_ONCE):
        batch = [NewTopic(name, num_partitions=3, replication_factor=2) for name in topics[first : first + AT_ONCE]]
        admin.create_topics(batch, timeout_ms=PATIENCE_S * 1000)


def partitions_with_leaders(client):
    """Topics all of whose three partitions have a state, which names their leader."""
    found = []
    for topic in TOPICS:
        states = [f"{SPLIT}/{topic}/partitions/{number}/state" for number in range(3)]
        if all(client.exists(state) for state in states):
            found.append(topic)
    return sorted(found)


def send_and_read(addresses, topic):
    """Sends records to a topic, which are all read."""
    producer, consumer = Producer(addresses, topic), Consumer(addresses, topic)
    producer.start()
    consumer.start()
    eventually(lambda: (len(producer.acknowledged) >= RECORDS, producer.error), (True, None), PATIENCE_S)
    producer.stop()
    sent = len(producer.acknowledged)
    eventually(lambda: (min(len(consumer.seen), sent), consumer.error), (sent, None), PATIENCE_S)
    consumer.stop()
    assert sorted(consumer.seen) == producer.acknowledged
