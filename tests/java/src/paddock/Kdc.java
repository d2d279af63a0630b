package paddock;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assertions;

/**
 * A key distribution centre of MIT Kerberos for one realm, in a directory of its own. KERBEROS_ROOT says where its programs were
 * unpacked, if they are not those of the machine.
 */
final class Kdc implements AutoCloseable {
    static final String REALM = "EXAMPLE.COM";

    private final Path directory;
    private final Process process;

    Kdc(Path directory) throws Exception {
        this.directory = directory;
        int port = Server.freePort();
        Files.writeString(config(), """
                [libdefaults]
                    default_realm = %1$s
                    dns_lookup_kdc = false
                    dns_lookup_realm = false
                    dns_canonicalize_hostname = false
                    rdns = false
                    udp_preference_limit = 1
                    clockskew = 2
                [realms]
                    %1$s = {
                        kdc = 127.0.0.1:%2$d
                    }
                """.formatted(REALM, port));
        Files.writeString(directory.resolve("kdc.conf"), """
                [kdcdefaults]
                    kdc_listen = 127.0.0.1:%2$d
                    kdc_tcp_listen = 127.0.0.1:%2$d
                [realms]
                    %1$s = {
                        database_name = %3$s/principal
                        key_stash_file = %3$s/stash
                        acl_file = %3$s/acl
                    }
                [dbmodules]
                    db_module_dir = %4$s
                [logging]
                    default = FILE:%3$s/kdc.log
                """.formatted(REALM, port, directory, modules()));
        run("kdb5_util", "create", "-s", "-r", REALM, "-P", "a master key");
        process = program("krb5kdc", "-n").start();
        Eventually.holds("the KDC listens", Duration.ofSeconds(20), () -> {
            try (var socket = new Socket()) {
                socket.connect(new InetSocketAddress("127.0.0.1", port), 1000);
                return true;
            } catch (IOException starting) {
                return false;
            }
        });
    }

    /** The realm and its KDC, for clients and services. */
    Path config() {
        return directory.resolve("krb5.conf");
    }

    /** A principal with chosen keys, which are in a keytab of its own. */
    Path principal(String name) throws Exception {
        run("kadmin.local", "-q", "addprinc -randkey " + name);
        Path keytab = directory.resolve(name.replace('/', '.') + ".keytab");
        run("kadmin.local", "-q", "ktadd -k " + keytab + " " + name);
        Assertions.assertTrue(Files.exists(keytab), keytab.toString());
        return keytab;
    }

    @Override
    public void close() throws Exception {
        process.destroyForcibly().waitFor();
    }

    private static Path root() {
        return Path.of(System.getenv().getOrDefault("KERBEROS_ROOT", "/"));
    }

    /** Debian keeps libraries one level down, in a directory named for the machine's kind. */
    private static Path modules() throws IOException {
        try (var kinds = Files.list(root().resolve("usr/lib"))) {
            return kinds.map(kind -> kind.resolve("krb5/plugins/kdb")).filter(Files::exists).findFirst().orElseThrow();
        }
    }

    private void run(String name, String... arguments) throws Exception {
        var running = program(name, arguments).start();
        Assertions.assertTrue(running.waitFor(20, TimeUnit.SECONDS), name);
        Assertions.assertEquals(0, running.exitValue(), () -> name + "\n" + log());
    }

    private ProcessBuilder program(String name, String... arguments) {
        var command = new ArrayList<String>(List.of(root().resolve("usr/sbin").resolve(name).toString()));
        command.addAll(List.of(arguments));
        var log = ProcessBuilder.Redirect.appendTo(directory.resolve("programs.log").toFile());
        var builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log);
        builder.environment().put("KRB5_CONFIG", config().toString());
        builder.environment().put("KRB5_KDC_PROFILE", directory.resolve("kdc.conf").toString());
        return builder;
    }

    private String log() {
        try {
            return Files.readString(directory.resolve("programs.log"));
        } catch (IOException error) {
            return error.toString();
        }
    }
}
