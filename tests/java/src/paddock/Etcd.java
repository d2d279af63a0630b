package paddock;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** An etcd of one member, for front ends of Paddock's. ETCD_BIN names its program. */
final class Etcd implements AutoCloseable {
    private static final Duration READY = Duration.ofSeconds(30);

    private final Path directory;
    private final String endpoint;
    private final Process process;

    /** Starts one on an empty directory and waits until it serves. */
    Etcd() throws Exception {
        directory = Files.createTempDirectory("etcd-");
        endpoint = "http://127.0.0.1:" + Server.freePort();
        String peers = "http://127.0.0.1:" + Server.freePort();
        process = new ProcessBuilder(
                System.getenv("ETCD_BIN"),
                "--data-dir", directory.resolve("data").toString(),
                "--listen-client-urls", endpoint,
                "--advertise-client-urls", endpoint,
                "--listen-peer-urls", peers,
                "--initial-advertise-peer-urls", peers,
                "--initial-cluster", "default=" + peers)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("etcd.log").toFile())
                .start();
        Eventually.holds("etcd serves", READY, this::isHealthy);
    }

    /** Arguments by which a server is a front end on this etcd. */
    List<String> arguments() {
        return List.of("--engine", "etcd", "--etcd-endpoints", endpoint);
    }

    private boolean isHealthy() throws InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(endpoint + "/health")).timeout(Duration.ofSeconds(1)).build();
        try {
            return HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body().contains("\"true\"");
        } catch (IOException notYet) {
            return false;
        }
    }

    /** Kills it and removes what it stored. */
    @Override
    public void close() throws Exception {
        process.destroyForcibly().waitFor(30, TimeUnit.SECONDS);
        try (var files = Files.walk(directory)) {
            for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
                Files.delete(file);
            }
        }
    }
}
