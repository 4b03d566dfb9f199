package io.semel.tests;

import java.io.File;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A node of a suite's own, with a clock that the suite moves; it ends with this process. */
public final class Node implements AutoCloseable {
  private final Path folder;
  private final List<String> options;
  private final boolean ownClock;
  private Process process;
  private int port;

  public Node(String... options) throws Exception {
    this(true, options);
  }

  private Node(boolean ownClock, String... options) throws Exception {
    this.ownClock = ownClock;
    folder = Files.createTempDirectory("semel-node-");
    this.options = List.of(options);
    start();
  }

  /** With records that survive a kill. */
  public static Node onDisk() throws Exception {
    return new Node("--storage-enabled", "yes", "--durability", "logged", "--dir", "data");
  }

  /** onDisk(), by the machine's clock: its leases end by themselves. */
  public static Node inTime() throws Exception {
    return new Node(false, "--storage-enabled", "yes", "--durability", "logged", "--dir", "data");
  }

  public int port() {
    return port;
  }

  /** On the same port as before. */
  public void start() throws Exception {
    Path ready = folder.resolve("ready");
    Files.deleteIfExists(ready);
    List<String> command = new ArrayList<>(List.of(System.getenv("SEMEL_TEST_PROGRAM"), "node",
        "--port", Integer.toString(port), "--ready-file", ready.toString(), "--test-clock",
        ownClock ? "yes" : "no", "--exit-with-parent", "yes", "--shards", "4"));
    command.addAll(options);
    process = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true)
        .redirectOutput(folder.resolve("log").toFile()).start();
    Report.until(() -> {
      if (!process.isAlive()) throw new IOException(Files.readString(folder.resolve("log")));
      return Files.exists(ready) && Files.readString(ready).contains("port=");
    });
    for (String line : Files.readAllLines(ready)) {
      if (line.startsWith("port=")) port = Integer.parseInt(line.substring(5).trim());
    }
  }

  /** As by kill -9. */
  public void kill() throws Exception {
    process.destroyForcibly();
    if (!process.waitFor(10, TimeUnit.SECONDS)) throw new IOException("the node does not end");
  }

  /** Without an answer until go(). */
  public void stop() throws Exception {
    signal(process, "STOP");
  }

  public void go() throws Exception {
    signal(process, "CONT");
  }

  public static void signal(Process to, String name) throws Exception {
    Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(to.pid())).start();
    if (kill.waitFor() != 0) throw new IOException("kill failed");
    Path status = Path.of("/proc/" + to.pid() + "/status");
    Report.until(() -> Files.readString(status).contains("State:\tT") == name.equals("STOP"));
  }

  /** Moves the node's clock on. */
  public void advance(long ms) throws IOException {
    String reply = ask("SEMEL.CLOCK", "ADVANCE", Long.toString(ms));
    if (reply.startsWith("-")) throw new IOException(reply);
  }

  /** The reply in RESP2 as it is; enough for a look. */
  public String ask(String... words) throws IOException {
    StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
    for (String each : words) {
      request.append('$').append(each.getBytes(StandardCharsets.UTF_8).length).append("\r\n")
          .append(each).append("\r\n");
    }
    try (Socket socket = new Socket("127.0.0.1", port)) {
      socket.setSoTimeout(10_000);
      socket.getOutputStream().write(request.toString().getBytes(StandardCharsets.UTF_8));
      socket.getOutputStream().write("QUIT\r\n".getBytes(StandardCharsets.UTF_8));
      return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Override
  public void close() throws Exception {
    process.destroyForcibly();
    process.waitFor(10, TimeUnit.SECONDS);
    delete(folder.toFile());
  }

  private static void delete(File file) {
    File[] inside = file.listFiles();
    if (inside != null) {
      for (File each : inside) delete(each);
    }
    file.delete();
  }
}
