package io.semel.test;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A Redis for tests: the program {@code semel}, with a clock that the test moves and faults that it
 * plants. The program is what the system property {@code semel.binary} or the variable
 * {@code SEMEL_BINARY} names, or {@code semel} on the PATH. Safe for several threads.
 */
public final class SemelServer implements AutoCloseable {
  private static final int PATIENCE_MS = 20_000; // for the start, and for a reply
  private static final String HOST = "127.0.0.1";

  private final Process process;
  private final Path folder;
  private final int port;
  private final Thread atExit = new Thread(this::end);
  private final SemelClock clock = new SemelClock(this);
  private final SemelFaults faults = new SemelFaults(this);
  private Socket socket;

  private SemelServer(Process process, Path folder, int port) {
    this.process = process;
    this.folder = folder;
    this.port = port;
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  /**
   * Starts one on a free port.
   *
   * @param flags those of redis-server: {@code "--requirepass", "x"}
   * @throws IllegalStateException there is no program, or it does not start; the message says why
   */
  public static SemelServer start(String... flags) {
    try {
      Path folder = Files.createTempDirectory("semel-");
      Path ready = folder.resolve("ready");
      List<String> command = new ArrayList<>(Arrays.asList(program(), "redis-server", "--port", "auto",
          "--bind", HOST, "--dir", folder.toString(), "--ready-file", ready.toString()));
      command.addAll(Arrays.asList(flags));
      Path log = folder.resolve("log");
      Process process = new ProcessBuilder(command).redirectErrorStream(true)
          .redirectOutput(log.toFile()).start();
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
      while (!Files.exists(ready)) {
        if (!process.isAlive() || System.nanoTime() > end) {
          process.destroyForcibly();
          String text = new String(Files.readAllBytes(log), StandardCharsets.UTF_8);
          remove(folder);
          throw new IllegalStateException(command.get(0) + " did not start: " + text);
        }
        TimeUnit.MILLISECONDS.sleep(1);
      }
      for (String line : Files.readAllLines(ready)) {
        if (line.startsWith("port=")) {
          return new SemelServer(process, folder, Integer.parseInt(line.substring(5)));
        }
      }
      throw new IllegalStateException("no port in " + ready);
    } catch (IOException e) {
      throw new IllegalStateException(e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }

  private static String program() {
    String named = System.getProperty("semel.binary", System.getenv("SEMEL_BINARY"));
    if (named != null && !named.isEmpty()) return named;
    String path = System.getenv("PATH");
    for (String each : (path == null ? "" : path).split(File.pathSeparator)) {
      File file = new File(each, "semel");
      if (file.isFile() && file.canExecute()) return file.getPath();
    }
    throw new IllegalStateException(
        "no program semel: name it in SEMEL_BINARY or semel.binary, or put it on the PATH");
  }

  public String host() {
    return HOST;
  }

  public int port() {
    return port;
  }

  /** {@code redis://host:port/0}. */
  public URI url() {
    return URI.create("redis://" + HOST + ":" + port + "/0");
  }

  public SemelClock clock() {
    return clock;
  }

  public SemelFaults faults() {
    return faults;
  }

  /** Removes all keys, functions and faults, and lets the clock run. */
  public void flush() {
    faults.clear();
    clock.run();
    call("FLUSHALL");
    call("FUNCTION", "FLUSH");
  }

  /**
   * The properties by which Spring Boot 2, 3 and 4 find the server:
   * {@code server.springProperties(registry::add)} in a {@code @DynamicPropertySource}.
   */
  public void springProperties(BiConsumer<String, Supplier<Object>> registry) {
    for (String prefix : new String[] {"spring.data.redis.", "spring.redis."}) {
      registry.accept(prefix + "host", this::host);
      registry.accept(prefix + "port", this::port);
    }
  }

  /**
   * One command on a connection of the server's own.
   *
   * @return a String, a Long, null, or a List of them
   * @throws SemelReplyException the reply is an error
   * @throws UncheckedIOException the connection has ended; the next call has a new one
   */
  public synchronized Object call(Object... words) {
    try {
      if (socket == null) {
        socket = new Socket();
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(PATIENCE_MS);
        socket.connect(new InetSocketAddress(InetAddress.getByName(HOST), port), PATIENCE_MS);
      }
      ByteArrayOutputStream request = new ByteArrayOutputStream();
      request.write(("*" + words.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
      for (Object word : words) {
        byte[] bytes = String.valueOf(word).getBytes(StandardCharsets.UTF_8);
        request.write(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
        request.write(bytes);
        request.write('\r');
        request.write('\n');
      }
      socket.getOutputStream().write(request.toByteArray());
      Object reply = read(socket.getInputStream());
      if (reply instanceof SemelReplyException) throw (SemelReplyException) reply;
      return reply;
    } catch (IOException e) {
      disconnect();
      throw new UncheckedIOException(e);
    }
  }

  private static Object read(InputStream in) throws IOException {
    String line = readLine(in);
    String text = line.substring(1);
    switch (line.charAt(0)) {
      case '+':
        return text;
      case '-':
        return new SemelReplyException(text);
      case ':':
        return Long.valueOf(text);
      default:
        break;
    }
    int count = Integer.parseInt(text);
    if (count < 0) return null;
    if (line.charAt(0) == '$') {
      byte[] bytes = new byte[count + 2];
      for (int at = 0; at < bytes.length;) {
        int got = in.read(bytes, at, bytes.length - at);
        if (got < 0) throw new IOException("the connection was closed");
        at += got;
      }
      return new String(bytes, 0, count, StandardCharsets.UTF_8);
    }
    List<Object> items = new ArrayList<>(count);
    for (int i = 0; i < count; ++i) items.add(read(in));
    return items;
  }

  private static String readLine(InputStream in) throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int c = in.read(); c != '\r'; c = in.read()) {
      if (c < 0) throw new IOException("the connection was closed");
      line.write(c);
    }
    if (in.read() != '\n' || line.size() == 0) throw new IOException("not a reply");
    return new String(line.toByteArray(), StandardCharsets.UTF_8);
  }

  private void disconnect() {
    if (socket == null) return;
    try {
      socket.close();
    } catch (IOException e) {
      // it is gone in any case
    }
    socket = null;
  }

  /** Ends the process. May be called again. */
  @Override
  public synchronized void close() {
    disconnect();
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException e) {
      // the hook runs already
    }
    end();
  }

  private void end() {
    process.destroyForcibly();
    try {
      process.waitFor();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    remove(folder);
  }

  private static void remove(Path folder) {
    if (!Files.exists(folder)) return;
    try (Stream<Path> all = Files.walk(folder)) {
      all.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
    } catch (IOException e) {
      // a folder of the system's for temporary files
    }
  }
}
