package paddock;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A session that works until standard input ends, and says on standard output what comes of it. */
abstract class Worker {
    private static final CountDownLatch STOP = new CountDownLatch(1);

    private final Thread thread = new Thread(this::work);

    abstract void work();

    /** When the work is done. */
    abstract void close() throws Exception;

    /** Lets {@code pause} pass; false when the work is to end. */
    static boolean goesOn(Duration pause) throws InterruptedException {
        return !STOP.await(pause.toMillis(), TimeUnit.MILLISECONDS);
    }

    static void say(String format, Object... words) {
        // One call for a line: threads share the stream.
        System.out.println(String.format(format, words));
    }

    static void live(List<? extends Worker> workers) throws Exception {
        say("ready");
        for (Worker worker : workers) {
            worker.thread.start();
        }
        while (System.in.read() >= 0) {
            // The end of the input is all that counts.
        }
        STOP.countDown();
        for (Worker worker : workers) {
            worker.thread.join();
            worker.close();
        }
    }
}
