package paddock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** ZooKeeper's own command line, as a person uses it: lines in, lines out. Each test has znodes of its own. */
final class CommandLineTest {
    private static Server server;

    @BeforeAll
    static void startServer() throws Exception {
        server = new Server();
    }

    @AfterAll
    static void stopServer() throws Exception {
        server.close();
    }

    @Test
    void createsReadsAndWrites() throws Exception {
        check("""
                create /app hello
                create /app again
                create -s /app/job- one
                create -e /app/mine me
                create -c /app/box
                create -t 60000 /app/brief data
                create /missing/child
                get /app
                set /app changed
                set -v 9 /app changed
                set -v 1 /app once-more
                get /app
                get /missing
                """, """
                Created /app
                Node already exists: /app
                Created /app/job-0000000000
                Created /app/mine
                Created /app/box
                Created /app/brief
                Node does not exist: /missing/child
                hello
                version No is not valid : /app
                once-more
                Node does not exist: /missing
                """);
    }

    @Test
    void showsStatsAndLists() throws Exception {
        check("""
                create /list data
                create /list/a
                create /list/a/b
                create -e /list/mine
                set -s /list longer
                get -s /list
                stat /list/mine
                ls /list
                ls -s /list/a
                ls -R /list
                getAllChildrenNumber /list
                getEphemerals /list
                stat /missing
                """, """
                Created /list
                Created /list/a
                Created /list/a/b
                Created /list/mine
                """ + stat(2, 1, 0, 6, 2) + "longer\n" + stat(2, 1, 0, 6, 2) + """
                cZxid = *
                ctime = *
                mZxid = *
                mtime = *
                pZxid = *
                cversion = 0
                dataVersion = 0
                aclVersion = 0
                ephemeralOwner = 0x*
                dataLength = 0
                numChildren = 0
                [a, mine]
                [b]
                """ + stat(1, 0, 0, 0, 1) + """
                /list
                /list/a
                /list/mine
                /list/a/b
                3
                [/list/mine]
                Node does not exist: /missing
                """);
    }

    @Test
    void deletes() throws Exception {
        check("""
                create /gone
                create /gone/a
                create /gone/a/b
                delete /gone
                delete -v 7 /gone/a/b
                delete /gone/a/b
                create /gone/c
                deleteall /gone
                stat /gone
                delete /gone
                """, """
                Created /gone
                Created /gone/a
                Created /gone/a/b
                Node not empty: /gone
                version No is not valid : /gone/a/b
                Created /gone/c
                Node does not exist: /gone
                Node does not exist: /gone
                """);
    }

    @Test
    void guardsWithAcls() throws Exception {
        check("""
                create /read data world:anyone:r
                getAcl /read
                set /read other
                create /mine data
                addauth digest user:pass
                setAcl /mine auth:user:pass:cdrwa
                getAcl /mine
                setAcl -v 9 /mine world:anyone:cdrwa
                """, """
                Created /read
                'world,'anyone
                : r
                Insufficient permission : /read
                Created /mine
                'digest,'user:smGaoVKd/cQkjm7b88GyorAUz20=
                : cdrwa
                version No is not valid : /mine
                """);
        // Another session has not shown that password.
        check("get /mine\n", "Insufficient permission : /mine\n");
    }

    @Test
    void knowsWhoItIs() throws Exception {
        List<String> lines = run("""
                addauth digest user:pass
                whoami
                """);
        // The identities are a set, in no order.
        assertEquals(List.of("Auth scheme: User", "digest: user", "ip: 127.0.0.1"), lines.stream().sorted().toList());
    }

    @Test
    void keepsQuotas() throws Exception {
        check("""
                create /limited 12345
                setquota -n 3 /limited
                create /limited/a 67
                listquota /limited
                delquota -n /limited
                listquota /limited
                delquota /limited
                listquota /limited
                """, """
                Created /limited
                Created /limited/a
                absolute path is /zookeeper/quota/limited/zookeeper_limits
                Output quota for /limited count=3,bytes=-1=;byteHardLimit=-1;countHardLimit=-1
                Output stat for /limited count=2,bytes=7
                absolute path is /zookeeper/quota/limited/zookeeper_limits
                Output quota for /limited count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=-1
                Output stat for /limited count=2,bytes=7
                absolute path is /zookeeper/quota/limited/zookeeper_limits
                quota for /limited does not exist.
                """);
    }

