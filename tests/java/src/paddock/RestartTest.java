package paddock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Clients of a server that dies and comes back. The client puts its watches back itself, by setWatches2. */
final class RestartTest {
    private static final byte[] NOTHING = {};

    private Server server;

    @BeforeEach
    void startServer() throws Exception {
        server = new Server();
    }

    @AfterEach
    void stopServer() throws Exception {
        server.close();
    }

    private static void create(ZooKeeper client, String path) throws Exception {
        client.create(path, NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    /** Calls until the client has its connection back. */
    private static void awaitConnected(ZooKeeper client) throws Exception {
        Eventually.holds("the client is connected again", () -> {
            try {
                return client.exists("/", false) != null;
            } catch (KeeperException.ConnectionLossException error) {
                return false;
            }
        });
    }

    @Test
    @Tag(Server.KILLED)
    void sessionEphemeralsAndDataSurvive() throws Exception {
        try (var client = Client.of(server.hosts())) {
            long session = client.getSessionId();
            client.create("/mine", "1".getBytes(UTF_8), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            var before = client.exists("/mine", false);
            server.kill();
            server.restart();
            awaitConnected(client);
            assertEquals(session, client.getSessionId());
            assertEquals(before, client.exists("/mine", false));
            assertArrayEquals("1".getBytes(UTF_8), client.getData("/mine", false, null));
        }
        try (var client = Client.of(server.hosts())) {
            assertNull(client.exists("/mine", false));
        }
    }

    @Test
    @Tag(Server.KILLED)
    void everyKindOfWatchIsPutBack() throws Exception {
        try (var client = Client.of(server.hosts())) {
            create(client, "/data");
            create(client, "/parent");
            create(client, "/persistent");
            create(client, "/recursive");
            var data = new Client.Events();
            var exists = new Client.Events();
            var children = new Client.Events();
            var persistent = new Client.Events();
            var recursive = new Client.Events();
            client.getData("/data", data, null);
            client.exists("/later", exists);
            client.getChildren("/parent", children);
            client.addWatch("/persistent", persistent, AddWatchMode.PERSISTENT);
            client.addWatch("/recursive", recursive, AddWatchMode.PERSISTENT_RECURSIVE);

            server.kill();
            server.restart();
            awaitConnected(client);
            try (var other = Client.of(server.hosts())) {
                other.setData("/data", NOTHING, -1);
                create(other, "/later");
                create(other, "/parent/child");
                other.setData("/persistent", NOTHING, -1);
                create(other, "/recursive/a");
                create(other, "/recursive/a/b");
            }
            Client.settle(client);
            assertEquals(List.of("NodeDataChanged /data"), data.drain());
            assertEquals(List.of("NodeCreated /later"), exists.drain());
            assertEquals(List.of("NodeChildrenChanged /parent"), children.drain());
            assertEquals(List.of("NodeDataChanged /persistent"), persistent.drain());
            assertEquals(List.of("NodeCreated /recursive/a", "NodeCreated /recursive/a/b"), recursive.drain());
        }
    }

    @Test
    void oneTimeWatchesFireForWhatHappenedMeanwhile() throws Exception {
        try (var proxy = new Proxy(server.hosts()); var client = Client.of(proxy.hosts())) {
            create(client, "/data");
            create(client, "/doomed");
            create(client, "/parent");
            create(client, "/quiet");
            var data = new Client.Events();
            var doomed = new Client.Events();
            var later = new Client.Events();
            var children = new Client.Events();
            var quiet = new Client.Events();
            client.getData("/data", data, null);
            client.getData("/doomed", doomed, null);
            client.exists("/later", later);
            client.getChildren("/parent", children);
            client.getData("/quiet", quiet, null);

            proxy.cut();
            try (var other = Client.of(server.hosts())) {
                other.setData("/data", NOTHING, -1);
                other.delete("/doomed", -1);
                create(other, "/later");
                create(other, "/parent/child");
            }
            proxy.mend();
            awaitConnected(client);
            Client.settle(client);
            assertEquals(List.of("NodeDataChanged /data"), data.drain());
            assertEquals(List.of("NodeDeleted /doomed"), doomed.drain());
            assertEquals(List.of("NodeCreated /later"), later.drain());
            assertEquals(List.of("NodeChildrenChanged /parent"), children.drain());
            assertEquals(List.of(), quiet.drain());
        }
    }

    @Test
    void aSessionCutOffForTooLongExpires() throws Exception {
        var expired = new CountDownLatch(1);
        try (var proxy = new Proxy(server.hosts());
                var client = Client.of(proxy.hosts(), Duration.ofSeconds(1));
                var other = Client.of(server.hosts())) {
            client.register(event -> {
                if (event.getState() == KeeperState.Expired) {
                    expired.countDown();
                }
            });
            client.create("/mine", NOTHING, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            var watch = new Client.Events();
            assertNotNull(other.exists("/mine", watch));
            proxy.cut();
            assertEquals("NodeDeleted /mine", watch.next());
            proxy.mend();
            assertEquals(true, expired.await(20, TimeUnit.SECONDS));
            assertEquals(ZooKeeper.States.CLOSED, client.getState());
        }
    }

    @Test
    void aSessionIsCarriedOnByIdAndPassword() throws Exception {
        var first = Client.of(server.hosts());
        first.create("/mine", NOTHING, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        long session = first.getSessionId();
        var connected = new CountDownLatch(1);
        try (var second = new ZooKeeper(server.hosts(), 10_000, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        }, session, first.getSessionPasswd())) {
            assertEquals(true, connected.await(20, TimeUnit.SECONDS));
            assertEquals(session, second.getSessionId());
        }
        // The second one closed the session, for both.
        try (var other = Client.of(server.hosts())) {
            assertNull(other.exists("/mine", false));
        }
        first.close();
    }

    @Test
    @Tag(Server.KILLED)
    void lifetimesAndContainersAreKeptOverARestart() throws Exception {
        try (var client = Client.of(server.hosts())) {
            client.create("/brief", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, null, 1000);
            client.create("/container", NOTHING, OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
            create(client, "/container/child");
        }
        server.kill();
        server.restart();
        try (var client = Client.of(server.hosts())) {
            Eventually.holds("/brief is gone", () -> client.exists("/brief", false) == null);
            assertNotNull(client.exists("/container", false));
            client.delete("/container/child", -1);
            Eventually.holds("/container is gone", () -> client.exists("/container", false) == null);
        }
    }
}
