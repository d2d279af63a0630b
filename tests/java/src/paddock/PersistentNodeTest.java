package paddock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.junit.jupiter.api.Test;

/** Curator's persistent node over a restart of all members. */
final class PersistentNodeTest {
    /**
     * The story of Curator's own {@code TestPersistentEphemeralNode#testSetDataWhenDisconnected}, but for one thing: the client
     * knows that its connection is lost before it asks.
     *
     * <p>The original asks as soon as the server is gone. A client that has not noticed it yet loses the two requests with the
     * connection, and Curator asks at once again, before it hears of the loss: the one retry that the policy grants is used up
     * when the next attempt to connect fails. Then the watch of the test is never set, whatever the server does.
     */
    @Test
    void dataThatAreSetWithoutAConnectionArriveAndAreWatched() throws Exception {
        List<Server> members = Server.ensemble(3);
        var hosts = members.stream().map(Server::hosts).collect(Collectors.joining(","));
        var suspended = new CountDownLatch(1);
        try (var client = CuratorFrameworkFactory.newClient(hosts, 15_000, 10_000, new RetryOneTime(1))) {
            client.getConnectionStateListenable().addListener((ignored, state) -> {
                if (state == ConnectionState.SUSPENDED) {
                    suspended.countDown();
                }
            });
            client.start();
            try (var node = new PersistentNode(client, CreateMode.EPHEMERAL, false, "/node", "old".getBytes(UTF_8))) {
                node.start();
                assertTrue(node.waitForInitialCreate(30, TimeUnit.SECONDS));
                for (Server member : members) {
                    member.kill();
                }
                assertTrue(suspended.await(10, TimeUnit.SECONDS));

                CountDownLatch changed = watch(client, node.getActualPath());
                node.setData("new".getBytes(UTF_8));
                Server.startAll(members);

                assertTrue(changed.await(30, TimeUnit.SECONDS), "no event");
                assertEquals("new", new String(client.getData().forPath(node.getActualPath()), UTF_8));
            }
        } finally {
            for (Server member : members) {
                member.close();
            }
        }
    }

    /** Asks for the data in the background, and counts down when the watch that it leaves tells of new ones. */
    private static CountDownLatch watch(CuratorFramework client, String path) throws Exception {
        var changed = new CountDownLatch(1);
        var read = client.getData().usingWatcher((Watcher) event -> {
            if (event.getType() == EventType.NodeDataChanged) {
                changed.countDown();
            }
        });
        read.inBackground().forPath(path);
        return changed;
    }
}
