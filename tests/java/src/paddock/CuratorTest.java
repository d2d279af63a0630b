package paddock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Apache Curator's recipes, between two clients. */
final class CuratorTest {
    /** The root of both clients where the ensemble has several groups: a split point, whose children lie in all of them. */
    private static final String ROOT = "/recipes";

    private Server server;
    private CuratorFramework first;
    private CuratorFramework second;

    @BeforeEach
    void start() throws Exception {
        server = new Server();
        if (Server.GROUPS > 1) {
            server.spread(ROOT);
        }
        first = client();
        second = client();
    }

    @AfterEach
    void stop() throws Exception {
        first.close();
        second.close();
        server.close();
    }

    private CuratorFramework client() {
        var client = CuratorFrameworkFactory.newClient(server.hosts() + (Server.GROUPS > 1 ? ROOT : ""), 10_000, 10_000, new RetryForever(100));
        client.start();
        return client;
    }

    @Test
    void mutexPassesFromOneToTheOther() throws Exception {
        var mine = new InterProcessMutex(first, "/lock");
        var yours = new InterProcessMutex(second, "/lock");
        mine.acquire();
        assertFalse(yours.acquire(100, TimeUnit.MILLISECONDS));
        mine.release();
        assertTrue(yours.acquire(20, TimeUnit.SECONDS));
        yours.release();
    }