    @Test
    void watches() throws Exception {
        // The event comes while the next commands run, so its line is somewhere.
        List<String> lines = run("""
                create /watched data
                get -w /watched
                set /watched changed
                sync /watched
                addWatch /watched
                removewatches /watched
                sync /watched
                """);
        assertTrue(lines.containsAll(List.of(
                "Created /watched",
                "data",
                "WatchedEvent state:SyncConnected type:NodeDataChanged path:/watched zxid: *",
                "WatchedEvent state:SyncConnected type:PersistentWatchRemoved path:/watched zxid: *",
                "Sync is OK")), lines::toString);
    }

    @Test
    void remembersAndHelps() throws Exception {
        check("""
                create /history
                config
                history
                """, """
                Created /history
                0 - create /history
                1 - config
                2 - history
                """);
        List<String> lines = run("nonsense\n");
        assertTrue(lines.contains("Command not found: Command not found nonsense"), lines::toString);
    }

    @Test
    void oneCommandEndsWithItsExitCode() throws Exception {
        assertEquals(0, start("create", "/once").code());
        assertEquals(1, start("create", "/once").code());
        assertEquals(List.of("null"), start("get", "/once").lines());
    }

    /** What `stat` prints, times and zxids left out. */
    private static String stat(int cversion, int version, int aclVersion, int length, int children) {
        return """
                cZxid = *
                ctime = *
                mZxid = *
                mtime = *
                pZxid = *
                cversion = %d
                dataVersion = %d
                aclVersion = %d
                ephemeralOwner = 0x0
                dataLength = %d
                numChildren = %d
                """.formatted(cversion, version, aclVersion, length, children);
    }

    private static void check(String commands, String expected) throws Exception {
        assertEquals(expected, String.join("\n", run(commands)) + "\n");
    }

    /** Types commands into one session of the command line. */
    private static List<String> run(String commands) throws Exception {
        return command().type(commands + "quit\n").end().lines();
    }

    /** Runs one command without a session around it. */
    private static Ended start(String... words) throws Exception {
        return command(words).type("").end();
    }

    private static Running command(String... words) throws Exception {
        var command = new ArrayList<>(List.of(
                "java", "-XX:TieredStopAtLevel=1", "-DLOG_LEVEL=OFF", "-cp", System.getProperty("java.class.path"),
                "org.apache.zookeeper.ZooKeeperMain", "-server", server.hosts()));
        command.addAll(List.of(words));
        return new Running(new ProcessBuilder(command).redirectErrorStream(true).start());
    }

    private record Ended(int code, List<String> lines) {}

    private record Running(Process process) {
        Running type(String text) throws Exception {
            try (var input = process.getOutputStream()) {
                input.write(text.getBytes(StandardCharsets.UTF_8));
            }
            return this;
        }

        Ended end() throws Exception {
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(process.waitFor(20, TimeUnit.SECONDS), "the command line did not end");
            return new Ended(process.exitValue(), output.lines()
                    .filter(line -> !line.isEmpty() && !CHATTER.matcher(line).lookingAt())
                    .map(CommandLineTest::withoutTimes)
                    .toList());
        }
    }

    /** What it says about its connection. */
    private static final Pattern CHATTER = Pattern.compile(
            "Connecting to|Welcome to|JLine support|WATCHER::|WatchedEvent state:\\w+ type:None");

    private static String withoutTimes(String line) {
        return line.replaceAll("^([cmp]Zxid|[cm]time) = .*", "$1 = *")
                .replaceAll("^ephemeralOwner = 0x[1-9a-f][0-9a-f]*", "ephemeralOwner = 0x*")
                .replaceAll("(WatchedEvent .* zxid:) .*", "$1 *");
    }
}
