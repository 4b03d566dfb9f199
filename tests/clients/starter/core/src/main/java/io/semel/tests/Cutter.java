package io.semel.tests;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * In front of a node: passes bytes on, but ends the connection instead of the reply to the first
 * request with a command. The node has carried it out then, and the client cannot know.
 */
final class Cutter implements AutoCloseable {
  private static final Pattern ID = Pattern.compile("CLAIM-ID\r\n\\$\\d+\r\n([^\r]+)");
  private final ServerSocket door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final List<String> ids = new CopyOnWriteArrayList<>();
  private final String command;
  private final int node;
  private volatile int cuts;

  Cutter(int node, String command, int cuts) throws IOException {
    this.node = node;
    this.command = command;
    this.cuts = cuts;
    thread(this::accept);
  }

  int port() {
    return door.getLocalPort();
  }

  /** Of the requests with the command, in their order. */
  List<String> ids() {
    return ids;
  }

  int cutsLeft() {
    return cuts;
  }

  private interface Work {
    void run() throws IOException;
  }

  private static void thread(Work work) {
    Thread thread = new Thread(() -> {
      try {
        work.run();
      } catch (IOException ended) {
        // One of the two has ended the connection.
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() throws IOException {
    while (true) {
      Socket client = door.accept();
      Socket server = new Socket("127.0.0.1", node);
      boolean[] cut = new boolean[1];
      thread(() -> {
        try (client; server) {
          requests(client.getInputStream(), server.getOutputStream(), cut);
        }
      });
      thread(() -> {
        try (client; server) {
          replies(server.getInputStream(), client.getOutputStream(), cut);
        }
      });
    }
  }

  /** A request of this suite comes in one piece: it is short, and alone on its connection. */
  private void requests(InputStream from, OutputStream to, boolean[] cut) throws IOException {
    byte[] bytes = new byte[1 << 16];
    for (int count; (count = from.read(bytes)) > 0;) {
      String text = new String(bytes, 0, count, StandardCharsets.ISO_8859_1);
      if (text.contains(command)) {
        Matcher id = ID.matcher(text);
        ids.add(id.find() ? id.group(1) : "");
        boolean now = takeCut();
        synchronized (cut) {
          cut[0] = now;
        }
      }
      to.write(bytes, 0, count);
    }
  }

  private synchronized boolean takeCut() {
    if (cuts == 0) return false;
    --cuts;
    return true;
  }

  private static void replies(InputStream from, OutputStream to, boolean[] cut)
      throws IOException {
    byte[] bytes = new byte[1 << 16];
    for (int count; (count = from.read(bytes)) > 0;) {
      synchronized (cut) {
        if (cut[0]) return;
      }
      to.write(bytes, 0, count);
    }
  }

  @Override
  public void close() throws IOException {
    door.close();
  }
}
