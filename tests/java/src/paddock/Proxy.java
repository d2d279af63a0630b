package paddock;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A piece of network between a client and the server that can be cut. */
final class Proxy implements AutoCloseable {
    private final String serverHost;
    private final int serverPort;
    private final ServerSocket listener;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile boolean isCut;

    Proxy(String hosts) throws IOException {
        String[] parts = hosts.split(":");
        serverHost = parts[0];
        serverPort = Integer.parseInt(parts[1]);
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        inBackground(this::accept);
    }

    String hosts() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /** Breaks all connections; new ones are broken at once. */
    void cut() {
        isCut = true;
        sockets.forEach(Proxy::close);
    }

    void mend() {
        isCut = false;
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            if (isCut) {
                close(client);
                continue;
            }
            var server = new Socket(serverHost, serverPort);
            sockets.add(client);
            sockets.add(server);
            inBackground(() -> copy(client, server));
            inBackground(() -> copy(server, client));
            if (isCut) {
                // It was cut in between, and these two were not known yet.
                close(client);
                close(server);
            }
        }
    }

    private void copy(Socket from, Socket to) throws IOException {
        try {
            from.getInputStream().transferTo(to.getOutputStream());
        } finally {
            close(from);
            close(to);
            sockets.remove(from);
            sockets.remove(to);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException ignored) {
            // It is gone either way.
        }
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void inBackground(Work work) {
        var thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException ended) {
                // Sockets are closed by whoever cuts or closes the proxy.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
