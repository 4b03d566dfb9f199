package io.semel.tests;

import io.semel.Call;
import io.semel.Consumer;
import io.semel.Link;
import io.semel.Observer;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.Semel;
import io.semel.ServerError;
import io.semel.Unreachable;
import io.semel.Unrecorded;
import io.semel.Verdict;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;

/** Completions that the node does not take as they are: its memory or its disk is full. */
final class RecordSuite {
  private static final String OOM = "OOM memory limit reached, nothing was changed";
  private static final String MISCONF = "MISCONF the journal cannot accept writes";

  private RecordSuite() {}

  /** In front of a link: what it makes of a completion. Null: it is passed on. */
  private static final class Between implements Link {
    private final Link link;
    private final Function<byte[], RuntimeException> refuse;
    private boolean isLost;

    Between(Link link, Function<byte[], RuntimeException> refuse) {
      this.link = link;
      this.refuse = refuse;
    }

    @Override
    public Object call(List<byte[]> words, long timeoutMs) {
      if (!new String(words.get(0), StandardCharsets.US_ASCII).equals("SEMEL.COMPLETE")) {
        return link.call(words, timeoutMs);
      }
      if (isLost) {
        isLost = false;
        link.call(words, timeoutMs);
        throw new Unreachable("no reply", null);
      }
      RuntimeException refused = refuse.apply(words.get(4));
      if (refused != null) throw refused;
      return link.call(words, timeoutMs);
    }

    @Override
    public Object callAlone(List<byte[]> words, long timeoutMs) {
      return link.callAlone(words, timeoutMs);
    }

    @Override
    public Object callBound(List<byte[]> words, long timeoutMs) {
      return link.callBound(words, timeoutMs);
    }

    @Override
    public long generation() {
      return link.generation();
    }

    @Override
    public void close() {
      link.close();
    }
  }

  private static Call call(String key) {
    return Call.of("records", key);
  }

  /** Until it takes no text of 1,000 bytes. */
  private static void fill(Node node) throws Exception {
    for (int size : new int[] {1_000_000, 10_000, 1_000}) {
      String value = "x".repeat(size);
      for (int i = 0; node.ask("SET", "filler-" + size + "-" + i, value).startsWith("+OK"); ++i) {}
    }
  }

  /** The memory is used up while the work runs. */
  private static void full(String driver) throws Exception {
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    try (Node node = new Node("--maxmemory", "64mb");
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()),
            new Options().resultBytesMax(8_000_000).recordPatience(Duration.ZERO))) {
      semel.observe((event, namespace, nanos) -> events.add(event));
      String large = "y".repeat(5_000_000);  // more than is set aside for ends
      ResultNotKept first = Report.thrown(ResultNotKept.class,
          () -> semel.once(call("k"), String.class, () -> {
            fill(node);
            return large;
          }));
      Report.same(first.value(), large);
      Report.has(first.getMessage(), "OOM");
      Report.same(events, List.of(Observer.Event.RAN, Observer.Event.RESULT_DROPPED));
      node.advance(60_001);
      Rejected second = Report.thrown(Rejected.class,
          () -> semel.once(call("k"), String.class, () -> "ran again"));
      Report.same(second.reason(), Rejected.Reason.RESULT_GONE);
    }
  }

  private static Semel between(Function<byte[], RuntimeException> refuse) {
    return Drivers.semel(new Between(Drivers.lettuce(Report.PORT), refuse),
        new Options().recordPatience(Duration.ofMillis(200)));
  }

  private static String text(byte[] result) {
    return new String(result, StandardCharsets.UTF_8);
  }

  /** Not only of once(): futures, and work that is completed by hand. */
  private static void withoutResult() throws Exception {
    for (String word : new String[] {OOM, MISCONF, "ERR value too long"}) {
      try (Semel semel = between(result -> text(result).contains("dropped: ") ? null
          : new ServerError(word))) {
        String key = "bare " + word;
        CompletableFuture<Object> told = semel.onceAsync(call(key), String.class,
            () -> CompletableFuture.completedFuture("value"));
        Throwable cause = Report.thrown(ExecutionException.class, told::get).getCause();
        Report.same(((ResultNotKept) cause).value(), "value");
        Rejected again = Report.thrown(Rejected.class,
            () -> semel.once(call(key), String.class, () -> "ran again"));
        Report.same(again.reason(), Rejected.Reason.RESULT_GONE);
        byte[] bytes = "by hand".getBytes();
        ResultNotKept byHand = Report.thrown(ResultNotKept.class,
            () -> semel.claim(call(key + ", by hand")).work().complete(bytes));
        Report.same(byHand.value() == bytes, true);
      }
    }
  }

  /** What is refused for a moment is kept. */
  private static void aMoment() {
    int[] tries = new int[1];
    try (Semel semel = between(result -> ++tries[0] < 3 ? new ServerError(MISCONF) : null)) {
      Report.same(semel.once(call("moment"), String.class, () -> "value"), "value");
      Report.same(semel.once(call("moment"), String.class, () -> "ran again"), "value");
    }
  }

  /** The first try has recorded the result, its reply is lost, and the second finds no memory. */
  private static void keptAfterAll() {
    Between link = new Between(Drivers.lettuce(Report.PORT),
        result -> text(result).contains("dropped: ") ? null : new ServerError(OOM));
    try (Semel semel = Drivers.semel(link, new Options())) {
      link.isLost = true;
      Report.same(semel.once(call("lost"), String.class, () -> "value"), "value");
      Report.same(semel.once(call("lost"), String.class, () -> "ran again"), "value");
    }
  }

  private static void unrecorded() throws Exception {
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    try (Semel semel = between(result -> new ServerError(MISCONF))) {
      semel.observe((event, namespace, nanos) -> events.add(event));
      Unrecorded told = Report.thrown(Unrecorded.class,
          () -> semel.once(call("never"), String.class, () -> "value"));
      Report.same(told.value(), "value");
      Report.has(told.getMessage(), "MISCONF");
      CompletableFuture<Object> later = semel.onceAsync(call("never, later"), String.class,
          () -> CompletableFuture.completedFuture("value"));
      Throwable cause = Report.thrown(ExecutionException.class, later::get).getCause();
      Report.same(((Unrecorded) cause).value(), "value");
      Report.thrown(Unrecorded.class, () -> semel.claim(call("never, by hand")).work()
          .complete(new byte[0]));
      // It was handled, and the broker is told so.
      Consumer consumer = new Consumer(semel, "records-messages");
      Report.same(consumer.consume("m", () -> null).kind(), Verdict.Kind.ACK);
      Report.same(events, List.of(Observer.Event.UNRECORDED, Observer.Event.UNRECORDED,
          Observer.Event.UNRECORDED, Observer.Event.UNRECORDED));
    }
  }

  static void run() {
    for (String driver : new String[] {"Lettuce", "Jedis", "Redisson"}) {
      Report.check("once-again-22: work whose result has no room is done, and runs once, " + driver,
          () -> full(driver));
    }
    Report.check("once-again-22: done without a result that is refused",
        RecordSuite::withoutResult);
    Report.check("once-again-22: a result that is refused for a moment is kept",
        RecordSuite::aMoment);
    Report.check("once-again-22: a result that was kept is not called dropped",
        RecordSuite::keptAfterAll);
    Report.check("once-again-22: what is not recorded is told, with the value",
        RecordSuite::unrecorded);
  }
}
