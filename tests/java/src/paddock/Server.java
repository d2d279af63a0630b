package paddock;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;

/**
 * One server process for the tests: Paddock or Apache ZooKeeper, started on the same zoo.cfg. The environment says
 * which, as in {@code tests/support/server.py}: TEST_SERVER, PADDOCK_BIN, ZOOKEEPER_CLASSPATH.
 *
 * <p>With TEST_MEMBERS=3 it is a follower of an ensemble of three; the other two are never touched. With TEST_GROUPS=8, too, the ensemble has
 * eight Raft groups. With TEST_ENGINE=etcd it is a
 * front end on an etcd of its own, and the members of an ensemble are front ends on one. With TEST_CROSS_CHECK one that is started
 * without settings of its own checks its answers against an Apache ZooKeeper.
 *
 * <p>It keeps its port and data over {@link #kill} and {@link #restart}, so clients find it again.
 */
final class Server implements AutoCloseable {
    private static final Duration READY = Duration.ofSeconds(30);
    static final String KIND = System.getenv().getOrDefault("TEST_SERVER", "paddock");

    /** Whether servers are front ends on an etcd. */
    private static final boolean IS_ON_ETCD = System.getenv().getOrDefault("TEST_ENGINE", "log").equals("etcd");

    private static final Set<Integer> GIVEN = new HashSet<>();

    /** Tag of tests that kill it. */
    static final String KILLED = "killed";

    /** How many there are, this one included. */
    static final int MEMBERS = Integer.parseInt(System.getenv().getOrDefault("TEST_MEMBERS", "1"));

    /** Raft groups of ensembles, over which {@link #spread} spreads znodes. */
    static final int GROUPS = Integer.parseInt(System.getenv().getOrDefault("TEST_GROUPS", "1"));

    private static final String ADMINISTRATOR = "owner:secret";

    private final Path directory;
    /** Of the interface for administrators, if there are several groups. */
    private final int adminPort;
    private final int port;
    private final List<Server> peers = new ArrayList<>();
    private final List<String> jvmFlags = new ArrayList<>();
    /** The etcd that it is on; {@code null} for a server with a log of its own. */
    private Etcd etcd;
    private boolean ownsEtcd;
    private final Map<String, String> variables = new HashMap<>();
    private String kind = KIND;
    /** The ZooKeeper that it checks its answers against; {@code null} if it does not. */
    private Server reference;
    private Process process;

    /** Starts a server and waits until it serves. */
    Server() throws Exception {
        this(1, MEMBERS == 1 ? List.of() : serverLines(MEMBERS));
        putOnEtcd();
        if (CrossCheck.IS_ON) {
            reference = new Server(1, List.of(), 1);
            reference.kind = "zookeeper";
            reference.start();
        }
        start();
    }

    /** Starts a server alone with more lines in its zoo.cfg, and system properties as for ZooKeeper's JVM. */
    static Server with(List<String> lines, List<String> jvmFlags) throws Exception {
        return with(lines, jvmFlags, Map.of());
    }

    /** The same, with variables of its environment. */
    static Server with(List<String> lines, List<String> jvmFlags, Map<String, String> variables) throws Exception {
        var server = new Server(1, lines, 1);
        server.jvmFlags.addAll(jvmFlags);
        server.putOnEtcd();
        server.variables.putAll(variables);
        server.start();
        return server;
    }

    /** Starts the members of an ensemble, each of which may be killed and started again, and waits until they serve. */
    static List<Server> ensemble(int members) throws Exception {
        List<String> lines = IS_ON_ETCD ? List.of() : serverLines(members);
        var ensemble = new ArrayList<Server>();
        for (int id = 1; id <= members; id++) {
            ensemble.add(new Server(id, lines, 1));
        }
        ensemble.get(0).putOnEtcd();
        for (Server member : ensemble) {
            member.etcd = ensemble.get(0).etcd;
        }
        startAll(ensemble);
        return ensemble;
    }

