import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * What a suite has its group do: the leader is killed again and again while one client claims one key
 * after the other. See tests/clients/group_target.py.
 */
final class Outages {
  static final List<Integer> NODES =
      Arrays.stream(System.getenv("SEMEL_TEST_NODES").split(" ")).map(Integer::valueOf).toList();
  static final int DEAD_PORT = Integer.parseInt(System.getenv("SEMEL_TEST_DEAD_PORT"));
  private static final int KILLS = Integer.parseInt(System.getenv("SEMEL_TEST_KILLS"));
  private static final int CLAIMS = 20;  // so many show that a client goes on
  private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));

  /** What the key had before, or null. An exception of a client makes it be asked again. */
  interface Claim {
    String claim(String key, String value) throws Exception;
  }

  interface Read {
    String read(String key) throws Exception;
  }

  private final String prefix;
  private final Claim claim;
  private final Read read;
  private final List<Long> times = Collections.synchronizedList(new ArrayList<>());
  private final Thread writer = new Thread(this::write);
  private volatile boolean isOver = false;
  private volatile String wrong = null;

  private Outages(String prefix, Claim claim, Read read) {
    this.prefix = prefix;
    this.claim = claim;
    this.read = read;
    writer.setDaemon(true);
  }

  /** What the runner has done, or found. */
  static String need(String words) throws IOException {
    System.out.println("need " + words);
    System.out.flush();
    String said = INPUT.readLine();
    if (said == null || !said.startsWith("done")) throw new AssertionError(words + ": " + said);
    return said.substring(4).trim();
  }

  static int needNumber(String words) throws IOException {
    return Integer.parseInt(need(words));
  }

  private String value(int number) {
    return "value of " + number;
  }

  private void write() {
    try {
      while (!isOver && wrong == null) {
        insist(times.size());
        Thread.sleep(1);
      }
    } catch (InterruptedException | AssertionError error) {
      wrong = error.toString();
    }
  }

  private void insist(int number) throws InterruptedException {
    while (!isOver) {
      String owner;
      try {
        owner = claim.claim(prefix + number, value(number));
      } catch (Exception again) {
        Thread.sleep(5);
        continue;
      }
      if (owner != null && !owner.equals(value(number))) wrong = prefix + number + " is " + owner;
      times.add(System.nanoTime());
      return;
    }
  }

  private void goesOn() throws Exception {
    int enough = times.size() + CLAIMS;
    Report.until(() -> {
      if (wrong != null) throw new AssertionError(wrong);
      return times.size() >= enough;
    });
  }

  private void disturb(String name, String fault) throws Exception {
    long began = System.nanoTime();
    need(fault);
    goesOn();
    long longest = 0;
    for (int i = times.size() - 1; i > 0 && times.get(i) > began; --i) {
      longest = Math.max(longest, times.get(i) - times.get(i - 1));
    }
    System.out.println("figure " + name + " " + longest / 1_000_000);
  }

  private void kills() throws Exception {
    writer.start();
    goesOn();
    for (int i = 0; i < KILLS; ++i) {
      disturb("kill", "kill-leader");
      need("restart");
      goesOn();
    }
  }

  /** What the key has, though the group may change its leader meanwhile. */
  private String patient(String key) throws Exception {
    long end = System.nanoTime() + 10_000_000_000L;
    while (true) {
      try {
        return read.read(key);
      } catch (Exception again) {
        if (System.nanoTime() > end) throw again;
        Thread.sleep(5);
      }
    }
  }

  private void nothingIsLost() throws Exception {
    isOver = true;
    writer.join(10_000);
    Report.same(writer.isAlive(), false);
    int acknowledged = times.size();
    for (int i = 0; i < acknowledged; ++i) Report.same(patient(prefix + i), value(i));
    // The last one may have been asked for without an answer.
    int beyond = needNumber("count " + prefix) - acknowledged;
    Report.same(beyond == 0 || beyond == 1, true);
    System.out.println("figure acknowledged " + acknowledged);
  }

  static void check(String prefix, Claim claim, Read read) {
    Outages self = new Outages(prefix, claim, read);
    Report.check("goes on when the leader is killed, " + KILLS + " times", self::kills);
    Report.check("goes on when another node is made the leader",
        () -> self.disturb("transfer", "transfer"));
    Report.check("has lost nothing that was acknowledged, and counts agree", self::nothingIsLost);
  }
}
