package paddock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.security.auth.Subject;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import javax.security.auth.login.Configuration;
import javax.security.auth.login.LoginContext;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.ietf.jgss.GSSManager;
import org.ietf.jgss.Oid;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** SASL with Kerberos: tickets of a real KDC, as ZooKeeper's own client shows them, and tokens as only an attacker sends them. */
final class KerberosTest {
    private static final String MODULE = "com.sun.security.auth.module.Krb5LoginModule";
    private static final String SERVICE = "zookeeper/localhost";
    private static final String OTHER_SERVICE = "other/localhost";
    private static final byte[] DATA = "1".getBytes(UTF_8);

    @TempDir
    private static Path directory;

    private static final Map<String, Path> keytabs = new HashMap<>();
    private static Configuration before;
    private static Kdc kdc;
    private static Server server;

    @BeforeAll
    static void start() throws Exception {
        kdc = new Kdc(directory);
        for (String name : List.of(SERVICE, OTHER_SERVICE, "alice", "app/box.example.com", "root")) {
            keytabs.put(name, kdc.principal(name));
        }
        System.setProperty("java.security.krb5.conf", kdc.config().toString());
        server = server(List.of());
        before = Configuration.getConfiguration();
        Configuration.setConfiguration(new Principals());
    }

    @AfterAll
    static void stop() throws Exception {
        Configuration.setConfiguration(before);
        System.clearProperty("java.security.krb5.conf");
        server.close();
        kdc.close();
    }

    private static Server server(List<String> flags) throws Exception {
        Path jaas = directory.resolve("jaas.conf");
        Files.writeString(jaas, """
                Server {
                    %s required
                    useKeyTab=true
                    keyTab="%s"
                    storeKey=true
                    useTicketCache=false
                    principal="%s@%s";
                };
                """.formatted(MODULE, keytabs.get(SERVICE), SERVICE, Kdc.REALM));
        var all = new ArrayList<>(List.of(
                "-Djava.security.auth.login.config=" + jaas, "-Djava.security.krb5.conf=" + kdc.config()));
        all.addAll(flags);
        return Server.with(
                List.of("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                        "superUser=root@" + Kdc.REALM),
                all, Map.of("KRB5_CONFIG", kdc.config().toString(), "KRB5RCACHEDIR", directory.toString()));
    }

    /** A section of a client's JAAS file for each principal that has a keytab. */
    private static final class Principals extends Configuration {
        @Override
        public AppConfigurationEntry[] getAppConfigurationEntry(String section) {
            if (!keytabs.containsKey(section)) {
                return null;
            }
            var options = Map.of("useKeyTab", "true", "keyTab", keytabs.get(section).toString(), "storeKey", "true",
                    "principal", section + "@" + Kdc.REALM, "refreshKrb5Config", "true");
            return new AppConfigurationEntry[] {
                new AppConfigurationEntry(MODULE, LoginModuleControlFlag.REQUIRED, options)
            };
        }
    }

    private static ZooKeeper connect(Server to, String principal) throws Exception {
        return connect(to, principal, SERVICE, KeeperState.SaslAuthenticated);
    }

    private static ZooKeeper connect(Server to, String principal, String service, KeeperState awaited) throws Exception {
        var config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, principal);
        config.setProperty("zookeeper.server.principal", service);
        var reached = new CountDownLatch(1);
        var client = new ZooKeeper(to.hosts(), 10_000, event -> {
            if (event.getState() == awaited) {
                reached.countDown();
            }
        }, config);
        assertTrue(reached.await(20, TimeUnit.SECONDS), principal + " is " + awaited);
        return client;
    }

    private static List<ACL> only(String user) {
        // The client asks it for null.
        return Collections.singletonList(new ACL(Perms.ALL, new Id("sasl", user)));
    }

    /** A client's token for a service, made with a fresh ticket. */
    private static byte[] token(String principal, String service) throws Exception {
        var login = new LoginContext(principal, new Subject());
        login.login();
        return Subject.doAs(login.getSubject(), (PrivilegedExceptionAction<byte[]>) () -> {
            var manager = GSSManager.getInstance();
            var name = manager.createName(service + "@" + Kdc.REALM, new Oid("1.2.840.113554.1.2.2.1"));
            var context = manager.createContext(name, new Oid("1.2.840.113554.1.2.2"), null, 0);
            context.requestMutualAuth(true);
            return context.initSecContext(new byte[0], 0, 0);
        });
    }

    private static void serverIsWell() throws Exception {
        try (var alice = connect(server, "alice")) {
            assertNotNull(alice.exists("/", false));
        }
    }

