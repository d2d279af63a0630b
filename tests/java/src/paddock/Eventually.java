package paddock;

import java.time.Duration;
import java.util.concurrent.Callable;

/** Waiting without sleeping blindly: ask again until it is so, or fail. */
final class Eventually {
    private static final Duration LONG_ENOUGH = Duration.ofSeconds(15);

    private Eventually() {}

    static void holds(String what, Callable<Boolean> condition) throws Exception {
        holds(what, LONG_ENOUGH, condition);
    }

    static void holds(String what, Duration timeout, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + timeout.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not within " + timeout.toSeconds() + " s: " + what);
            }
            Thread.sleep(20);
        }
    }
}
