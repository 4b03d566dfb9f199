package io.semel.tests;

import io.semel.Call;
import io.semel.Claimed;
import io.semel.Consumer;
import io.semel.Duplicate;
import io.semel.InDoubt;
import io.semel.InvalidKey;
import io.semel.KeptFailure;
import io.semel.Mismatch;
import io.semel.OnException;
import io.semel.Options;
import io.semel.RateLimiter;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.Semel;
import io.semel.ServerError;
import io.semel.Terms;
import io.semel.Tokens;
import io.semel.UnknownToken;
import io.semel.Unrecorded;
import io.semel.Verdict;
import io.semel.Work;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Claims, once(), tokens and consumers, over each driver. */
public final class CoreSuite {
  private final String driver;
  private final Semel semel;

  private CoreSuite(String driver) {
    this.driver = driver;
    semel = Drivers.semel(Drivers.named(driver, Report.PORT), new Options().owner("suite"));
  }

  /** A result. */
  public static final class Receipt {
    public long id;
    public String text;

    public Receipt() {}

    Receipt(long id, String text) {
      this.id = id;
      this.text = text;
    }
  }

  /** No JSON: it holds itself. */
  public static final class Loop {
    public Loop self = this;
  }

  private String key(String name) {
    return name + ", " + driver;
  }

  private Call call(String name) {
    return Call.of("calls", key(name));
  }

  private void once() throws Exception {
    AtomicInteger runs = new AtomicInteger();
    for (int i = 0; i < 3; ++i) {
      Receipt got = semel.once(call("once"), Receipt.class, () -> {
        Report.same(Work.current().epoch() > 0, true);
        return new Receipt(runs.incrementAndGet(), "übung");
      });
      Report.same(got.id + got.text, "1übung");
    }
    Report.same(Work.current(), null);
    Report.same(semel.once("calls", key("text"), () -> "a"), "a");
    Report.same(semel.once("calls", key("text"), () -> "b"), "a");
    Report.same(semel.once("calls", key("null"), String.class, () -> null), null);
    Report.same(semel.once("calls", key("null"), String.class, () -> "b"), null);
  }

  private void race() throws Exception {
    AtomicInteger runs = new AtomicInteger();
    AtomicInteger rejected = new AtomicInteger();
    ExecutorService threads = Executors.newFixedThreadPool(16);
    CountDownLatch end = new CountDownLatch(1);
    List<Future<String>> all = new ArrayList<>();
    for (int i = 0; i < 16; ++i) {
      all.add(threads.submit(() -> {
        try {
          return semel.once("calls", key("race"), () -> {
            runs.incrementAndGet();
            end.await();
            return "ran";
          });
        } catch (Rejected error) {
          Report.same(error.reason(), Rejected.Reason.IN_FLIGHT);
          Report.same(error.retryAfterMs() > 0, true);
          if (rejected.incrementAndGet() == 15) end.countDown();
          return "rejected";
        }
      }));
    }
    for (Future<String> each : all) each.get(20, TimeUnit.SECONDS);
    threads.shutdown();
    Report.same(runs.get() + " ran, " + rejected.get() + " rejected", "1 ran, 15 rejected");
  }