    @Test
    void aTicketIsAnIdentity() throws Exception {
        try (var alice = connect(server, "alice"); var other = Client.of(server.hosts())) {
            alice.create("/alice", DATA, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            assertEquals(only("alice@EXAMPLE.COM"), alice.getACL("/alice", null));
            assertArrayEquals(DATA, alice.getData("/alice", false, null));
            assertThrows(KeeperException.NoAuthException.class, () -> other.getData("/alice", false, null));
        }
    }

    @Test
    void aServiceIsAnIdentityWithItsHost() throws Exception {
        try (var app = connect(server, "app/box.example.com")) {
            app.create("/app", DATA, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            assertEquals(only("app/box.example.com@EXAMPLE.COM"), app.getACL("/app", null));
        }
    }

    @Test
    void theSuperUserMayDoEverything() throws Exception {
        try (var alice = connect(server, "alice"); var root = connect(server, "root")) {
            alice.create("/alices", DATA, only("alice@EXAMPLE.COM"), CreateMode.PERSISTENT);
            assertArrayEquals(DATA, root.getData("/alices", false, null));
        }
    }

    @Test
    void hostAndRealmAreRemovedWhereThatIsWanted() throws Exception {
        var flags = List.of("-Dzookeeper.kerberos.removeHostFromPrincipal=true",
                "-Dzookeeper.kerberos.removeRealmFromPrincipal=true",
                "-Dzookeeper.security.auth_to_local=RULE:[2:$1](app)s/app/application/DEFAULT");
        try (var shortening = server(flags); var alice = connect(shortening, "alice");
                var app = connect(shortening, "app/box.example.com")) {
            alice.create("/alice", DATA, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            assertEquals(only("alice"), alice.getACL("/alice", null));
            app.create("/app", DATA, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            assertEquals(only("application"), app.getACL("/app", null));
        }
    }

    @Test
    void aTicketForAnotherServiceIsRefused() throws Exception {
        try (var client = connect(server, "alice", OTHER_SERVICE, KeeperState.AuthFailed)) {
            assertThrows(KeeperException.class, () -> client.exists("/", false));
        }
        serverIsWell();
    }

    @Test
    void aTokenCountsOnce() throws Exception {
        byte[] token = token("alice", SERVICE);
        try (var wire = new SaslWire(server.hosts())) {
            assertNotNull(wire.token(token), "the server proves its own name");
            assertTrue(SaslWire.refuses(server.hosts(), token), "the same token of somebody else");
            assertNotNull(wire.token(new byte[0]), "the offer of layers");
        }
        serverIsWell();
    }

    @Test
    void aTokenOfLongAgoIsRefused() throws Exception {
        byte[] token = token("alice", SERVICE);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(4);
        // Clocks may differ by two seconds.
        while (System.nanoTime() < end) {
            serverIsWell();
        }
        assertTrue(SaslWire.refuses(server.hosts(), token));
    }

    @Test
    void malformedTokensHarmNobody() throws Exception {
        byte[] good = token("alice", SERVICE);
        var random = new Random(7);
        for (int round = 0; round < 50; round++) {
            byte[] bad = Arrays.copyOf(good, round % 2 == 0 ? good.length : 1 + random.nextInt(good.length - 1));
            bad[random.nextInt(bad.length)] ^= (byte) (1 + random.nextInt(255));
            // What the flipped bit is for decides whether the server notices it; nobody is hurt, and a whole token follows.
            SaslWire.refuses(server.hosts(), bad);
        }
        assertTrue(SaslWire.refuses(server.hosts(), new byte[] {0x60}));
        assertTrue(SaslWire.refuses(server.hosts(), "not a token".getBytes(UTF_8)));
        serverIsWell();
    }

    @Test
    void tooLargeTokensHarmNobody() throws Exception {
        assertTrue(SaslWire.refuses(server.hosts(), new byte[300_000]));
        // ZooKeeper ignores what stands behind a good token.
        SaslWire.refuses(server.hosts(), Arrays.copyOf(token("alice", SERVICE), 300_000));
        serverIsWell();
    }

    @Test
    void aWrongChoiceOfALayerIsRefused() throws Exception {
        byte[] first = token("alice", SERVICE);
        assertTrue(SaslWire.refuses(server.hosts(), first, new byte[0], new byte[0]));
        byte[] second = token("alice", SERVICE);
        assertTrue(SaslWire.refuses(server.hosts(), second, new byte[0], "a choice that nobody signed".getBytes(UTF_8)));
        byte[] third = token("alice", SERVICE);
        assertTrue(SaslWire.refuses(server.hosts(), third, "too early".getBytes(UTF_8)));
        serverIsWell();
    }
}
