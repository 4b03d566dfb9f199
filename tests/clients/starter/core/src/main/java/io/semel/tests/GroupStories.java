package io.semel.tests;

import io.semel.Call;
import io.semel.Claimed;
import io.semel.Link;
import io.semel.Observer;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.Terms;
import io.semel.Tokens;
import io.semel.Work;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** What the stories of one node become in a group whose leader is killed in the middle of them. */
final class GroupStories {
  private static final Duration LONG = Duration.ofSeconds(30);

  private GroupStories() {}

  static List<GroupStory> all(String driver, int round) {
    List<GroupStory> stories = new ArrayList<>(List.of(new Between(driver, round),
        new GroupOwnerStories.Halted(driver, round), new GroupOwnerStories.Slow(driver, round),
        new Throws(driver, round), new Renewed(driver, round), new Waits(driver, round),
        new Twice(driver, round), new Token(driver, round), new Leaderless(driver, round)));
    if (GroupDrivers.binds(driver)) stories.add(new Bound(driver, round));
    return stories;
  }

  /** The leader ends between the claim and the completion. */
  private static final class Between extends GroupStory {
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch end = new CountDownLatch(1);
    private final List<Observer.Event> events = new CopyOnWriteArrayList<>();
    private CompletableFuture<String> first;

    Between(String driver, int round) {
      super("killed between claim and completion", driver, round);
      semel.observe((event, namespace, nanos) -> events.add(event));
    }

    @Override
    void before() throws Exception {
      first = start(() -> semel.once("orders", key, () -> {
        begun.countDown();
        end.await();
        return "once";
      }));
      begun.await(20, TimeUnit.SECONDS);
      Report.same(begun.getCount(), 0L);
    }

    @Override
    void killed() throws Exception {
      end.countDown();
      Report.same(get(first), "once");
      Report.same(events, List.of(Observer.Event.RAN));  // recorded, not only returned
    }

    @Override
    void back() throws Exception {
      Report.same(semel.once("orders", key, () -> "twice"), "once");
    }
  }

  /** What the work throws while there is no leader gives the key back before its lease ends. */
  private static final class Throws extends GroupStory {
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch end = new CountDownLatch(1);
    private CompletableFuture<String> first;

    Throws(String driver, int round) {
      super("an exception", driver, round);
    }

    private Call call() {
      return Call.of("orders", key).lease(Duration.ofMinutes(10));
    }

    @Override
    void before() throws Exception {
      first = start(() -> semel.once(call(), String.class, () -> {
        begun.countDown();
        end.await();
        throw new IllegalStateException("own");
      }));
      begun.await(20, TimeUnit.SECONDS);
      Report.same(begun.getCount(), 0L);
    }

    @Override
    void killed() throws Exception {
      end.countDown();
      Throwable thrown = Report.thrown(ExecutionException.class,
          () -> get(first)).getCause();
      Report.same(thrown.getMessage(), "own");
      Report.same(semel.once(call(), String.class, () -> "second"), "second");
    }

    @Override
    void back() {
      Report.same(semel.once(call(), String.class, () -> "third"), "second");
    }
  }

  /** The next leader renews: nobody else gets the work, and its epoch still counts. */
  private static final class Renewed extends GroupStory {
    private static final long STEP_MS = 1_000;
    private Work work;

    Renewed(String driver, int round) {
      super("a lease is renewed", driver, round);
    }

    /** Renewed every 8 s; so it outlives 16 s without a leader, more than the patience of a call. */
    private Call call() {
      return Call.of("orders", key).lease(Duration.ofSeconds(24));
    }

    @Override
    void before() {
      work = semel.claim(call()).work();
    }

    private long leftMs() throws Exception {
      Map<String, String> record = fields(patient(
          () -> semel.command("SEMEL.GETCLAIM", "orders", key)));
      Report.same(record.get("state") + " " + record.get("epoch"), "held " + work.epoch());
      return Long.parseLong(record.get("lease_remaining_ms"));
    }

    private void held() {
      long began = System.nanoTime();
      Claimed taken;
      try {
        taken = semel.claim(call());
      } catch (Rejected held) {
        return;
      }
      throw new AssertionError("attempt " + taken.work().attempt() + ", takeover "
          + taken.work().takeover() + " " + (System.nanoTime() - began) / 1_000_000
          + " ms after it was asked for");
    }

    @Override
    void killed() throws Exception {
      held();  // by the next leader
      long[] seen = {leftMs()};
      Report.until(() -> {
        long now = leftMs();
        boolean renewed = now > seen[0] + STEP_MS;
        seen[0] = Math.min(seen[0], now);
        return renewed;
      });
    }

    @Override
    void back() {
      Report.same(work.isLost(), false);
      held();
      work.complete("\"x\"".getBytes(StandardCharsets.UTF_8));
      Report.same(semel.once(call(), String.class, () -> "y"), "x");
    }
  }

