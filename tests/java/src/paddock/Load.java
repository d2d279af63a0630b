package paddock;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.time.Duration;
import java.util.ArrayList;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/**
 * Sessions of ZooKeeper's client that write, and tell of each write: what {@code tests/support/load.py} does with kazoo,
 * with the same arguments and the same lines on standard output.
 */
public final class Load extends Worker {
    private static final Duration PAUSE = Duration.ofMillis(4);
    private static final Duration SESSION_TIMEOUT = Duration.ofSeconds(20);

    private final int number;
    private final String path;
    private final ZooKeeper client;

    private Load(int number, String root, String hosts) throws Exception {
        this.number = number;
        path = root + "/" + number;
        client = Client.of(hosts, SESSION_TIMEOUT);
        try {
            client.create(root, new byte[0], OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException another) {
            // One of the sessions is the first.
        }
        client.create(path, text(0), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        client.create(path + "/here", new byte[0], OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        say("session %d %#x", number, client.getSessionId());
        client.register(event -> say("state %d %s", number, event.getState()));
    }

    @Override
    void work() {
        try {
            for (int count = 1; goesOn(PAUSE); count++) {
                long start = System.nanoTime();
                try {
                    int version = client.setData(path, text(count), -1).getVersion();
                    say("write %d %d %d %d", number, start, System.nanoTime(), version);
                } catch (KeeperException error) {
                    say("failed %d %d %d %s", number, start, System.nanoTime(), error.code());
                }
            }
        } catch (InterruptedException nobodyDoesThat) {
            throw new AssertionError(nobodyDoesThat);
        }
    }

    @Override
    void close() throws Exception {
        Eventually.holds("session " + number + " reads what it wrote", this::tellEnd);
        client.register(event -> {});
        client.close();
    }

    private boolean tellEnd() throws Exception {
        try {
            String data = new String(client.getData(path, false, null), US_ASCII);
            say("closed %d %#x %s", number, client.getSessionId(), data);
            return true;
        } catch (KeeperException.ConnectionLossException again) {
            return false;
        }
    }

    private static byte[] text(int count) {
        return Integer.toString(count).getBytes(US_ASCII);
    }

    public static void main(String... arguments) throws Exception {
        var sessions = new ArrayList<Load>();
        for (int number = 0; number + 1 < arguments.length; number++) {
            sessions.add(new Load(number, arguments[0], arguments[number + 1]));
        }
        live(sessions);
    }
}
