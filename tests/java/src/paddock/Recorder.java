package paddock;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Sessions of ZooKeeper's client that ask things of a few znodes and write down what they were told: what
 * {@code tests/support/recorder.py} does with kazoo, with the same arguments and the same lines on standard output.
 */
public final class Recorder extends Worker {
    /** Data are numbers with blanks behind them, so that the log grows: disks fill, files of the log come and go. */
    private static final int DATA_BYTES = 1000;
    private static final Duration PAUSE = Duration.ofMillis(8);
    private static final Duration SESSION_TIMEOUT = Duration.ofSeconds(4);

    private enum Kind { CREATE, SET, CHECKED_SET, REPLACE, DELETE, READ, READ_BOTH }

    /** As often as they stand here. */
    private static final Kind[] KINDS = {
        Kind.CREATE, Kind.CREATE, Kind.SET, Kind.SET, Kind.SET, Kind.CHECKED_SET, Kind.REPLACE, Kind.DELETE,
        Kind.READ, Kind.READ, Kind.READ, Kind.READ, Kind.READ, Kind.READ_BOTH, Kind.READ_BOTH,
    };

    /** What is asked of a znode, or of two if there is another one; null is nothing. */
    private record Request(Kind kind, String key, String other, Long value, Integer expected) {
        byte[] text() {
            return ("%-" + DATA_BYTES + "d").formatted(value).getBytes(US_ASCII);
        }

        int version() {
            return expected == null ? -1 : expected;
        }

        /** As the checker knows it: a check and a set in one multi is a set. */
        String op() {
            return kind == Kind.CHECKED_SET ? "set" : kind.name().toLowerCase();
        }

        String toJson() {
            if (kind == Kind.READ_BOTH) {
                return "\"parts\":[{\"key\":\"%s\",\"op\":\"read\"},{\"key\":\"%s\",\"op\":\"read\"}]".formatted(key, other);
            }
            return "\"key\":\"%s\",\"op\":\"%s\",\"value\":%s,\"expected\":%s".formatted(key, op(), value, expected);
        }
    }

    /** What was told; null is nothing. Of a read of two znodes there is a part for each. */
    private record Answer(String code, Long value, Integer version, List<Answer> parts) {
        static final Answer DONE = new Answer("ok", null, null, null);

        static Answer at(Stat stat) {
            return new Answer("ok", null, stat.getVersion(), null);
        }

        static Answer read(byte[] data, Stat stat) {
            return new Answer("ok", Long.valueOf(new String(data, US_ASCII).trim()), stat.getVersion(), null);
        }

        static Answer refused(KeeperException refusal) {
            return new Answer(refusal.getClass().getSimpleName().replace("Exception", ""), null, null, null);
        }

        String toJson() {
            if (parts != null) {
                var told = parts.stream().map(part -> "{" + part.toJson() + "}");
                return "\"code\":\"ok\",\"parts\":[" + String.join(",", told.toList()) + "]";
            }
            return "\"code\":\"%s\",\"value\":%s,\"version\":%s".formatted(code, value, version);
        }
    }

    /** A read whose connection is not that of its sync: another kind of read. */
    private static final class Unsynced extends Exception {
        private static final long serialVersionUID = 1;
    }

    private final int number;
    private final List<String> keys;
    private final Random chance;
    private final String hosts;
    /** What the session knows of each znode, so that its requests often fit. */
    private final Map<String, Integer> versions = new HashMap<>();
    /** Counted by the thread that also delivers answers to asynchronous requests, in their order. */
    private final AtomicInteger connections = new AtomicInteger();
    private long values;
    private ZooKeeper client;

    private Recorder(int number, long seed, List<String> keys, String hosts) throws Exception {
        this.number = number;
        this.keys = keys;
        this.hosts = hosts;
        chance = new Random(seed + number);
        values = number * 1_000_000L;
        connect();
    }

    private void connect() throws Exception {
        client = new ZooKeeper(hosts, (int) SESSION_TIMEOUT.toMillis(), this::countConnection);
    }

    private void countConnection(WatchedEvent event) {
        connections.incrementAndGet();
    }

    @Override
    void work() {
        try {
            while (goesOn(PAUSE)) {
                ask(choose());
            }
        } catch (Exception error) {
            say("complaint %d %s", number, error);
        }
    }

    private void ask(Request request) throws Exception {
        long start = System.nanoTime();
        Answer answer;
        try {
            answer = perform(request);
        } catch (KeeperException.NoNodeException | KeeperException.NodeExistsException
                | KeeperException.BadVersionException refusal) {
            answer = Answer.refused(refusal);
        } catch (KeeperException.NotReadOnlyException refusal) {
            say("refused %d %s", number, refusal.code());
            return;
        } catch (KeeperException.ConnectionLossException | KeeperException.SessionExpiredException
                | KeeperException.SessionMovedException unknown) {
            tell(request, start, "null");
            if (unknown.code() == KeeperException.Code.SESSIONEXPIRED) {
                client.close();
                connect();
            }
            return;
        } catch (Unsynced another) {
            return;
        } catch (KeeperException error) {
            say("complaint %d %s of %s: %s", number, request.kind, request.key, error);
            return;
        }
        long end = System.nanoTime();
        remember(request, answer);
        tell(request, start, "{\"end\":%d,%s}".formatted(end, answer.toJson()));
    }

