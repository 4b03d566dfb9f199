package io.semel.tests;

import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.core.type.TypeReference;
import io.semel.Call;
import io.semel.Codec;
import io.semel.Consumer;
import io.semel.LazyResult;
import io.semel.OnException;
import io.semel.Options;
import io.semel.PlainCodec;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.Semel;
import io.semel.Verdict;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** What counts as having run, and that a repeat gets what the first caller got. */
final class ResultSuite {
  private static Semel semel;
  private static int keys;

  private ResultSuite() {}

  enum Color {
    RED {
      @Override
      public String toString() {
        return "a colour";
      }
    }
  }

  @JsonTypeInfo(use = JsonTypeInfo.Id.NAME)
  @JsonSubTypes({@JsonSubTypes.Type(Circle.class), @JsonSubTypes.Type(Square.class)})
  interface Shape {}

  record Circle(int radius) implements Shape {}

  record Square(int side) implements Shape {}

  interface Untold {}

  record Told(int id) implements Untold {}

  record Order(String id, BigDecimal amount, byte[] seal) {}

  /** Without equality. */
  public static class Bean {
    public List<Instant> times = List.of(Instant.ofEpochSecond(1, 5));
    public Map<Integer, Color> colors = Map.of(1, Color.RED);
  }

  private static Call call() {
    return Call.of("results", "k-" + ++keys);
  }

  private static String typeless(Object value) {
    return value == null ? "null" : value.getClass().getName();
  }

  /** The repeat's value has the same text; what it is made of is looked at by the library. */
  private static void again(TypeReference<?> type, Object value) throws Exception {
    Call call = call();
    Object first = semel.onceOf(call, type.getType(), () -> value);
    Object second = semel.onceOf(call, type.getType(), () -> "ran again");
    Report.same(first == value, true);
    Report.same(Drivers.JSON.encode(second).length, Drivers.JSON.encode(value).length);
    if (value instanceof List && !((List<?>) value).isEmpty()) {
      Report.same(typeless(((List<?>) second).get(0)), typeless(((List<?>) value).get(0)));
    } else if (!(value instanceof Map) && !(value instanceof Set)) {
      Report.same(typeless(second), typeless(value));
    }
  }

  private static void kept() throws Exception {
    Order order = new Order("o", new BigDecimal("1.10"), new byte[] {0, -1});
    again(new TypeReference<Order>() {}, order);
    again(new TypeReference<List<Order>>() {}, List.of(order, order));
    again(new TypeReference<Map<String, Order>>() {}, Map.of("a", order));
    again(new TypeReference<Map<Integer, List<Order>>>() {}, Map.of(7, List.of(order)));
    again(new TypeReference<Optional<Order>>() {}, Optional.of(order));
    again(new TypeReference<Optional<Order>>() {}, Optional.empty());
    again(new TypeReference<Optional<Order>>() {}, null);
    again(new TypeReference<List<Shape>>() {}, List.of(new Circle(1), new Square(2)));
    again(new TypeReference<Shape>() {}, new Square(2));
    again(new TypeReference<Bean>() {}, new Bean());
    again(new TypeReference<List<Bean>>() {}, List.of(new Bean()));
    again(new TypeReference<Set<Color>>() {}, Set.of(Color.RED));
    again(new TypeReference<List<Object>>() {},
        Arrays.asList("a", 1, true, null, new BigDecimal("1.50")));
    again(new TypeReference<ZonedDateTime>() {},
        ZonedDateTime.parse("2026-07-01T12:00:00.123456789+02:00[Europe/Berlin]"));
    again(new TypeReference<List<Duration>>() {}, List.of(Duration.ofNanos(1)));
    again(new TypeReference<BigInteger>() {}, BigInteger.TEN.pow(40));
    again(new TypeReference<BigDecimal>() {}, new BigDecimal("1E+3"));
    again(new TypeReference<UUID>() {}, new UUID(1, 2));
    again(new TypeReference<byte[]>() {}, new byte[] {1, 2});
    again(new TypeReference<int[][]>() {}, new int[][] {{1}, {2, 3}});
    again(new TypeReference<Double>() {}, Double.NaN);
    again(new TypeReference<Character>() {}, 'x');
    again(new TypeReference<Object>() {}, "text");
  }

  /** The first caller is told that repeats will not get it, and repeats are. */
  private static void notKept(Type type, Object value) {
    Call call = call();
    ResultNotKept first = Report.thrown(ResultNotKept.class,
        () -> semel.onceOf(call, type, () -> value));
    Report.same(first.value() == value, true);
    Rejected second = Report.thrown(Rejected.class,
        () -> semel.onceOf(call, type, () -> "ran again"));
    Report.same(second.reason(), Rejected.Reason.RESULT_GONE);
  }

