package io.semel.tests;

import io.semel.Access;
import io.semel.Call;
import io.semel.InvalidKey;
import io.semel.LazyResult;
import io.semel.LeaseLost;
import io.semel.Mismatch;
import io.semel.Observer;
import io.semel.Options;
import io.semel.Permit;
import io.semel.RateLimiter;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.Semel;
import io.semel.SemelException;
import io.semel.Terms;
import io.semel.Unreachable;
import io.semel.jedis.JedisLink;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;

/**
 * Plays the stories of tests/doors/stories.json; tests/doors/run.py starts it, between a node and
 * what loses its replies. Prints a line a story: its name, a tab, its outcome.
 */
public final class DoorStories {
  private static final String SPACE = System.getenv("SEMEL_TEST_NAMESPACE");
  private static final int PORT = Integer.parseInt(System.getenv("SEMEL_TEST_PORT"));
  private static final int DIRECT = Integer.parseInt(System.getenv("SEMEL_TEST_DIRECT_PORT"));

  private final Semel semel = Drivers.semel(Drivers.lettuce(PORT),
      new Options().patience(Duration.ofSeconds(1)).recordPatience(Duration.ofSeconds(5)));
  private final Semel direct = Drivers.semel(Drivers.lettuce(DIRECT), new Options());
  private int runs;

  private DoorStories() {}

  private interface Play {
    Object run() throws Exception;
  }

  private static void say(String story, String outcome) {
    System.out.println(story + '\t' + outcome);
  }

  private void tell(String story, String outcome) {
    say(story, outcome + "; runs " + runs);
    runs = 0;
  }

  /** `expected` if it throws the class. */
  private static String thrown(Class<? extends Throwable> type, String expected, Play play) {
    try {
      return "returned " + play.run();
    } catch (Throwable error) {
      return type.isInstance(error) ? expected : error.toString();
    }
  }

  private String work(Call call) {
    return semel.once(call, String.class, () -> {
      ++runs;
      return "paid";
    });
  }

  private static Call call(String story) {
    return Call.of(SPACE, story);
  }

  private String thenRan() {
    String told = runs == 1 ? "; then ran" : "; then did not run";
    runs = 0;
    return told;
  }

  private void advance() {
    direct.command("SEMEL.CLOCK", "ADVANCE", "61000");
  }

  private void results() {
    boolean equal = work(call("result-equal")).equals(work(call("result-equal")));
    tell("result-equal", equal ? "equal" : "other");
    Play odd = () -> semel.onceOf(call("result-odd"), Object.class, () -> {
      ++runs;
      return new CoreSuite.Loop();
    });
    String kept = thrown(ResultNotKept.class, "not kept", odd);
    tell("result-odd", kept + "; " + thrown(SemelException.class, "no result", odd));
    String lazy = thrown(LazyResult.class, "refused", () -> semel.once(call("lazy-work"),
        CompletableFuture.class, () -> new CompletableFuture<String>()));
    if (!lazy.equals("refused")) {
      lazy = thrown(IllegalArgumentException.class, "refused", () -> semel.once(call("lazy-work"),
          CompletableFuture.class, () -> new CompletableFuture<String>()));
    }
    work(call("lazy-work"));
    say("lazy-work", lazy + thenRan());
    String thrown = thrown(IllegalStateException.class, "thrown",
        () -> semel.once(call("throws"), String.class, () -> {
          throw new IllegalStateException("x");
        }));
    work(call("throws"));
    say("throws", thrown + thenRan());
  }

  private void arguments() {
    tell("key-empty", thrown(InvalidKey.class, "key error", () -> work(call(""))));
    tell("key-huge", thrown(InvalidKey.class, "key error", () -> work(call("k".repeat(70_000)))));
    Map<String, Call> others = Map.of(
        "payload-other", call("payload-other").operation("pay").payload(Map.of("cents", 2)),
        "operation-other", call("operation-other").operation("refund").payload(Map.of("cents", 1)));
    others.forEach((story, other) -> {
      work(call(story).operation("pay").payload(Map.of("cents", 1)));
      tell(story, thrown(Mismatch.class, "mismatch", () -> work(other)));
    });
    tell("lease-zero", thrown(IllegalArgumentException.class, "refused",
        () -> work(call("lease-zero").lease(Duration.ZERO))));
    Call old = Call.of("doors-java-window", "first-sent-1970")
        .terms(Terms.as("message").with("WINDOW", "86400000")).firstSent(Instant.EPOCH);
    String told = thrown(Rejected.class, "", () -> work(old));
    if (told.isEmpty()) {
      try {
        work(old);
      } catch (Rejected rejected) {
        told = rejected.reason() == Rejected.Reason.TOO_OLD ? "too old" : rejected.toString();
      }
    }
    tell("first-sent-1970", told);
  }