    @Test
    void mutexIsExclusive() throws Exception {
        var inside = new AtomicInteger();
        var rounds = new AtomicInteger();
        var threads = new ArrayList<CompletableFuture<Void>>();
        for (CuratorFramework client : List.of(first, second, first, second)) {
            threads.add(CompletableFuture.runAsync(() -> {
                try {
                    for (int round = 0; round < 10; round++) {
                        var lock = new InterProcessMutex(client, "/lock");
                        lock.acquire();
                        assertEquals(1, inside.incrementAndGet());
                        // A round trip, time enough for another to come in if the lock let it.
                        client.checkExists().forPath("/");
                        inside.decrementAndGet();
                        rounds.incrementAndGet();
                        lock.release();
                    }
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            }));
        }
        CompletableFuture.allOf(threads.toArray(CompletableFuture<?>[]::new)).get(50, TimeUnit.SECONDS);
        assertEquals(40, rounds.get());
    }

    @Test
    @Tag(Server.KILLED)
    void mutexIsStillHeldAfterACrash() throws Exception {
        var mine = new InterProcessMutex(first, "/lock");
        var yours = new InterProcessMutex(second, "/lock");
        mine.acquire();
        server.kill();
        server.restart();
        assertFalse(yours.acquire(500, TimeUnit.MILLISECONDS));
        mine.release();
        assertTrue(yours.acquire(20, TimeUnit.SECONDS));
    }

    @Test
    void readersShareAndWritersDoNot() throws Exception {
        var mine = new InterProcessReadWriteLock(first, "/lock");
        var yours = new InterProcessReadWriteLock(second, "/lock");
        mine.readLock().acquire();
        assertTrue(yours.readLock().acquire(20, TimeUnit.SECONDS));
        yours.readLock().release();
        assertFalse(yours.writeLock().acquire(100, TimeUnit.MILLISECONDS));
        mine.readLock().release();
        assertTrue(yours.writeLock().acquire(20, TimeUnit.SECONDS));
    }

    @Test
    void semaphoreLetsInAsManyAsItHas() throws Exception {
        var mine = new InterProcessSemaphoreV2(first, "/semaphore", 2);
        var yours = new InterProcessSemaphoreV2(second, "/semaphore", 2);
        var lease = mine.acquire();
        assertNotNull(yours.acquire(20, TimeUnit.SECONDS));
        assertEquals(null, yours.acquire(100, TimeUnit.MILLISECONDS));
        mine.returnLease(lease);
        assertNotNull(yours.acquire(20, TimeUnit.SECONDS));
    }

    @Test
    void leadershipPassesOn() throws Exception {
        var mine = new LeaderLatch(first, "/leader", "first");
        mine.start();
        assertTrue(mine.await(20, TimeUnit.SECONDS));
        try (var yours = new LeaderLatch(second, "/leader", "second")) {
            yours.start();
            Eventually.holds("both take part", () -> yours.getParticipants().size() == 2);
            assertFalse(yours.hasLeadership());
            assertEquals("first", yours.getLeader().getId());
            mine.close();
            assertTrue(yours.await(20, TimeUnit.SECONDS));
        }
    }

    @Test
    void barrierHoldsUntilRemoved() throws Exception {
        var mine = new DistributedBarrier(first, "/barrier");
        mine.setBarrier();
        var yours = new DistributedBarrier(second, "/barrier");
        assertFalse(yours.waitOnBarrier(100, TimeUnit.MILLISECONDS));
        mine.removeBarrier();
        assertTrue(yours.waitOnBarrier(20, TimeUnit.SECONDS));
    }

    /**
     * The first waits for the second, and each leaves when both do. Who leaves first is Curator's: one that hears late that both are in takes that for a
     * change of those that are still there.
     */
    @Test
    void doubleBarrierEntersAndLeavesTogether() throws Exception {
        var mine = new DistributedDoubleBarrier(first, "/double", 2);
        var yours = new DistributedDoubleBarrier(second, "/double", 2);
        var entered = CompletableFuture.supplyAsync(() -> inTime(() -> mine.enter(20, TimeUnit.SECONDS)));
        Eventually.holds("the first has come", () -> {
            var stat = second.checkExists().forPath("/double");
            return stat != null && stat.getNumChildren() == 1;
        });
        assertFalse(entered.isDone());
        assertTrue(yours.enter(20, TimeUnit.SECONDS));
        assertTrue(entered.get(20, TimeUnit.SECONDS));
        var left = CompletableFuture.supplyAsync(() -> inTime(() -> mine.leave(20, TimeUnit.SECONDS)));
        assertTrue(yours.leave(20, TimeUnit.SECONDS));
        assertTrue(left.get(20, TimeUnit.SECONDS));
    }

    private static boolean inTime(Callable<Boolean> step) {
        try {
            return step.call();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    @Test
    void queueKeepsItsOrder() throws Exception {
        var mine = new SimpleDistributedQueue(first, "/queue");
        var yours = new SimpleDistributedQueue(second, "/queue");
        for (String item : List.of("a", "b", "c")) {
            assertTrue(mine.offer(item.getBytes(UTF_8)));
        }
        for (String item : List.of("a", "b", "c")) {
            assertArrayEquals(item.getBytes(UTF_8), yours.poll(20, TimeUnit.SECONDS));
        }
        assertEquals(null, yours.poll());
    }

    @Test
    void atomicLongLosesNothing() throws Exception {
        var retry = new RetryNTimes(1000, 1);
        var threads = new ArrayList<CompletableFuture<Void>>();
        for (CuratorFramework client : List.of(first, second)) {
            threads.add(CompletableFuture.runAsync(() -> {
                try {
                    var number = new DistributedAtomicLong(client, "/number", retry);
                    for (int round = 0; round < 50; round++) {
                        assertTrue(number.increment().succeeded());
                    }
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            }));
        }
        CompletableFuture.allOf(threads.toArray(CompletableFuture<?>[]::new)).get(50, TimeUnit.SECONDS);
        assertEquals(100, new DistributedAtomicLong(first, "/number", retry).get().postValue());
    }

    @Test
    void sharedCountTellsTheOther() throws Exception {
        try (var mine = new SharedCount(first, "/count", 1); var yours = new SharedCount(second, "/count", 1)) {
            mine.start();
            yours.start();
            mine.setCount(7);
            Eventually.holds("the other sees it", () -> yours.getCount() == 7);
        }
    }

    @Test
    @Tag(Server.KILLED)
    void cacheMirrorsTheTreeAndSurvivesACrash() throws Exception {
        first.create().creatingParentsIfNeeded().forPath("/tree/a", "1".getBytes(UTF_8));
        Set<String> paths = new ConcurrentSkipListSet<>();
        try (var cache = CuratorCache.build(second, "/tree")) {
            cache.listenable().addListener((type, before, after) -> {
                if (after == null) {
                    paths.remove(before.getPath());
                } else {
                    paths.add(after.getPath());
                }
            });
            cache.start();
            first.create().forPath("/tree/b");
            Eventually.holds("all is there", () -> paths.equals(Set.of("/tree", "/tree/a", "/tree/b")));

            server.kill();
            server.restart();
            first.delete().forPath("/tree/b");
            first.create().forPath("/tree/a/c");
            Eventually.holds("the changes are there", () -> paths.equals(Set.of("/tree", "/tree/a", "/tree/a/c")));
        }
    }

    @Test
    void persistentNodeComesBack() throws Exception {
        try (var node = new PersistentNode(first, CreateMode.EPHEMERAL, false, "/node", "here".getBytes(UTF_8))) {
            node.start();
            assertTrue(node.waitForInitialCreate(20, TimeUnit.SECONDS));
            second.delete().forPath("/node");
            Eventually.holds("it is back", () -> second.checkExists().forPath("/node") != null);
        }
    }

    @Test
    void groupKnowsItsMembers() throws Exception {
        try (var mine = new GroupMember(first, "/group", "first");
                var yours = new GroupMember(second, "/group", "second")) {
            mine.start();
            yours.start();
            var both = Set.of("first", "second");
            Eventually.holds("both are seen", () -> mine.getCurrentMembers().keySet().equals(both));
            second.close();
            Eventually.holds("one is left", () -> mine.getCurrentMembers().keySet().equals(Set.of("first")));
        }
    }

    @Test
    void transactionAppliesAllOrNothing() throws Exception {
        first.transaction().forOperations(
                first.transactionOp().create().forPath("/a", "1".getBytes(UTF_8)),
                first.transactionOp().setData().forPath("/a", "2".getBytes(UTF_8)),
                first.transactionOp().check().withVersion(1).forPath("/a"));
        assertArrayEquals("2".getBytes(UTF_8), second.getData().forPath("/a"));
    }
}