  /** More waiters than connections for them, over a pool of one connection. */
  private void waiters() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    CountDownLatch begun = new CountDownLatch(1);
    AtomicInteger runs = new AtomicInteger();
    ExecutorService threads = Executors.newFixedThreadPool(13);
    Call waits = call("waiters").wait(Duration.ofSeconds(20));
    List<Future<String>> all = new ArrayList<>();
    for (int i = 0; i < 12; ++i) {
      all.add(threads.submit(() -> semel.once(waits, String.class, () -> {
        runs.incrementAndGet();
        begun.countDown();
        end.await();
        return "result";
      })));
    }
    begun.await();
    Report.same(semel.once("calls", key("meanwhile"), () -> "answered"), "answered");
    end.countDown();
    for (Future<String> each : all) Report.same(each.get(20, TimeUnit.SECONDS), "result");
    threads.shutdown();
    Report.same(runs.get(), 1);
  }

  private void waitEnds() {
    Work held = semel.claim(call("held")).work();
    Rejected error = Report.thrown(Rejected.class,
        () -> semel.once(call("held").wait(Duration.ofMillis(60)), String.class, () -> "ran"));
    Report.same(error.reason(), Rejected.Reason.IN_FLIGHT);
    Report.has(error.getMessage(), "suite");
    held.fail("given back", OnException.RELEASE);
    held.fail("again", OnException.KEEP);
    Report.same(semel.once(call("held"), String.class, () -> "ran"), "ran");
  }

  private void exceptions() {
    IllegalStateException own = Report.thrown(IllegalStateException.class,
        () -> semel.once(call("throws"), String.class, () -> {
          throw new IllegalStateException("own");
        }));
    Report.same(own.getMessage(), "own");
    Report.same(semel.once(call("throws"), String.class, () -> "second"),
        "second");
    Call kept = call("kept").onException(OnException.KEEP);
    Report.thrown(AssertionError.class, () -> semel.once(kept, String.class, () -> {
      throw new AssertionError("an error, not an exception");
    }));
    KeptFailure failure = Report.thrown(KeptFailure.class,
        () -> semel.once(kept, String.class, () -> "no"));
    Report.has(failure.failure(), "an error, not an exception");
    Call doubt = call("doubt").onException(OnException.IN_DOUBT);
    Report.thrown(java.io.IOException.class, () -> semel.once(doubt, String.class, () -> {
      throw new java.io.IOException("504");
    }));
    Report.thrown(InDoubt.class, () -> semel.once(doubt, String.class, () -> "no"));
    semel.command("SEMEL.RESOLVE", "calls", key("doubt"), "RELEASED");
    Report.same(semel.once(doubt, String.class, () -> "decided"), "decided");
  }

  private void mismatches() {
    Call first = call("payload").payload("{\"amount\":1}").operation("Orders.pay");
    Report.same(semel.once(first, String.class, () -> "a"), "a");
    Report.same(semel.once(first, String.class, () -> "b"), "a");
    Report.thrown(Mismatch.class,
        () -> semel.once(first.payload("{\"amount\":2}"), String.class, () -> "b"));
    Report.thrown(Mismatch.class,
        () -> semel.once(first.operation("Orders.refund"), String.class, () -> "b"));
    Rejected done = Report.thrown(Rejected.class,
        () -> semel.once(first.duplicate(Duplicate.REJECT), String.class, () -> "b"));
    Report.same(done.reason(), Rejected.Reason.DONE);
  }

  private void keys() {
    for (String bad : new String[] {null, "", "  ", "x".repeat(1025), "ü".repeat(513)}) {
      Report.thrown(InvalidKey.class, () -> semel.once("calls", bad, () -> "ran"));
    }
    for (String good : new String[] {"x".repeat(1024), "a b\r\nc\0d:" + driver, "日本" + driver}) {
      semel.once("calls", good, () -> "ran");
      Report.same(semel.once("calls", good, () -> "again"), "ran");
    }
    Report.thrown(ServerError.class, () -> semel.once("no:such name", "k", () -> "ran"));
  }

  private void results() {
    AtomicInteger runs = new AtomicInteger();
    Report.thrown(ResultNotKept.class, () -> semel.once(call("loop"), Loop.class, () -> {
      runs.incrementAndGet();
      return new Loop();
    }));
    Report.thrown(ResultNotKept.class,
        () -> semel.once(call("large"), String.class, () -> "x".repeat(1 << 20)));
    for (String name : new String[] {"loop", "large"}) {
      Rejected gone = Report.thrown(Rejected.class,
          () -> semel.once(call(name), String.class, () -> "no"));
      Report.same(gone.reason(), Rejected.Reason.RESULT_GONE);
    }
    Report.same(runs.get(), 1);
    semel.once(call("number"), String.class, () -> "not a number");
    Rejected unreadable = Report.thrown(Rejected.class,
        () -> semel.once(call("number"), Receipt.class, () -> null));
    Report.has(unreadable.getMessage(), "cannot be read");
    // As a client of another language stores it.
    Claimed plain = semel.claim(call("plain"));
    semel.command("SEMEL.COMPLETE", "calls", key("plain"), Long.toString(plain.work().epoch()),
        "{\"id\":7,\"text\":\"go\",\"more\":1}");
    Report.same(semel.once(call("plain"), Receipt.class, () -> null).id, 7L);
    semel.command("SEMEL.FORGET", "calls", key("plain"));
    Report.thrown(Unrecorded.class, () -> plain.work().complete(new byte[0]));
  }

  private void nested() {
    Rejected error = Report.thrown(Rejected.class, () -> semel.once(call("nested"), String.class,
        () -> semel.once(call("nested").wait(Duration.ofSeconds(60)), String.class, () -> "in")));
    Report.same(error.reason(), Rejected.Reason.NESTED);
    Report.same(semel.once(call("outer"), String.class,
        () -> semel.once(call("inner"), String.class, () -> "in") + " out"), "in out");
  }

  private void async() throws Exception {
    CompletableFuture<String> source = new CompletableFuture<>();
    CompletableFuture<String> first = semel.onceAsync(call("async"), String.class, () -> source);
    CompletableFuture<String> second =
        semel.onceAsync(call("async"), String.class, () -> source);
    Report.same(second.isCompletedExceptionally(), true);
    source.complete("later");
    Report.same(first.get(10, TimeUnit.SECONDS), "later");
    Report.same(semel.<String>onceAsync(call("async"), String.class, () -> null).get(), "later");
    CompletableFuture<String> failed = new CompletableFuture<>();
    CompletableFuture<String> third =
        semel.onceAsync(call("async failed"), String.class, () -> failed);
    failed.completeExceptionally(new IllegalStateException("own"));
    Report.until(third::isCompletedExceptionally);
    Report.same(semel.<String>onceAsync(call("async failed"), String.class,
        () -> CompletableFuture.completedFuture("ok")).get(10, TimeUnit.SECONDS), "ok");
    Report.same(semel.<String>onceAsync(call("async null"), String.class, () -> null)
        .isCompletedExceptionally(), true);
  }

  private void tokens() {
    Tokens tokens = semel.tokens("tokens", Terms.as("token"));
    String token = tokens.issue(60_000);
    Report.same(token.matches("[0-9a-f]{32}"), true);
    Report.thrown(IllegalStateException.class, () -> semel.once(tokens.call(token), String.class,
        () -> {
          throw new IllegalStateException("gives the token back");
        }));
    Report.same(semel.once(tokens.call(token), String.class, () -> "used"), "used");
    Report.same(semel.once(tokens.call(token), String.class, () -> "twice"), "used");
    Report.thrown(UnknownToken.class,
        () -> semel.once(tokens.call("0".repeat(32)), String.class, () -> "forged"));
  }

  private void rates() {
    for (RateLimiter limiter : new RateLimiter[] {
        semel.rateLimiter(RateLimiter.Kind.FIXED, 3, Duration.ofDays(1)),
        semel.rateLimiter(RateLimiter.Kind.SLIDING, 3, Duration.ofDays(1)),
        semel.bucket(3, Duration.ofDays(1), 1)}) {
      String key = key("rate" + System.identityHashCode(limiter));
      Report.same(limiter.look(key).remaining(), 3L);
      Report.same(limiter.take(key, 2).allowed(), true);
      RateLimiter.Rate refused = limiter.take(key, 2);
      Report.same(refused.allowed(), false);
      Report.same(refused.remaining(), 1L);
      Report.same(refused.retryAfterMs() > 0 && refused.resetAfterMs() >= refused.retryAfterMs(),
          true);
      Report.same(limiter.take(key).allowed(), true);
      Report.same(limiter.take(key).allowed(), false);
      Report.thrown(IllegalArgumentException.class, () -> limiter.take(key, 4));
      Report.thrown(IllegalArgumentException.class, () -> limiter.take(key, -1));
      Report.thrown(InvalidKey.class, () -> limiter.take(""));
      Report.thrown(InvalidKey.class, () -> limiter.take(null));
      Report.thrown(InvalidKey.class, () -> limiter.take("k".repeat(70_000)));
    }
    Report.thrown(IllegalArgumentException.class,
        () -> semel.rateLimiter(RateLimiter.Kind.FIXED, 0, Duration.ofDays(1)));
    Report.thrown(IllegalArgumentException.class,
        () -> semel.rateLimiter(RateLimiter.Kind.FIXED, 1, Duration.ofNanos(1)));
    Report.thrown(IllegalArgumentException.class,
        () -> semel.rateLimiter(RateLimiter.Kind.FIXED, 1, Duration.ofDays(367)));
    Report.thrown(IllegalArgumentException.class, () -> semel.bucket(1, Duration.ofDays(1), -1));
  }

  private void consumers() {
    Consumer consumer = new Consumer(semel, "mails", Duration.ofSeconds(60), Duration.ofDays(1), 3);
    AtomicInteger runs = new AtomicInteger();
    Report.same(consumer.consume(key("m-1"), runs::incrementAndGet).kind(), Verdict.Kind.ACK);
    Report.same(consumer.consume(key("m-1"), runs::incrementAndGet).kind(),
        Verdict.Kind.ACK_DUPLICATE);
    Report.same(runs.get(), 1);
    for (Verdict.Kind expected : new Verdict.Kind[] {Verdict.Kind.RETRY_LATER,
        Verdict.Kind.RETRY_LATER, Verdict.Kind.DEAD_LETTER, Verdict.Kind.DEAD_LETTER}) {
      Verdict verdict = consumer.consume(key("m-2"), () -> {
        throw new IllegalStateException("no such address " + runs.incrementAndGet());
      });
      Report.same(verdict.kind(), expected);
    }
    Report.same(runs.get(), 4);  // the last delivery did not run
    Verdict inner = consumer.consume(key("m-3"), () -> {
      Report.same(consumer.consume(key("m-3"), () -> "x").kind(), Verdict.Kind.RETRY_LATER);
      return null;
    });
    Report.same(inner.kind(), Verdict.Kind.ACK);
    Verdict plain = consumer.consume(null, runs::incrementAndGet);
    Report.same(plain.isAck() && plain.unguarded(), true);
  }

  private void terms() {
    String name = "terms-" + driver;
    Terms first = Terms.as("payment").lease(Duration.ofSeconds(5));
    semel.declare(name, first);
    semel.declare(name, first);
    Report.thrown(IllegalStateException.class, () -> semel.declare(name, Terms.as("call")));
    try (Semel other = Drivers.semel(Drivers.named(driver, Report.PORT), new Options())) {
      ServerError error =
          Report.thrown(ServerError.class, () -> other.declare(name, Terms.as("payment")));
      Report.has(error.getMessage(), "lease 5000 -> 60000");
    }
    try (Semel other = Drivers.semel(Drivers.named(driver, Report.PORT),
        new Options().changeTerms(true))) {
      other.declare(name, Terms.as("payment"));
    }
  }

  private void collections() throws Exception {
    java.lang.reflect.Type type = CoreSuite.class.getDeclaredMethod("typed").getGenericReturnType();
    for (int i = 0; i < 2; ++i) {
      Map<String, List<Receipt>> got =
          semel.onceOf(call("typed"), type, () -> Map.of("a", List.of(new Receipt(1, "x"))));
      Report.same(got.get("a").get(0).id, 1L);
    }
  }

  static Map<String, List<Receipt>> typed() {
    return null;
  }

  private void run() {
    Report.check("once, " + driver, this::once);
    Report.check("sixteen threads, " + driver, this::race);
    Report.check("waiters, " + driver, this::waiters);
    Report.check("a wait that ends, " + driver, this::waitEnds);
    Report.check("exceptions, " + driver, this::exceptions);
    Report.check("mismatches, " + driver, this::mismatches);
    Report.check("keys, " + driver, this::keys);
    Report.check("results, " + driver, this::results);
    Report.check("generic results, " + driver, this::collections);
    Report.check("nested calls, " + driver, this::nested);
    Report.check("async, " + driver, this::async);
    Report.check("tokens, " + driver, this::tokens);
    Report.check("rate limits, " + driver, this::rates);
    Report.check("consumers, " + driver, this::consumers);
    Report.check("terms, " + driver, this::terms);
  }

  public static void main(String[] arguments) throws Exception {
    java.util.logging.Logger.getLogger("io.semel").setLevel(java.util.logging.Level.OFF);
    for (String driver : new String[] {"Lettuce", "Jedis", "Redisson"}) {
      new CoreSuite(driver).run();
    }
    StoriesSuite.run();
    Report.end();
  }
}
