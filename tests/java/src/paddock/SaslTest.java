package paddock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import javax.security.auth.login.Configuration;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** SASL with DIGEST-MD5, as ZooKeeper's own client speaks it. */
final class SaslTest {
    private static final String MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule";
    private static final byte[] DATA = "1".getBytes(UTF_8);

    private static Path directory;
    private static Configuration before;
    private static Server server;

    @BeforeAll
    static void start() throws Exception {
        directory = Files.createTempDirectory("sasl-");
        Path jaas = directory.resolve("jaas.conf");
        Files.writeString(jaas, """
                Server {
                    %s required
                    user_bob="bob's secret"
                    user_jürgen="süß"
                    user_root="root's secret";
                };
                """.formatted(MODULE));
        server = Server.with(
                List.of("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "superUser=root"),
                List.of("-Djava.security.auth.login.config=" + jaas));
        before = Configuration.getConfiguration();
        Configuration.setConfiguration(new Users());
    }

    @AfterAll
    static void stop() throws Exception {
        Configuration.setConfiguration(before);
        server.close();
        Files.delete(directory.resolve("jaas.conf"));
        Files.delete(directory);
    }

    /** A section of a client's JAAS file for each user: its name, a slash, its password. */
    private static final class Users extends Configuration {
        @Override
        public AppConfigurationEntry[] getAppConfigurationEntry(String section) {
            String[] user = section.split("/");
            if (user.length != 2) {
                return null;
            }
            var options = Map.of("username", user[0], "password", user[1]);
            return new AppConfigurationEntry[] {
                new AppConfigurationEntry(MODULE, LoginModuleControlFlag.REQUIRED, options)
            };
        }
    }

    private static ZooKeeper connect(String user, String password, KeeperState awaited) throws Exception {
        var config = new ZKClientConfig();
        // Since 3.9 the client does without DIGEST-MD5 unless it is told otherwise.
        config.setProperty("zookeeper.fips-mode", "false");
        config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, user + "/" + password);
        var reached = new CountDownLatch(1);
        var client = new ZooKeeper(server.hosts(), 10_000, event -> {
            if (event.getState() == awaited) {
                reached.countDown();
            }
        }, config);
        assertTrue(reached.await(20, TimeUnit.SECONDS), user + " is " + awaited);
        return client;
    }

    private static ZooKeeper connect(String user, String password) throws Exception {
        return connect(user, password, KeeperState.SaslAuthenticated);
    }

    private static List<ACL> only(String user) {
        // The client asks it for null.
        return Collections.singletonList(new ACL(Perms.ALL, new Id("sasl", user)));
    }

    @Test
    void usersHaveTheirOwnZnodes() throws Exception {
        try (var bob = connect("bob", "bob's secret"); var other = Client.of(server.hosts())) {
            bob.create("/bob", DATA, only("bob"), CreateMode.PERSISTENT);
            assertArrayEquals(DATA, bob.getData("/bob", false, null));
            assertThrows(KeeperException.NoAuthException.class, () -> other.getData("/bob", false, null));
            bob.create("/own", DATA, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            assertEquals(only("bob"), bob.getACL("/own", null));
        }
    }

    @Test
    void namesAndPasswordsMayHaveAnyCharacters() throws Exception {
        try (var client = connect("jürgen", "süß")) {
            client.create("/jürgen", DATA, only("jürgen"), CreateMode.PERSISTENT);
            assertArrayEquals(DATA, client.getData("/jürgen", false, null));
        }
    }

    @Test
    void theSuperUserMayDoEverything() throws Exception {
        try (var bob = connect("bob", "bob's secret"); var root = connect("root", "root's secret")) {
            bob.create("/bobs", DATA, only("bob"), CreateMode.PERSISTENT);
            assertArrayEquals(DATA, root.getData("/bobs", false, null));
        }
    }

    @Test
    void aWrongPasswordIsRefused() throws Exception {
        try (var client = connect("bob", "wrong", KeeperState.AuthFailed)) {
            assertThrows(KeeperException.class, () -> client.exists("/", false));
        }
        try (var bob = connect("bob", "bob's secret")) {
            assertNotNull(bob.exists("/", false));
        }
    }
}
