package paddock;

import static org.apache.zookeeper.ZooDefs.Ids.CREATOR_ALL_ACL;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** ZooKeeper's Java client speaks TLS, with stores made by keytool as ZooKeeper's guide makes them. */
final class TlsTest {
    private static final String PASSWORD = "password";

    @TempDir
    private static Path stores;

    private static Server server;
    private static int securePort;

    @BeforeAll
    static void startServer() throws Exception {
        makeKey("server", "JKS");
        makeKey("client", "PKCS12");
        makeKey("stranger", "PKCS12");
        trust("servers", "server");
        trust("clients", "client");
        securePort = Server.freePort();
        server = Server.with(List.of(
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                "secureClientPort=" + securePort,
                "secureClientPortAddress=127.0.0.1",
                "client.portUnification=true",
                "ssl.keyStore.location=" + stores.resolve("server.jks"),
                "ssl.keyStore.password=" + PASSWORD,
                "ssl.trustStore.location=" + stores.resolve("clients.p12"),
                "ssl.trustStore.password=" + PASSWORD,
                "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider"), List.of());
    }

    @AfterAll
    static void stopServer() throws Exception {
        server.close();
    }

    @Test
    void bothPortsServeTlsAndACertificateIsAnIdentity() throws Exception {
        byte[] data = new byte[500_000];
        data[data.length - 1] = 7;
        try (var secure = client("127.0.0.1:" + securePort, "client"); var unified = client(server.hosts(), "client")) {
            secure.create("/tls", data, CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            assertEquals("CN=client,O=Example\\, Inc.,C=DE", secure.getACL("/tls", new Stat()).get(0).getId().getId());
            assertArrayEquals(data, unified.getData("/tls", false, null));
        }
        try (var plaintext = Client.of(server.hosts())) {
            assertThrows(KeeperException.NoAuthException.class, () -> plaintext.getData("/tls", false, null));
        }
    }

    @Test
    void aStrangerIsTurnedAway() throws Exception {
        try (var stranger = new ZooKeeper("127.0.0.1:" + securePort, 10_000, event -> {}, config("stranger"))) {
            assertThrows(KeeperException.ConnectionLossException.class, () -> stranger.exists("/", false));
            assertFalse(stranger.getState().isConnected());
        }
        client("127.0.0.1:" + securePort, "client").close();
    }

    /** A connected client that shows the certificate of {@code name}. */
    private static ZooKeeper client(String hosts, String name) throws Exception {
        var connected = new CountDownLatch(1);
        var client = new ZooKeeper(hosts, 10_000, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        }, config(name));
        if (!connected.await(20, TimeUnit.SECONDS)) {
            client.close();
            throw new AssertionError("no connection to " + hosts);
        }
        return client;
    }

    private static ZKClientConfig config(String name) {
        var config = new ZKClientConfig();
        config.setProperty("zookeeper.client.secure", "true");
        config.setProperty("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty");
        config.setProperty("zookeeper.ssl.keyStore.location", stores.resolve(name + ".p12").toString());
        config.setProperty("zookeeper.ssl.keyStore.password", PASSWORD);
        config.setProperty("zookeeper.ssl.trustStore.location", stores.resolve("servers.p12").toString());
        config.setProperty("zookeeper.ssl.trustStore.password", PASSWORD);
        return config;
    }

    private static void makeKey(String name, String type) throws Exception {
        Path store = stores.resolve(name + (type.equals("JKS") ? ".jks" : ".p12"));
        keytool("-genkeypair", "-alias", name, "-keyalg", "RSA", "-keysize", "2048", "-validity", "30",
                "-dname", "CN=" + name + ",O=Example\\, Inc.,C=DE", "-ext", "san=ip:127.0.0.1,dns:localhost",
                "-storetype", type, "-keystore", store.toString());
        keytool("-exportcert", "-alias", name, "-storetype", type, "-keystore", store.toString(),
                "-file", stores.resolve(name + ".cer").toString());
    }

    /** A trust store of PKCS12 that holds one certificate. */
    private static void trust(String store, String name) throws Exception {
        keytool("-importcert", "-noprompt", "-alias", name, "-file", stores.resolve(name + ".cer").toString(),
                "-storetype", "PKCS12", "-keystore", stores.resolve(store + ".p12").toString());
    }

    private static void keytool(String... arguments) throws Exception {
        var command = new ArrayList<>(List.of("keytool"));
        command.addAll(List.of(arguments));
        command.addAll(List.of("-storepass", PASSWORD));
        if (arguments[0].equals("-genkeypair")) {
            // Else it asks for one, of a store of the older type.
            command.addAll(List.of("-keypass", PASSWORD));
        }
        var process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IOException(command + ": " + output);
        }
    }
}