    /** Starts them at the same time, and waits until they serve. */
    static void startAll(List<Server> members) throws Exception {
        for (Server member : members) {
            member.launch();
        }
        for (Server member : members) {
            member.waitUntilItServes();
        }
    }

    private Server(int id, List<String> serverLines) throws Exception {
        this(id, serverLines, MEMBERS);
    }

    private Server(int id, List<String> serverLines, int members) throws Exception {
        directory = Files.createTempDirectory("server-");
        port = freePort();
        adminPort = GROUPS == 1 ? 0 : freePort();
        Files.createDirectories(directory.resolve("data"));
        Files.writeString(directory.resolve("zoo.cfg"), String.join("\n",
                "dataDir=" + directory.resolve("data"),
                "clientPort=" + port,
                "clientPortAddress=127.0.0.1",
                "tickTime=500",
                "maxClientCnxns=0",
                "4lw.commands.whitelist=*",
                "admin.enableServer=" + (GROUPS > 1),
                "extendedTypesEnabled=true",
                "znode.container.checkIntervalMs=200",
                "initLimit=10",
                "syncLimit=5",
                GROUPS == 1 ? "" : "admin.serverAddress=127.0.0.1\nadmin.serverPort=" + adminPort,
                GROUPS == 1 || serverLines.isEmpty() ? "" : "paddock.group_count=" + GROUPS,
                String.join("\n", serverLines),
                ""));
        Files.writeString(directory.resolve("data").resolve("myid"), Integer.toString(id));
        for (int peer = 2; id == 1 && peer <= members; peer++) {
            peers.add(new Server(peer, serverLines));
        }
    }

    /** Gives it an etcd of its own, if servers are front ends. */
    private void putOnEtcd() throws Exception {
        if (IS_ON_ETCD) {
            etcd = new Etcd();
            ownsEtcd = true;
        }
    }

    private static List<String> serverLines(int members) throws IOException {
        var lines = new ArrayList<String>();
        for (int id = 1; id <= members; id++) {
            lines.add("server.%d=127.0.0.1:%d:%d".formatted(id, freePort(), freePort()));
        }
        return lines;
    }

    /** Spreads the children of a znode, which need not be there yet, over the groups of its ensemble, if it has several. */
    void spread(String path) throws Exception {
        if (GROUPS == 1 || peers.isEmpty()) {
            return;
        }
        Eventually.holds("each group has a leader", READY, () -> {
            String told = word("mntr");
            return told.contains("zk_groups\t" + GROUPS + "\n") && told.contains("zk_groups_without_leader\t0\n")
                    && told.contains("zk_groups_joining\t0\n");
        });
        try (var client = Client.of(hosts())) {
            client.addAuthInfo("digest", ADMINISTRATOR.getBytes(StandardCharsets.UTF_8));
            var everyone = new ArrayList<>(ZooDefs.Ids.OPEN_ACL_UNSAFE);
            everyone.addAll(ZooDefs.Ids.CREATOR_ALL_ACL);
            client.setACL("/", everyone, -1);
            if (client.exists(path, false) == null) {
                client.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            }
        }
        Path identity = Files.writeString(directory.resolve("identity"), "digest:" + ADMINISTRATOR);
        for (String[] order : new String[][] {{"split"}, {"move", "--evenly", "--at-once", "1024"}}) {
            var command = new ArrayList<>(List.of(System.getenv("PADDOCK_BIN"), "groups", order[0], "127.0.0.1:" + adminPort, path));
            command.addAll(List.of(order).subList(1, order.length));
            command.addAll(List.of("--auth", "@" + identity));
            Process groups = new ProcessBuilder(command).redirectErrorStream(true).start();
            String told = new String(groups.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (groups.waitFor() != 0) {
                throw new AssertionError(String.join(" ", command) + ": " + told);
            }
        }
    }

    String hosts() {
        return "127.0.0.1:" + port;
    }

    /** Ends the server the way a crash does. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    void restart() throws Exception {
        if (process.isAlive()) {
            kill();
        }
        start();
    }

    /** Kills the server and removes what it stored. */
    @Override
    public void close() throws Exception {
        for (Server peer : peers) {
            peer.close();
        }
        try {
            if (reference != null) {
                CrossCheck.judge(this);
            }
        } finally {
            remove();
        }
    }

    private void remove() throws Exception {
        if (reference != null) {
            reference.close();
        }
        kill();
        if (ownsEtcd) {
            etcd.close();
        }
        try (var files = Files.walk(directory)) {
            for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
                Files.delete(file);
            }
        }
    }

