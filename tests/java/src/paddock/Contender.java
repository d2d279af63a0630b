package paddock;

import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * A session of ZooKeeper's client that takes turns at a lock: what {@code tests/support/contender.py} does with kazoo, with the same
 * line on standard output.
 */
final class Contender extends Worker {
    private static final Duration SESSION_TIMEOUT = Duration.ofSeconds(2);
    /** Whoever waits looks this often, should it have missed that the lock is free. */
    private static final Duration LOOK = Duration.ofMillis(200);
    private static final Duration KEPT = Duration.ofMillis(300);
    /** Longer than a session lasts that nobody hears. */
    private static final Duration KEPT_LONG = Duration.ofSeconds(8);

    private final int number;
    private final String lock;
    private final String host;
    private final Semaphore told = new Semaphore(0);
    private volatile long toldNs;
    private int turns;
    private ZooKeeper client;

    Contender(int number, String lock, String host) throws Exception {
        this.number = number;
        this.lock = lock;
        this.host = host;
        connect();
    }

    private void connect() throws Exception {
        client = new ZooKeeper(host, (int) SESSION_TIMEOUT.toMillis(), this::hear);
    }

    private void hear(WatchedEvent event) {
        if (event.getType() == EventType.None && event.getState() != KeeperState.SyncConnected) {
            toldNs = System.nanoTime();
            told.release();
        }
    }

    @Override
    void work() {
        try {
            while (goesOn(Duration.ofMillis(1))) {
                compete();
            }
        } catch (Exception error) {
            say("complaint %d %s", number, error);
        }
    }

    private void compete() throws Exception {
        told.drainPermits();
        try {
            client.create(lock, null, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            hold(System.nanoTime());
        } catch (KeeperException.NodeExistsException exists) {
            awaitChange();
        } catch (KeeperException.SessionExpiredException expired) {
            client.close();
            connect();
        } catch (KeeperException lost) {
            goesOn(LOOK);
        }
    }

    /** Waits until the lock may be free, or holds it if a create that was not answered has been carried out. */
    private void awaitChange() throws Exception {
        var changed = new CountDownLatch(1);
        try {
            Stat stat = client.exists(lock, event -> changed.countDown());
            if (stat != null && stat.getEphemeralOwner() == client.getSessionId()) {
                hold(System.nanoTime());
                return;
            }
        } catch (KeeperException lost) {
            // It asks again.
        }
        changed.await(LOOK.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void hold(long since) throws Exception {
        turns++;
        Duration keep = turns % 3 == number % 3 ? KEPT_LONG : KEPT;
        long end = since + keep.toNanos();
        boolean isTold = false;
        while (!isTold && System.nanoTime() < end && goesOn(Duration.ZERO)) {
            // Of its own connection, or of one before: then it finds that the lock is its own.
            isTold = told.tryAcquire(50, TimeUnit.MILLISECONDS);
        }
        say("held %d %d %d", number, since, toldNs >= since ? toldNs : System.nanoTime());
        if (!isTold) {
            try {
                client.delete(lock, -1);
            } catch (KeeperException lost) {
                // Its session's end gives the lock back.
            }
        }
    }

    @Override
    void close() throws Exception {
        client.close();
    }
}