  private static void told() throws Exception {
    notKept(Object.class, new Told(1));
    notKept(Untold.class, new Told(1));
    notKept(new TypeReference<List<Untold>>() {}.getType(), List.of(new Told(1)));
    notKept(Object.class, 5L);
    notKept(Number.class, 5L);
    notKept(Object.class, 1.5);
    notKept(new TypeReference<Map<String, Object>>() {}.getType(), Map.of("a", Instant.EPOCH));
    notKept(new TypeReference<Map<Told, String>>() {}.getType(), Map.of(new Told(1), "a"));
    notKept(String.class, "x".repeat(1 << 20));
    notKept(CoreSuite.Loop.class, new CoreSuite.Loop());
    notKept(Order.class, new Told(1));
    Call async = call();
    CompletableFuture<Object> first = semel.onceAsync(async, Object.class,
        () -> CompletableFuture.completedFuture(new Told(1)));
    try {
      first.get();
      throw new AssertionError("not told");
    } catch (java.util.concurrent.ExecutionException error) {
      Report.same(error.getCause().getClass(), ResultNotKept.class);
    }
  }

  /** Null is none of a codec's values. */
  private static void plain() {
    try (Semel other = new Semel(Drivers.lettuce(Report.PORT), new Options(), new PlainCodec())) {
      for (String value : new String[] {null, "", "null"}) {
        Call call = call();
        Report.same(other.once(call, String.class, () -> value), value);
        Report.same(other.once(call, String.class, () -> "again"), value);
      }
    }
  }

  private static void refused(Type type) {
    AtomicInteger runs = new AtomicInteger();
    Call call = call();
    Report.thrown(IllegalArgumentException.class,
        () -> semel.onceOf(call, type, runs::incrementAndGet));
    Report.same(runs.get(), 0);
    Report.same(semel.claim(call).work().attempt(), 1L);
  }

  private static void lazyTypes() {
    for (Type each : new Type[] {CompletableFuture.class, Stream.class, Iterator.class,
        Supplier.class, Callable.class, java.io.InputStream.class, Runnable.class,
        new TypeReference<List<CompletableFuture<String>>>() {}.getType(),
        new TypeReference<Map<String, ? extends Stream<String>>>() {}.getType(),
        new TypeReference<Optional<Supplier<String>>[]>() {}.getType()}) {
      refused(each);
    }
    Report.thrown(IllegalArgumentException.class, () -> semel.onceAsync(call(),
        new TypeReference<CompletableFuture<String>>() {}.getType(), () -> null));
  }

  private static List<Object> lazies() {
    Supplier<String> supplier = () -> "later";
    return List.of(new CompletableFuture<String>(), Stream.of(1), List.of(1).iterator(), supplier,
        List.of(new CompletableFuture<String>()), Map.of("a", supplier), Optional.of(Stream.of(1)),
        new Object[] {supplier}, new java.io.ByteArrayInputStream(new byte[1]));
  }

  /** Of a type that says nothing the value does; the claim ends as after an exception. */
  private static void lazyValues() throws Exception {
    for (Object each : lazies()) {
      Call call = call();
      Report.thrown(LazyResult.class, () -> semel.once(call, Object.class, () -> each));
      Report.same(semel.once(call, Object.class, () -> "ran"), "ran");
      Call doubt = call().onException(OnException.IN_DOUBT);
      Report.thrown(LazyResult.class, () -> semel.once(doubt, Object.class, () -> each));
      Report.thrown(io.semel.InDoubt.class, () -> semel.once(doubt, Object.class, () -> "ran"));
    }
  }

  private static void verdicts() {
    Consumer consumer = new Consumer(semel, "verdicts", Duration.ofSeconds(60),
        Duration.ofDays(1), 3);
    List<Object> never = new ArrayList<>(lazies());
    never.addAll(List.of(false, 0, 0L, 0.0, new BigDecimal("0.00")));
    for (Object each : never) {
      String id = "m-" + ++keys;
      Report.same(consumer.consume(id, () -> each).kind(), Verdict.Kind.RETRY_LATER);
      Report.same(consumer.consume(id, () -> null).kind(), Verdict.Kind.ACK);
      Report.same(consumer.consume("", () -> each).kind(), Verdict.Kind.RETRY_LATER);
    }
    String id = "m-" + ++keys;
    Report.same(consumer.decide(id, () -> null).kind(), Verdict.Kind.RETRY_LATER);
    Report.same(consumer.decide(id, () -> Verdict.retryLater(Duration.ZERO)).kind(),
        Verdict.Kind.RETRY_LATER);
    Report.same(consumer.decide(id, Verdict::ack).kind(), Verdict.Kind.ACK);
    Report.same(consumer.decide(id, () -> null).kind(), Verdict.Kind.ACK_DUPLICATE);
    String dead = "m-" + ++keys;
    Report.same(consumer.decide(dead, () -> Verdict.deadLetter(null)).kind(),
        Verdict.Kind.DEAD_LETTER);
    Report.same(consumer.decide(dead, Verdict::ack).kind(), Verdict.Kind.DEAD_LETTER);
  }

  static void run() {
    Codec json = Drivers.JSON;
    semel = new Semel(Drivers.lettuce(Report.PORT), new Options(), json);
    Report.check("once-again-8: repeats get an equal value", ResultSuite::kept);
    Report.check("once-again-8: the first caller is told what is not kept", ResultSuite::told);
    Report.check("once-again-8: null is none of a codec's values", ResultSuite::plain);
    Report.check("once-again-7: lazy types are refused before the claim", ResultSuite::lazyTypes);
    Report.check("once-again-7: lazy values are no results", ResultSuite::lazyValues);
    Report.check("once-again-9: only verdicts are verdicts", ResultSuite::verdicts);
    semel.close();
  }
}