  /** Who waits at the node that is killed waits at the next one. */
  private static final class Waits extends GroupStory {
    private Work work;
    private CompletableFuture<String> waiter;

    Waits(String driver, int round) {
      super("a wait", driver, round);
    }

    private Call call() {
      return Call.of("orders", key).lease(LONG);
    }

    @Override
    void before() throws Exception {
      work = semel.claim(call()).work();
      waiter = start(() -> semel.once(call().wait(LONG), String.class, () -> "ran"));
      // Whether it is at its SEMEL.WAIT already changes nothing about what it must answer.
      Thread.sleep(300);
      Report.same(waiter.isDone(), false);
    }

    @Override
    void killed() {
      work.complete("\"of the owner\"".getBytes(StandardCharsets.UTF_8));
    }

    @Override
    void back() throws Exception {
      Report.same(get(waiter), "of the owner");
    }
  }

  /** The words of one claim, sent again to the next leader, and again to the one after it. */
  private static final class Twice extends GroupStory {
    private final Link link;
    private String epoch;

    Twice(String driver, int round) {
      super("a claim sent twice", driver, round);
      link = GroupDrivers.link(driver);
    }

    private Map<String, String> claim(String id) throws Exception {
      List<byte[]> words = new ArrayList<>();
      for (String each : List.of("SEMEL.CLAIM", "raw", key, "LEASE", "600000", "CLAIM-ID", id)) {
        words.add(each.getBytes(StandardCharsets.UTF_8));
      }
      return fields(patient(() -> link.call(words, 1_000)));
    }

    @Override
    void before() throws Exception {
      Map<String, String> first = claim("a".repeat(32));
      Report.same(first.get("outcome"), "granted");
      epoch = first.get("epoch");
    }

    private void again() throws Exception {
      Map<String, String> second = claim("a".repeat(32));
      Report.same(second.get("outcome") + second.get("epoch") + second.get("attempt"),
          "regranted" + epoch + "1");
      Report.same(claim("b".repeat(32)).get("outcome"), "in_flight");
    }

    @Override
    void killed() throws Exception {
      again();
    }

    @Override
    void back() throws Exception {
      again();
    }

    @Override
    public void close() throws Exception {
      link.close();
      super.close();
    }
  }

  private static final class Token extends GroupStory {
    private final Tokens tokens;
    private String token;

    Token(String driver, int round) {
      super("a token", driver, round);
      tokens = semel.tokens("tokens", Terms.as("token"));
    }

    @Override
    void before() {
      token = tokens.issue(600_000);
    }

    @Override
    void killed() {
      Report.same(semel.once(tokens.call(token), String.class, () -> "used"), "used");
    }

    @Override
    void back() {
      Report.same(semel.once(tokens.call(token), String.class, () -> "twice"), "used");
    }
  }

  /**
   * Claims that end with their connection. That of the node which is killed ends, but a completion
   * that comes before the node is back counts, and the next ones are bound at the next leader.
   */
  private static final class Bound extends GroupStory {
    private final Semel bound;
    private Work work;

    Bound(String driver, int round) {
      super("a bound claim", driver, round);
      bound = GroupDrivers.semel(driver, new Options().bind(true));
    }

    @Override
    void before() {
      work = bound.claim(Call.of("orders", key).lease(LONG)).work();
    }

    @Override
    void killed() {
      work.complete("\"x\"".getBytes(StandardCharsets.UTF_8));
      Report.same(bound.once("orders", key + ",killed", () -> "ran"), "ran");
    }

    @Override
    void back() {
      Report.same(bound.once("orders", key, () -> "y"), "x");
      Report.same(bound.once("orders", key + ",killed", () -> "again"), "ran");
      Report.same(bound.once("orders", key + ",back", () -> "ran"), "ran");
    }

    @Override
    public void close() throws Exception {
      bound.close();
      super.close();
    }
  }

  /** Duplicates that arrive together while there is no leader. */
  private static final class Leaderless extends GroupStory {
    private final AtomicInteger runs = new AtomicInteger();

    Leaderless(String driver, int round) {
      super("eight duplicates", driver, round);
    }

    @Override
    void before() {
      semel.once("orders", key + ",before", () -> "connected");
    }

    @Override
    void killed() throws Exception {
      List<CompletableFuture<String>> all = new ArrayList<>();
      for (int i = 0; i < 8; ++i) {
        all.add(start(() -> semel.once(Call.of("orders", key).wait(GroupDrivers.PATIENCE),
            String.class, () -> "run " + runs.incrementAndGet())));
      }
      for (CompletableFuture<String> each : all) Report.same(get(each), "run 1");
    }

    @Override
    void back() {
      Report.same(semel.once("orders", key, () -> "run " + runs.incrementAndGet()), "run 1");
    }
  }
}