    private void start() throws Exception {
        for (Server peer : peers) {
            if (peer.process == null) {
                peer.launch();
            }
        }
        // Who comes to a leader follows it.
        Eventually.holds("a peer leads", READY,
                () -> peers.isEmpty() || peers.stream().anyMatch(peer -> peer.word("srvr").contains("Mode: leader")));
        launch();
        waitUntilItServes();
    }

    private void waitUntilItServes() throws Exception {
        Eventually.holds("the server serves\n" + logFile(), READY, () -> word("srvr").contains("Mode: "));
    }

    private void launch() throws IOException {
        var log = ProcessBuilder.Redirect.appendTo(logFile());
        var builder = new ProcessBuilder(command()).redirectErrorStream(true).redirectOutput(log);
        // As ZooKeeper's scripts are told them.
        builder.environment().put("SERVER_JVMFLAGS", String.join(" ", jvmFlags));
        builder.environment().putAll(variables);
        process = builder.start();
    }

    File logFile() {
        return directory.resolve("server.log").toFile();
    }

    private List<String> command() {
        String config = directory.resolve("zoo.cfg").toString();
        if (kind.equals("paddock")) {
            var paddock = new ArrayList<String>(List.of(System.getenv("PADDOCK_BIN"), "server", "--config", config));
            if (etcd != null) {
                paddock.addAll(etcd.arguments());
            }
            if (MEMBERS > 1) {
                // The peers begin without the server under test.
                paddock.add("--found-by-majority");
            }
            if (reference != null) {
                paddock.addAll(List.of("--cross-check", reference.hosts()));
            }
            return paddock;
        }
        var command = new ArrayList<String>(
                List.of("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dznode.container.checkIntervalMs=200"));
        command.addAll(jvmFlags);
        command.addAll(List.of("-cp", System.getenv("ZOOKEEPER_CLASSPATH"),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", config));
        return command;
    }

    /** The answer to a four-letter word; nothing if the server can't be reached. */
    String word(String word) {
        try (var socket = new Socket()) {
            // A connection that ZooKeeper accepts while it starts may never be answered.
            socket.setSoTimeout(1000);
            socket.connect(new InetSocketAddress("127.0.0.1", port), 1000);
            socket.getOutputStream().write(word.getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreachable) {
            return "";
        }
    }

    /**
     * One that nobody has and that was not given before, as several servers take theirs later. Below Linux's ephemeral range,
     * where no client's outgoing connection can take it while the server is down. TEST_PORTS narrows the choice, where other
     * tests start servers meanwhile.
     */
    static int freePort() throws IOException {
        var random = new Random();
        var bounds = System.getenv().getOrDefault("TEST_PORTS", "20000..32000").split("\\.\\.");
        int first = Integer.parseInt(bounds[0]);
        int count = Integer.parseInt(bounds[1]) - first;
        for (int attempt = 0; attempt < 100; attempt++) {
            int port = first + random.nextInt(count);
            if (!GIVEN.add(port)) {
                continue;
            }
            try (var probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return probe.getLocalPort();
            } catch (IOException taken) {
                continue;
            }
        }
        throw new IOException("no free port found");
    }
}
