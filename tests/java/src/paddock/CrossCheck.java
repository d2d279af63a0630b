package paddock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Judgement of what a server has found that checks its answers against an Apache ZooKeeper, as in
 * {@code tests/support/cross_check.py}. TEST_CROSS_CHECK names the list of what it may find.
 */
final class CrossCheck {
    private static final String LIST = System.getenv("TEST_CROSS_CHECK");

    /** Whether servers check their answers. */
    static final boolean IS_ON = LIST != null && Server.KIND.equals("paddock");

    /** Those that tests have left over end with their sessions. */
    private static final Duration CONNECTIONS_END = Duration.ofSeconds(40);

    private static final List<String> FOUND =
            List.of("cross-check found a difference", "cross-check gave up on a connection");

    private CrossCheck() {}

    /** Fails if the server, whose clients are gone or go now, has found anything that the list does not name. */
    static void judge(Server server) throws Exception {
        Eventually.holds("no connection is checked any more", CONNECTIONS_END, () -> count(server, "connections") == 0);
        if (count(server, "compared") == 0) {
            throw new AssertionError("nothing was compared");
        }
        List<String> found = Files.readAllLines(server.logFile().toPath()).stream()
                .filter(line -> FOUND.stream().anyMatch(line::contains))
                .toList();
        long counted = count(server, "differences") + count(server, "given_up");
        // The log drops lines when there are many.
        if (found.size() != counted) {
            throw new AssertionError(counted + " were counted, and these are in the log: " + String.join("\n", found));
        }
        List<Pattern> documented = documented();
        List<String> unknown = found.stream()
                .filter(line -> documented.stream().noneMatch(pattern -> pattern.matcher(line).find()))
                .toList();
        if (!unknown.isEmpty()) {
            throw new AssertionError("not documented in " + LIST + ":\n" + String.join("\n", unknown));
        }
    }

    private static long count(Server server, String figure) {
        String name = "zk_cross_check_" + figure + "\t";
        return server.word("mntr").lines()
                .filter(line -> line.startsWith(name))
                .mapToLong(line -> Long.parseLong(line.substring(name.length())))
                .findFirst()
                .orElse(-1);
    }

    private static List<Pattern> documented() throws IOException {
        return Files.readAllLines(Path.of(LIST)).stream()
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .map(Pattern::compile)
                .toList();
    }
}
