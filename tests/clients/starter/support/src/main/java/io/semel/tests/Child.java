package io.semel.tests;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Another JVM with the same class path, which says what it does line by line. */
public final class Child implements AutoCloseable {
  private final Process process;
  private final BufferedReader lines;

  public Child(Class<?> main, String... arguments) throws IOException {
    this(System.getProperty("java.home"), List.of(), main, arguments);
  }

  /** In another Java, with options of its own. */
  public Child(String home, List<String> options, Class<?> main, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(List.of(home + "/bin/java",
        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"));
    command.addAll(options);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    lines = new BufferedReader(new InputStreamReader(process.getInputStream()));
  }

  /** Its next line; null at its end. */
  public String line() throws IOException {
    return lines.readLine();
  }

  /** Lets a child go on that waits in Child.waitForParent(). */
  public void go() throws IOException {
    process.getOutputStream().write('\n');
    process.getOutputStream().flush();
  }

  /** In the child. */
  public static void waitForParent() throws IOException {
    if (System.in.read() < 0) Runtime.getRuntime().halt(3);
  }

  /** In the child. */
  public static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  public Process process() {
    return process;
  }

  public int ended() throws Exception {
    if (!process.waitFor(20, TimeUnit.SECONDS)) throw new AssertionError("the child does not end");
    return process.exitValue();
  }

  @Override
  public void close() throws Exception {
    process.destroyForcibly();
    process.waitFor(10, TimeUnit.SECONDS);
  }
}
