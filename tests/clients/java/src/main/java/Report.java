import java.util.Objects;
import java.util.concurrent.Callable;

/** What a suite prints; see tests/clients/run.py. */
final class Report {
  static final String HOST = System.getenv("SEMEL_TEST_HOST");
  static final int PORT = Integer.parseInt(System.getenv("SEMEL_TEST_PORT"));
  static final boolean SCRIPTS = "yes".equals(System.getenv("SEMEL_TEST_SCRIPTS"));
  static final String RELEASE =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

  interface Work {
    void run() throws Exception;
  }

  private Report() {}

  static void check(String name, Work work) {
    try {
      work.run();
      System.out.println("ok " + name);
    } catch (Exception | AssertionError wrong) {
      String where = "";
      for (StackTraceElement frame : wrong.getStackTrace()) {
        if (frame.getClassName().contains("Suite")) {
          where = frame.getFileName() + ":" + frame.getLineNumber();
          break;
        }
      }
      System.out.println("failed " + name + ": " + wrong.toString().replace('\n', ' ') + " " + where);
    }
  }

  static void checkScripts(String name, Work work) {
    if (SCRIPTS) {
      check(name, work);
    } else {
      System.out.println("skipped " + name + ": waits for scripts");
    }
  }

  static void same(Object found, Object expected) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError(found + " instead of " + expected);
    }
  }

  /** Waits for a condition. */
  static void until(Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + 10_000_000_000L;
    while (!condition.call()) {
      if (System.nanoTime() > end) throw new AssertionError("not so within 10 s");
      Thread.sleep(5);
    }
  }

  /** Threads of a client may still run; nothing waits for them. */
  static void end() {
    System.out.println("end");
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
