package io.semel.tests;

import java.util.Objects;
import java.util.concurrent.Callable;

/** What a suite prints; see tests/clients/run.py. */
public final class Report {
  public static final String HOST = System.getenv("SEMEL_TEST_HOST");
  public static final int PORT = Integer.parseInt(System.getenv("SEMEL_TEST_PORT"));
  private static final String ONLY = System.getenv("SEMEL_TEST_ONLY");

  /** A check. */
  public interface Work {
    void run() throws Exception;
  }

  private Report() {}

  public static void check(String name, Work work) {
    if (ONLY != null && !name.contains(ONLY)) return;
    try {
      work.run();
      System.out.println("ok " + name);
    } catch (Exception | Error wrong) {
      StringBuilder where = new StringBuilder();
      for (StackTraceElement frame : wrong.getStackTrace()) {
        if (!frame.getClassName().startsWith("io.semel.")) continue;
        where.append(' ').append(frame.getFileName()).append(':').append(frame.getLineNumber());
      }
      System.out.println("failed " + name + ": " + wrong.toString().replace('\n', ' ') + where);
    }
  }

  public static void skip(String name, String why) {
    System.out.println("skipped " + name + ": " + why);
  }

  public static void same(Object found, Object expected) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError(found + " instead of " + expected);
    }
  }

  public static void has(String text, String part) {
    if (!String.valueOf(text).contains(part)) {
      throw new AssertionError("no '" + part + "' in '" + text + "'");
    }
  }

  /** What `work` throws, of this very class. */
  public static <T extends Throwable> T thrown(Class<T> type, Work work) {
    try {
      work.run();
    } catch (Throwable error) {
      if (error.getClass() == type) return type.cast(error);
      throw new AssertionError(error + " instead of " + type.getSimpleName(), error);
    }
    throw new AssertionError("nothing thrown instead of " + type.getSimpleName());
  }

  /** Waits for a condition. */
  public static void until(Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + 20_000_000_000L;
    while (!condition.call()) {
      if (System.nanoTime() > end) throw new AssertionError("not so within 20 s");
      Thread.sleep(5);
    }
  }

  /** Threads of a client may still run; nothing waits for them. */
  public static void end() {
    System.out.println("end");
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
