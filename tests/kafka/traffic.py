"""A producer and a consumer that go on while something happens, and an account of both."""

import threading

from kafka import KafkaConsumer, KafkaProducer

GROUP = "readers"
# What happens may take a while; nobody gives up before.
PATIENCE_MS = 120_000
# Records on their way together.
AT_ONCE = 10


class Producer(threading.Thread):
    """Sends numbers, each acknowledged by all replicas before it counts."""

    def __init__(self, brokers, topic):
        super().__init__(name="producer", daemon=True)
        self.acknowledged = []
        self.error = None
        self._producer = KafkaProducer(
            bootstrap_servers=brokers, acks="all", enable_idempotence=True, delivery_timeout_ms=PATIENCE_MS
        )
        self._topic = topic
        self._stopping = threading.Event()

    def run(self):
        number = 0
        try:
            while not self._stopping.is_set():
                numbers = range(number, number + AT_ONCE)
                sent = [self._producer.send(self._topic, b"%d" % number) for number in numbers]
                for future in sent:
                    future.get(PATIENCE_MS / 1000)
                self.acknowledged += numbers
                number += AT_ONCE
        except Exception as error:
            self.error = error

    def stop(self):
        self._stopping.set()
        self.join()
        self._producer.close()
        assert self.error is None, f"the producer failed: {self.error!r}"


class Consumer(threading.Thread):
    """Reads all that is sent to a topic, as the only member of a group."""

    def __init__(self, brokers, topic):
        super().__init__(name="consumer", daemon=True)
        self.seen = []
        self.error = None
        self._consumer = KafkaConsumer(
            topic, bootstrap_servers=brokers, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=True
        )
        self._stopping = threading.Event()

    def run(self):
        try:
            while not self._stopping.is_set():
                for records in self._consumer.poll(timeout_ms=200).values():
                    self.seen += [int(record.value) for record in records]
        except Exception as error:
            self.error = error

    def stop(self):
        self._stopping.set()
        self.join()
        self._consumer.close()
        assert self.error is None, f"the consumer failed: {self.error!r}"