    private Request choose() {
        int place = chance.nextInt(keys.size());
        String key = keys.get(place);
        Integer known = versions.get(key);
        Kind kind = KINDS[chance.nextInt(KINDS.length)];
        if (kind == Kind.CHECKED_SET && known == null) {
            kind = Kind.SET;
        }
        Integer expected = kind == Kind.CHECKED_SET || chance.nextInt(10) < 7 ? known : null;
        values++;
        return switch (kind) {
            case CREATE -> new Request(kind, key, null, values, null);
            case SET, CHECKED_SET, REPLACE -> new Request(kind, key, null, values, expected);
            case DELETE -> new Request(kind, key, null, null, expected);
            case READ -> new Request(kind, key, null, null, null);
            // The znode beside it: 0 and 1, or 2 and 3.
            case READ_BOTH -> new Request(kind, key, keys.get(place ^ 1), null, null);
        };
    }

    private Answer perform(Request request) throws Exception {
        switch (request.kind) {
            case CREATE -> client.create(request.key, request.text(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            case SET -> {
                return Answer.at(client.setData(request.key, request.text(), request.version()));
            }
            case CHECKED_SET -> {
                List<OpResult> results = multi(
                        Op.check(request.key, request.version()), Op.setData(request.key, request.text(), -1));
                return Answer.at(((OpResult.SetDataResult) results.get(1)).getStat());
            }
            case REPLACE -> multi(
                    Op.delete(request.key, request.version()),
                    Op.create(request.key, request.text(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
            case DELETE -> client.delete(request.key, request.version());
            case READ -> {
                return read(request.key);
            }
            case READ_BOTH -> {
                return readBoth(request.key, request.other);
            }
        }
        return Answer.DONE;
    }

    private List<OpResult> multi(Op... operations) throws Exception {
        return client.multi(List.of(operations));
    }

    private Answer read(String key) throws Exception {
        return synced(key, (before, answered) -> client.getData(key, false, (code, path, context, data, stat) -> {
            if (isFrom(before, code, path, answered)) {
                answered.complete(Answer.read(data, stat));
            }
        }, null));
    }

    /** Both at one moment. */
    private Answer readBoth(String one, String other) throws Exception {
        List<Op> reads = List.of(Op.getData(one), Op.getData(other));
        return synced(one, (before, answered) -> client.multi(reads, (code, path, context, results) -> {
            // With results the code is that of the first read that was refused.
            if (isFrom(before, results == null ? code : KeeperException.Code.OK.intValue(), one, answered)) {
                answered.complete(new Answer("ok", null, null, results.stream().map(Recorder::part).toList()));
            }
        }, null));
    }

    private static Answer part(OpResult result) {
        return result instanceof OpResult.GetDataResult read
                ? Answer.read(read.getData(), read.getStat())
                : Answer.refused(KeeperException.create(KeeperException.Code.get(((OpResult.ErrorResult) result).getErr())));
    }

    /** True if an answer came over the connection with this number, and is none that refuses; else that is told. */
    private boolean isFrom(int before, int code, String path, CompletableFuture<Answer> answered) {
        if (connections.get() != before) {
            answered.completeExceptionally(new Unsynced());
        } else if (code != KeeperException.Code.OK.intValue()) {
            answered.completeExceptionally(KeeperException.create(KeeperException.Code.get(code), path));
        } else {
            return true;
        }
        return false;
    }

    /** A sync and a read behind it, over one connection. */
    private Answer synced(String key, BiConsumer<Integer, CompletableFuture<Answer>> read) throws Exception {
        var synced = new CompletableFuture<Integer>();
        var answered = new CompletableFuture<Answer>();
        int before = connections.get();
        client.sync(key, (code, path, context) -> synced.complete(code), null);
        read.accept(before, answered);
        if (synced.get() != KeeperException.Code.OK.intValue()) {
            throw KeeperException.create(KeeperException.Code.get(synced.get()), key);
        }
        try {
            return answered.get();
        } catch (java.util.concurrent.ExecutionException error) {
            throw (Exception) error.getCause();
        }
    }

    private void remember(Request request, Answer answer) {
        if (request.kind == Kind.READ_BOTH) {
            return;
        }
        if (!answer.code.equals("ok") || request.kind == Kind.DELETE) {
            versions.remove(request.key);
        } else {
            versions.put(request.key, answer.version == null ? 0 : answer.version);
        }
    }

    private void tell(Request request, long start, String answer) {
        say("{\"client\":%d,%s,\"start\":%d,\"answer\":%s}", number, request.toJson(), start, answer);
    }

    @Override
    void close() throws Exception {
        client.close();
    }

    public static void main(String... arguments) throws Exception {
        long seed = Long.parseUnsignedLong(arguments[0]);
        int first = Integer.parseInt(arguments[1]);
        List<String> keys = List.of(arguments[2].split(","));
        String lock = arguments[3];
        var sessions = new ArrayList<Worker>();
        for (int place = 0; place + 4 < arguments.length; place++) {
            String hosts = arguments[place + 4];
            boolean isLock = hosts.startsWith("lock@");
            sessions.add(isLock
                    ? new Contender(first + place, lock, hosts.substring(5))
                    : new Recorder(first + place, seed, keys, hosts));
        }
        live(sessions);
    }
}
