package paddock;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

/** Clients of a server under test, and watchers that remember what they were told. */
final class Client {
    private Client() {}

    /** A connected client. */
    static ZooKeeper of(String hosts, Duration timeout) throws Exception {
        var connected = new CountDownLatch(1);
        var client = new ZooKeeper(hosts, (int) timeout.toMillis(), event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        if (!connected.await(20, TimeUnit.SECONDS)) {
            client.close();
            throw new AssertionError("no connection to " + hosts);
        }
        return client;
    }

    static ZooKeeper of(String hosts) throws Exception {
        return of(hosts, Duration.ofSeconds(10));
    }

    /** When this returns, all watch events that the server sent before have been delivered. */
    static void settle(ZooKeeper client) throws Exception {
        // Answers of asynchronous calls and watch events go through one queue of the client.
        var done = new CountDownLatch(1);
        if (Server.GROUPS > 1) {
            // The changes of other sessions, which may be in other groups than the last ones that this session has seen.
            client.sync("/", (code, path, context) -> {}, null);
        }
        client.exists("/", false, (AsyncCallback.StatCallback) (code, path, context, stat) -> done.countDown(), null);
        if (!done.await(20, TimeUnit.SECONDS)) {
            throw new AssertionError("the client's event queue is stuck");
        }
    }

    /** Keeps events about znodes as "Type path", and leaves out those about the connection. */
    static final class Events implements Watcher {
        private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != EventType.None) {
                events.add(event.getType() + " " + event.getPath());
            }
        }

        /** What came since the last call. */
        List<String> drain() {
            var drained = new ArrayList<String>();
            events.drainTo(drained);
            return drained;
        }

        String next() throws InterruptedException {
            String event = events.poll(20, TimeUnit.SECONDS);
            if (event == null) {
                throw new AssertionError("no event came");
            }
            return event;
        }
    }
}