  private void owners() throws Exception {
    String late = thrown(LeaseLost.class, "too late",
        () -> semel.once(call("lease-lost"), String.class, () -> {
          advance();
          CompletableFuture.runAsync(
              () -> direct.once(call("lease-lost"), String.class, () -> "other")).join();
          return "mine";
        }));
    String again = semel.once(call("lease-lost"), String.class, () -> "third");
    say("lease-lost", late + "; repeat " + again);

    RateLimiter limiter = semel.rateLimiter(RateLimiter.Kind.SLIDING, 3, Duration.ofDays(1));
    String limited = SPACE + ":rate-limit";
    limiter.take(limited, 2);
    String first = word(limiter.take(limited, 2));
    String second = word(limiter.take(limited));
    say("rate-limit", first + "; then " + second + "; then " + word(limiter.take(limited)));

    CompletableFuture<Void> begun = new CompletableFuture<>();
    CompletableFuture<Void> goOn = new CompletableFuture<>();
    CompletableFuture<Void> holder = CompletableFuture.runAsync(() -> {
      thrown(IllegalStateException.class, "", () -> direct.once(call("wait-cancelled"),
          String.class, () -> {
            begun.complete(null);
            goOn.join();
            throw new IllegalStateException("no");
          }));
    });
    begun.join();
    CompletableFuture<String> waited = new CompletableFuture<>();
    Thread waiter = new Thread(() -> waited.complete(thrown(RuntimeException.class, "cancelled",
        () -> work(call("wait-cancelled").wait(Duration.ofSeconds(60))))));
    waiter.start();
    TimeUnit.MILLISECONDS.sleep(200);  // it waits by then, or is on its way: both must end
    waiter.interrupt();
    String outcome = waited.get(10, TimeUnit.SECONDS);
    goOn.complete(null);
    holder.join();
    tell("wait-cancelled", outcome);
  }

  private void permits() {
    Call seats = Call.of("doors-java-seats", "permits-fewer");
    Permit one = semel.permit(seats, 2);
    Permit other = semel.permit(seats, 2);
    one.release();
    String fewer = thrown(Rejected.class, "held", () -> semel.permit(seats, 1));
    other.release();
    try (Permit last = semel.permit(seats, 1)) {
      say("permits-fewer", fewer + (last.slot() == 0 ? "; then granted" : "; then another slot"));
    }
  }

  private void readers() {
    Call key = Call.of("doors-java-seats", "readers-writer");
    Access one = semel.readLock(key);
    Access other = semel.readLock(key);
    one.release();
    String early = thrown(Rejected.class, "no writer", () -> semel.writeLock(key));
    other.release();
    Access writer = semel.writeLock(key);
    String alone = thrown(Rejected.class, "one writer", () -> semel.readLock(key));
    writer.release();
    try (Access last = semel.readLock(key)) {
      say("readers-writer", "two readers, " + early + "; then " + alone + "; then "
          + (last.token() >= writer.token() ? "a reader" : "an older token"));
    }
  }

  /** Each call that did not run is observed with what became of it, and no other one is. */
  private void observed() {
    List<String> heard = new CopyOnWriteArrayList<>();
    semel.observe((event, namespace, nanos) -> {
      if (event != Observer.Event.RAN) heard.add(event.toString().toLowerCase(Locale.ROOT));
      throw new IllegalStateException("the observer's own");
    });
    Call first = call("observed").operation("pay");
    String ran = work(first);
    String again = work(first);
    thrown(Mismatch.class, "", () -> work(first.operation("refund")));
    tell("observed", (ran.equals(again) ? "" : "other; ") + String.join(", ", heard));
  }

  private static String word(RateLimiter.Rate rate) {
    return rate.allowed() ? "allowed" : "limited, " + rate.remaining() + " left";
  }

  private void wire() throws Exception {
    for (String story : List.of("lost-claim", "lost-complete", "busy-claim", "busy-complete",
        "tryagain-claim", "tryagain-complete", "restart")) {
      String outcome = thrown(Throwable.class, "", () -> work(call(story)));
      tell(story, outcome.equals("returned paid") ? "ran" : outcome);
    }
    tell("late-claim", thrown(Unreachable.class, "unavailable", () -> work(call("late-claim"))));
    Report.until(() -> ((List<?>) direct.command("SEMEL.INFLIGHT", SPACE)).isEmpty());
    String option = thrown(IllegalArgumentException.class, "", () -> Drivers.semel(
        new JedisLink(() -> new Jedis("127.0.0.1", PORT), null), new Options().bind(true)));
    say("option-refused", option.isEmpty() ? "refused by name" : option);
    semel.close();
    tell("closed", thrown(RuntimeException.class, "closed", () -> work(call("closed"))));
    direct.close();
  }

  public static void main(String[] words) {
    DoorStories door = new DoorStories();
    for (Play play : List.<Play>of(
        () -> { door.results(); return null; }, () -> { door.arguments(); return null; },
        () -> { door.owners(); return null; },
        () -> { door.permits(); return null; }, () -> { door.readers(); return null; },
        () -> { door.observed(); return null; }, () -> { door.wire(); return null; })) {
      String broken = thrown(Throwable.class, "", play);
      if (!broken.equals("returned null")) System.out.println("broken: " + broken);
    }
    System.exit(0);
  }
}
