package paddock;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;

/** A connection that sends any tokens of SASL, where ZooKeeper's client sends only right ones. */
final class SaslWire implements AutoCloseable {
    private static final int SASL = 102;

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;
    private int xid;

    /** Connects, and begins a session. */
    SaslWire(String hosts) throws IOException {
        var parts = hosts.split(":");
        socket = new Socket(parts[0], Integer.parseInt(parts[1]));
        socket.setSoTimeout(20_000);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
        send(body -> {
            body.writeInt(0);
            body.writeLong(0);
            body.writeInt(10_000);
            body.writeLong(0);
            body.writeInt(16);
            body.write(new byte[16]);
            body.writeBoolean(false);
        });
        receive();
    }

    /** The token with which the server answers; null if it has none, or if it refuses the client. */
    byte[] token(byte[] token) throws IOException {
        int asked = ++xid;
        send(body -> {
            body.writeInt(asked);
            body.writeInt(SASL);
            body.writeInt(token.length);
            body.write(token);
        });
        var reply = new DataInputStream(new ByteArrayInputStream(receive()));
        reply.readInt();
        reply.readLong();
        if (reply.readInt() != 0) {
            return null;
        }
        int length = reply.readInt();
        return length < 0 ? null : reply.readNBytes(length);
    }

    /** Whether the server refuses a client that sends these tokens: by an error, or by the end of the connection. */
    static boolean refuses(String hosts, byte[]... tokens) throws IOException {
        try (var wire = new SaslWire(hosts)) {
            byte[] answer = null;
            for (byte[] token : tokens) {
                answer = wire.token(token);
            }
            return answer == null;
        } catch (EOFException | SocketException closed) {
            return true;
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private interface Body {
        void write(DataOutputStream out) throws IOException;
    }

    private void send(Body body) throws IOException {
        var bytes = new ByteArrayOutputStream();
        body.write(new DataOutputStream(bytes));
        out.writeInt(bytes.size());
        bytes.writeTo(out);
        out.flush();
    }

    private byte[] receive() throws IOException {
        var frame = new byte[in.readInt()];
        in.readFully(frame);
        return frame;
    }
}
