package paddock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.apache.zookeeper.ZooDefs.Ids.CREATOR_ALL_ACL;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;
import static org.apache.zookeeper.ZooDefs.Ids.READ_ACL_UNSAFE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every call of Apache ZooKeeper's Java client, one test to a subject. Each test has a root of its own. */
final class ClientTest {
    private static final byte[] NOTHING = {};

    private static Server server;
    private String chroot;
    private ZooKeeper client;

    @BeforeAll
    static void startServer() throws Exception {
        server = new Server();
    }

    @AfterAll
    static void stopServer() throws Exception {
        server.close();
    }

    @BeforeEach
    void connect(TestInfo test) throws Exception {
        try (var outside = Client.of(server.hosts())) {
            chroot = outside.create("/test-", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
        }
        server.spread(chroot);
        client = Client.of(server.hosts() + chroot);
    }

    @AfterEach
    void disconnect() throws Exception {
        client.close();
    }

    private ZooKeeper another() throws Exception {
        return Client.of(server.hosts() + chroot);
    }

    private String create(String path) throws Exception {
        return client.create(path, path.getBytes(UTF_8), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    private static void assertRefused(Code code, Executable call) {
        assertEquals(code, assertThrows(KeeperException.class, call).code());
    }

    @ParameterizedTest
    @EnumSource(CreateMode.class)
    void createsInEveryMode(CreateMode mode) throws Exception {
        var stat = new Stat();
        long ttl = mode.isTTL() ? 60_000 : -1;
        String path = client.create("/node", "data".getBytes(UTF_8), OPEN_ACL_UNSAFE, mode, stat, ttl);

        assertEquals(mode.isSequential() ? "/node0000000000" : "/node", path);
        assertEquals(mode.isEphemeral() ? client.getSessionId() : 0, stat.getEphemeralOwner());
        assertEquals(4, stat.getDataLength());
        assertEquals(stat, client.exists(path, false));
        assertArrayEquals("data".getBytes(UTF_8), client.getData(path, false, null));
    }

    @Test
    void statFollowsTheLifeOfAZnode() throws Exception {
        create("/node");
        Stat created = client.exists("/node", false);
        assertEquals(created.getCzxid(), created.getMzxid());
        assertEquals(created.getCzxid(), created.getPzxid());
        assertEquals(created.getCtime(), created.getMtime());
        assertTrue(Math.abs(System.currentTimeMillis() - created.getCtime()) < 60_000);

        Stat written = client.setData("/node", "longer data".getBytes(UTF_8), 0);
        assertEquals(1, written.getVersion());
        assertEquals(11, written.getDataLength());
        assertTrue(written.getMzxid() > written.getCzxid());
        assertEquals(created.getPzxid(), written.getPzxid());

        create("/node/a");
        create("/node/b");
        client.delete("/node/a", 0);
        Stat parent = client.exists("/node", false);
        assertEquals(1, parent.getNumChildren());
        assertEquals(3, parent.getCversion());
        assertTrue(parent.getPzxid() > client.exists("/node/b", false).getCzxid());
        assertEquals(written.getMzxid(), parent.getMzxid());
    }

    @Test
    void refusesWithTheRightCode() throws Exception {
        create("/node");
        create("/node/child");
        client.create("/short", NOTHING, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);

        assertRefused(Code.NODEEXISTS, () -> create("/node"));
        assertRefused(Code.NONODE, () -> create("/missing/child"));
        assertRefused(Code.NOCHILDRENFOREPHEMERALS, () -> create("/short/child"));
        assertRefused(Code.NOTEMPTY, () -> client.delete("/node", -1));
        assertRefused(Code.BADVERSION, () -> client.delete("/node/child", 5));
        assertRefused(Code.BADVERSION, () -> client.setData("/node", NOTHING, 5));
        assertRefused(Code.NONODE, () -> client.getData("/missing", false, null));
        assertRefused(Code.NONODE, () -> client.getChildren("/missing", false));
        assertRefused(Code.INVALIDACL, () -> client.setACL("/node", CREATOR_ALL_ACL, -1));
        assertNull(client.exists("/missing", false));
    }

    @Test
    void refusesALifetimeOutOfRange() {
        for (long ttl : new long[] {0, -5, 0x100_0000_0000L}) {
            assertThrows(Exception.class, () -> client.create(
                    "/node", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new Stat(), ttl));
        }
    }

    @Test
    void deletesAZnodeWhoseLifetimeIsOver() throws Exception {
        client.create("/brief", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 100);
        client.create("/long", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 600_000);
        Eventually.holds("/brief is gone", () -> client.exists("/brief", false) == null);
        assertNotNull(client.exists("/long", false));
    }

    @Test
    void deletesAContainerThatLostItsLastChild() throws Exception {
        client.create("/container", NOTHING, OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        client.create("/unused", NOTHING, OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        create("/container/child");
        client.delete("/container/child", -1);
        Eventually.holds("/container is gone", () -> client.exists("/container", false) == null);
        // One that never had a child may still get its first.
        assertNotNull(client.exists("/unused", false));
    }

    @Test
    void multiAppliesAllAndAnswersEach() throws Exception {
        create("/old");
        create("/gone");
        List<OpResult> results = client.multi(List.of(
                Op.check("/old", 0),
                Op.create("/new", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.create("/new/job-", NOTHING, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
                Op.setData("/old", "new".getBytes(UTF_8), 0),
                Op.delete("/gone", -1),
                Op.create("/brief", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, 600_000),
                Op.create("/container", NOTHING, OPEN_ACL_UNSAFE, CreateMode.CONTAINER)));

        assertInstanceOf(OpResult.CheckResult.class, results.get(0));
        // The client hands on the paths of a multi as the server names them.
        assertEquals(chroot + "/new", ((OpResult.CreateResult) results.get(1)).getPath());
        assertEquals(chroot + "/new/job-0000000000", ((OpResult.CreateResult) results.get(2)).getPath());
        Stat written = ((OpResult.SetDataResult) results.get(3)).getStat();
        assertEquals(1, written.getVersion());
        assertInstanceOf(OpResult.DeleteResult.class, results.get(4));
        assertEquals(chroot + "/brief", ((OpResult.CreateResult) results.get(5)).getPath());
        assertEquals(chroot + "/container", ((OpResult.CreateResult) results.get(6)).getPath());
        // All of it happened at one zxid, or at one of each group.
        if (Server.GROUPS == 1) {
            assertEquals(written.getMzxid(), client.exists("/new", false).getCzxid());
            assertEquals(written.getMzxid(), client.exists("/brief", false).getCzxid());
        }
        assertNull(client.exists("/gone", false));
    }

    @Test
    void failedMultiChangesNothingAndTellsWhy() throws Exception {
        create("/old");
        Stat before = client.exists("/", false);
        var error = assertThrows(KeeperException.class, () -> client.multi(List.of(
                Op.create("/new", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.setData("/old", NOTHING, -1),
                Op.delete("/missing", -1),
                Op.check("/old", 0))));

        assertEquals(Code.NONODE, error.code());
        var codes = new ArrayList<Integer>();
        for (OpResult result : error.getResults()) {
            codes.add(((OpResult.ErrorResult) result).getErr());
        }
        int rolledBack = Code.OK.intValue();
        int after = Code.RUNTIMEINCONSISTENCY.intValue();
        assertEquals(List.of(rolledBack, rolledBack, Code.NONODE.intValue(), after), codes);
        assertArrayEquals("/old".getBytes(UTF_8), client.getData("/old", false, null));
        assertEquals(before, client.exists("/", false));
    }

    @Test
    void transactionBuilder() throws Exception {
        var results = client.transaction()
                .create("/a", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)
                .setData("/a", "x".getBytes(UTF_8), 0)
                .check("/a", 1)
                .delete("/a", 1)
                .commit();
        assertEquals(4, results.size());
        assertNull(client.exists("/a", false));
    }

    @Test
    void multiReadAnswersEachOnItsOwn() throws Exception {
        create("/a");
        create("/a/b");
        List<OpResult> results = client.multi(List.of(
                Op.getData("/a"), Op.getChildren("/a"), Op.getData("/missing"), Op.getChildren("/a/b")));

        var data = (OpResult.GetDataResult) results.get(0);
        assertArrayEquals("/a".getBytes(UTF_8), data.getData());
        assertEquals(client.exists("/a", false), data.getStat());
        assertEquals(List.of("b"), ((OpResult.GetChildrenResult) results.get(1)).getChildren());
        assertEquals(Code.NONODE.intValue(), ((OpResult.ErrorResult) results.get(2)).getErr());
        assertEquals(List.of(), ((OpResult.GetChildrenResult) results.get(3)).getChildren());
    }

    @Test
    void aclsDecideWhoMay() throws Exception {
        client.addAuthInfo("digest", "alice:secret".getBytes(UTF_8));
        client.create("/private", NOTHING, CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        client.create("/public", NOTHING, READ_ACL_UNSAFE, CreateMode.PERSISTENT);
        var stat = new Stat();
        ACL acl = client.getACL("/private", stat).get(0);
        assertEquals("digest", acl.getId().getScheme());
        assertTrue(acl.getId().getId().startsWith("alice:"));
        assertEquals(Perms.ALL, acl.getPerms());

        try (var stranger = another()) {
            assertRefused(Code.NOAUTH, () -> stranger.getData("/private", false, null));
            assertRefused(Code.NOAUTH, () -> stranger.exists("/private", false));
            assertRefused(Code.NOAUTH, () -> stranger.getChildren("/private", false));
            assertRefused(Code.NOAUTH, () -> stranger.setData("/private", NOTHING, -1));
            assertRefused(Code.NOAUTH, () -> stranger.setACL("/private", OPEN_ACL_UNSAFE, -1));
            assertRefused(Code.NOAUTH, () -> stranger.setData("/public", NOTHING, -1));
            assertRefused(Code.NOAUTH,
                    () -> stranger.create("/public/child", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
            // Deletion asks the parent, and that one is open.
            stranger.delete("/public", -1);

            stranger.addAuthInfo("digest", "alice:secret".getBytes(UTF_8));
            assertArrayEquals(NOTHING, stranger.getData("/private", false, null));
        }
        assertEquals(1, client.setACL("/private", OPEN_ACL_UNSAFE, 0).getAversion());
        assertRefused(Code.BADVERSION, () -> client.setACL("/private", OPEN_ACL_UNSAFE, 0));
    }

    @Test
    void ipAclsMatchTheClientsAddress() throws Exception {
        client.create("/here", NOTHING, everythingFor("127.0.0.0/8"), CreateMode.PERSISTENT);
        client.create("/away", NOTHING, everythingFor("10.0.0.0/8"), CreateMode.PERSISTENT);
        assertArrayEquals(NOTHING, client.getData("/here", false, null));
        assertRefused(Code.NOAUTH, () -> client.getData("/away", false, null));
    }

    private static List<ACL> everythingFor(String addresses) {
        // The client looks for null in the list, which List.of() does not forgive.
        return Collections.singletonList(new ACL(Perms.ALL, new Id("ip", addresses)));
    }

    @Test
    void whoAmIListsTheIdentities() throws Exception {
        client.addAuthInfo("digest", "alice:secret".getBytes(UTF_8));
        var identities = new ArrayList<String>();
        for (var info : client.whoAmI()) {
            identities.add(info.getAuthScheme() + ":" + info.getUser());
        }
        assertEquals(List.of("digest:alice", "ip:127.0.0.1"), identities.stream().sorted().toList());
    }

    @Test
    void oneTimeWatches() throws Exception {
        create("/node");
        var data = new Client.Events();
        var children = new Client.Events();
        var later = new Client.Events();
        client.getData("/node", data, null);
        client.getChildren("/node", children);
        client.exists("/later", later);
        try (var other = another()) {
            other.setData("/node", NOTHING, -1);
            other.setData("/node", NOTHING, -1);
            other.create("/node/a", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            other.create("/node/b", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            other.create("/later", NOTHING, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
        Client.settle(client);
        assertEquals(List.of("NodeDataChanged /node"), data.drain());
        assertEquals(List.of("NodeChildrenChanged /node"), children.drain());
        assertEquals(List.of("NodeCreated /later"), later.drain());
    }

    @Test
    void theEventComesBeforeTheNews() throws Exception {
        create("/node");
        try (var other = another()) {
            for (int round = 0; round < 50; round++) {
                var order = new ArrayList<String>();
                var done = new CompletableFuture<Void>();
                byte[] news = Integer.toString(round).getBytes(UTF_8);
                client.getData("/node", event -> order.add("event"), null);
                other.setData("/node", news, -1);
                // Whatever this reads, it must be told of the change before it reads the new data.
                client.getData("/node", false, (AsyncCallback.DataCallback) (code, path, context, data, stat) -> {
                    order.add(new String(data, UTF_8));
                    done.complete(null);
                }, null);
                done.get(20, TimeUnit.SECONDS);
                assertEquals(List.of("event", Integer.toString(round)), order);
            }
        }
    }

    @Test
    void ownWriteIsAnsweredAfterItsEvent() throws Exception {
        create("/node");
        var order = new ArrayList<String>();
        var done = new CompletableFuture<Void>();
        client.getData("/node", event -> order.add("event"), null);
        client.setData("/node", NOTHING, -1, (AsyncCallback.StatCallback) (code, path, context, stat) -> {
            order.add("answer");
            done.complete(null);
        }, null);
        done.get(20, TimeUnit.SECONDS);
        assertEquals(List.of("event", "answer"), order);
    }

    @Test
    void persistentWatchStays() throws Exception {
        create("/node");
        var events = new Client.Events();
        client.addWatch("/node", events, AddWatchMode.PERSISTENT);
        client.setData("/node", NOTHING, -1);
        client.setData("/node", NOTHING, -1);
        create("/node/child");
        client.setData("/node/child", NOTHING, -1);
        client.delete("/node/child", -1);
        client.delete("/node", -1);
        create("/node");
        Client.settle(client);
        assertEquals(List.of(
                "NodeDataChanged /node",
                "NodeDataChanged /node",
                "NodeChildrenChanged /node",
                "NodeChildrenChanged /node",
                "NodeDeleted /node",
                "NodeCreated /node"), events.drain());
    }

    @Test
    void recursiveWatchSeesTheWholeSubtree() throws Exception {
        create("/node");
        var events = new Client.Events();
        client.addWatch("/node", events, AddWatchMode.PERSISTENT_RECURSIVE);
        create("/node/a");
        create("/node/a/b");
        client.setData("/node/a/b", NOTHING, -1);
        client.delete("/node/a/b", -1);
        create("/beside");
        Client.settle(client);
        assertEquals(List.of(
                "NodeCreated /node/a",
                "NodeCreated /node/a/b",
                "NodeDataChanged /node/a/b",
                "NodeDeleted /node/a/b"), events.drain());
    }

    @Test
    void removedWatchesAreSilent() throws Exception {
        create("/node");
        var removed = new Client.Events();
        var kept = new Client.Events();
        client.getData("/node", removed, null);
        client.getChildren("/node", kept);
        client.removeWatches("/node", removed, WatcherType.Data, false);
        assertEquals("DataWatchRemoved /node", removed.next());
        client.setData("/node", NOTHING, -1);
        create("/node/child");
        Client.settle(client);
        assertEquals(List.of(), removed.drain());
        assertEquals(List.of("NodeChildrenChanged /node"), kept.drain());

        assertRefused(Code.NOWATCHER, () -> client.removeWatches(
                "/node", removed, WatcherType.Data, false));

        client.addWatch("/node", removed, AddWatchMode.PERSISTENT_RECURSIVE);
        client.removeAllWatches("/node", WatcherType.Any, false);
        assertEquals("PersistentWatchRemoved /node", removed.next());
        client.setData("/node", NOTHING, -1);
        Client.settle(client);
        assertEquals(List.of(), removed.drain());
    }

    @Test
    void ephemeralsOfTheSession() throws Exception {
        create("/a");
        for (String path : List.of("/mine", "/a/one", "/a/two")) {
            client.create(path, NOTHING, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        }
        // The client leaves its root out of this: paths are the server's, in the question and in the answer.
        var below = List.of(chroot + "/a/one", chroot + "/a/two");
        assertEquals(below, client.getEphemerals(chroot + "/a").stream().sorted().toList());
        assertEquals(3, client.getEphemerals().size());
        assertTrue(client.getEphemerals().contains(chroot + "/mine"));
        try (var other = another()) {
            assertEquals(List.of(), other.getEphemerals());
        }
    }

    @Test
    void allChildrenNumberCountsTheSubtree() throws Exception {
        assertEquals(0, client.getAllChildrenNumber("/"));
        for (String path : List.of("/a", "/a/b", "/a/b/c", "/ab")) {
            create(path);
        }
        assertEquals(4, client.getAllChildrenNumber("/"));
        assertEquals(2, client.getAllChildrenNumber("/a"));
        assertEquals(0, client.getAllChildrenNumber("/ab"));
    }

    @Test
    void childrenWithStat() throws Exception {
        create("/b");
        create("/a");
        var stat = new Stat();
        assertEquals(List.of("a", "b"), client.getChildren("/", false, stat).stream().sorted().toList());
        assertEquals(client.exists("/", false), stat);
    }

    @Test
    void syncAnswersWithItsPath() throws Exception {
        create("/node");
        var answer = new CompletableFuture<String>();
        client.sync("/node", (code, path, context) -> answer.complete(code + " " + path), null);
        assertEquals("0 /node", answer.get(20, TimeUnit.SECONDS));
    }

    @Test
    void configurationIsReadable() throws Exception {
        // A server without an ensemble has none; the znode exists all the same.
        int named = Server.MEMBERS == 1 ? 0 : Server.MEMBERS;
        try (var outside = Client.of(server.hosts())) {
            String config = new String(outside.getConfig(false, null), UTF_8);
            assertEquals(named, config.lines().filter(line -> line.startsWith("server.")).count(), config);
            assertEquals(named == 0, config.isEmpty(), config);
        }
    }

    @Test
    void thousandsInFlightAreAnsweredInOrder() throws Exception {
        create("/node");
        int count = 5000;
        var versions = new ArrayList<Integer>();
        var done = new CompletableFuture<Void>();
        for (int number = 1; number <= count; number++) {
            client.setData("/node", NOTHING, -1, (AsyncCallback.StatCallback) (code, path, context, stat) -> {
                versions.add(code == 0 ? stat.getVersion() : -1);
                if (versions.size() == count) {
                    done.complete(null);
                }
            }, null);
        }
        done.get(50, TimeUnit.SECONDS);
        for (int number = 1; number <= count; number++) {
            assertEquals(number, versions.get(number - 1));
        }
    }
}
