package io.semel.tests;

import com.fasterxml.jackson.annotation.JsonBackReference;
import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonManagedReference;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.type.TypeReference;
import io.semel.Call;
import io.semel.Consumer;
import io.semel.LazyResult;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.Semel;
import io.semel.Verdict;
import java.lang.reflect.Type;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** What results hold in their fields: what a codec loses of it, and what has not run. */
final class FieldSuite {
  private static Semel semel;
  private static int keys;

  private FieldSuite() {}

  /** No getter names its field. */
  public static class Private {
    public int id = 7;
    private String secret;

    public Private() {}

    Private(String secret) {
      this.secret = secret;
    }
  }

  /** As Jackson is told. */
  public static class Ignored {
    public int id = 7;
    @JsonIgnore
    public String hidden;

    public Ignored() {}

    Ignored(String hidden) {
      this.hidden = hidden;
    }
  }

  /** Part of what the caller gets, whatever the keyword is for. */
  public static class Transient {
    public int id = 7;
    public transient String text;

    public Transient() {}

    Transient(String text) {
      this.text = text;
    }
  }

  /** Read, and never written. */
  public static class WriteOnly {
    public int id = 7;
    @JsonProperty(access = JsonProperty.Access.WRITE_ONLY)
    public String pin;

    public WriteOnly() {}

    WriteOnly(String pin) {
      this.pin = pin;
    }
  }

  /** The equality that it has is of its ancestor. */
  public static class Below extends Equal {
    private String secret;

    public Below() {}

    Below(String secret) {
      this.secret = secret;
    }
  }

  /** With an equality. */
  public static class Equal {
    public int id = 7;

    @Override
    public boolean equals(Object other) {
      return other instanceof Equal && ((Equal) other).id == id;
    }

    @Override
    public int hashCode() {
      return id;
    }
  }

  /** A list, and more. */
  public static class Page extends ArrayList<String> {
    private static final long serialVersionUID = 1L;
    public int total;

    public Page() {}

    Page(int total) {
      this.total = total;
      add("a");
    }
  }

  /** With one of the others in it. */
  public static class Holder<T> {
    public T value;
    public List<T> list;
    public T[] array;
    public Map<String, T> map;
    private int count = 3;

    public Holder() {}

    @SuppressWarnings("unchecked")
    Holder(T value) {
      this.value = value;
      list = Arrays.asList(value, null);
      array = (T[]) java.lang.reflect.Array.newInstance(value.getClass(), 1);
      array[0] = value;
      map = Map.of("a", value);
    }

    public int getCount() {
      return count;
    }

    public void setCount(int value) {
      count = value;
    }
  }

  /** A tree whose branches know it. */
  public static class Tree {
    public String name;
    @JsonBackReference
    public Tree parent;
    @JsonManagedReference
    public List<Tree> children = new ArrayList<>();

    public Tree() {}

    Tree(String name, Tree... children) {
      this.name = name;
      for (Tree each : children) {
        each.parent = this;
        this.children.add(each);
      }
    }
  }

  record One(Private only) {}

  record Sets(Set<Private> all) {}

  /** Beans of the JDK without equality. */
  public static class Held {
    public AtomicInteger number = new AtomicInteger(5);
    public AtomicReference<String> text = new AtomicReference<>("text");
    public StringBuilder builder = new StringBuilder("built");
    public ArrayDeque<String> queue = new ArrayDeque<>(List.of("a", "b"));
  }

  private static Call call() {
    return Call.of("fields", "k-" + ++keys);
  }

  private static void notKept(Type type, Object value) {
    Call call = call();
    Object first = Report.thrown(ResultNotKept.class,
        () -> semel.onceOf(call, type, () -> value)).value();
    Report.same(first == value, true);
    Report.same(Report.thrown(Rejected.class,
        () -> semel.onceOf(call, type, () -> "ran again")).reason(), Rejected.Reason.RESULT_GONE);
  }

  private static void kept(Type type, Object value) throws Exception {
    Call call = call();
    Report.same(semel.onceOf(call, type, () -> value) == value, true);
    Object again = semel.onceOf(call, type, () -> "ran again");
    Report.same(new String(Drivers.JSON.encode(again)), new String(Drivers.JSON.encode(value)));
  }

  private static void lost() throws Exception {
    for (Object each : new Object[] {new Private("s"), new Ignored("s"), new Transient("s"),
        new WriteOnly("s"), new Below("s"), new Page(40)}) {
      notKept(each.getClass(), each);
    }
    Type holder = new TypeReference<Holder<Private>>() {}.getType();
    notKept(holder, new Holder<>(new Private("s")));
    notKept(One.class, new One(new Private("s")));
    notKept(Sets.class, new Sets(Set.of(new Private("s"))));
    Type list = new TypeReference<List<Ignored>>() {}.getType();
    notKept(list, List.of(new Ignored(null), new Ignored("s")));
    notKept(new TypeReference<Optional<Private>>() {}.getType(), Optional.of(new Private("s")));
    notKept(new TypeReference<Map<String, Transient>>() {}.getType(),
        Map.of("a", new Transient("s")));
    notKept(Private[].class, new Private[] {new Private("s")});
    // Only what was lost is not kept.
    for (Object each : new Object[] {new Private(null), new Ignored(null), new Transient(null),
        new WriteOnly(null), new Below(null), new Page(0), new Held()}) {
      kept(each.getClass(), each);
    }
    kept(holder, new Holder<>(new Private(null)));
    kept(One.class, new One(new Private(null)));
    kept(Sets.class, new Sets(new HashSet<>(List.of(new Private(null), new Private(null)))));
    kept(list, List.of(new Ignored(null)));
  }

  private static void cycles() throws Exception {
    kept(Tree.class, new Tree("a", new Tree("b"), new Tree("c", new Tree("d"))));
    // A branch alone: its parent is not in the bytes.
    Tree branch = new Tree("b");
    new Tree("a", branch);
    notKept(Tree.class, branch);
  }

  /** With something lazy that it shows. */
  public static class Mail {
    public int id = 1;
    public CompletableFuture<String> sent = new CompletableFuture<>();
  }

  /** By a getter. */
  public static class Got {
    private final Object inside;

    Got(Object inside) {
      this.inside = inside;
    }

    public Object getInside() {
      return inside;
    }
  }

  record Future(int id, CompletableFuture<String> mail) {}

  record Streams(Stream<String> all) {}

  record Iterators(Iterator<String> all) {}

  record Suppliers(Supplier<String> later) {}

  record Any(Object value) {}

  private static List<Object> lazies() {
    CompletableFuture<String> future = new CompletableFuture<>();
    Any cycle = new Any(new ArrayList<Object>());
    Got self = new Got(new Object[] {cycle, future});
    @SuppressWarnings("unchecked")
    List<Object> list = (List<Object>) cycle.value();
    list.add(self);
    return List.of(new Mail(), new Future(1, future), new Streams(Stream.of("a")),
        new Future(1, CompletableFuture.completedFuture("a")), new Got(future),
        new Iterators(List.of("a").iterator()), new Suppliers(() -> "a"),
        new Any(Optional.of(future)), new Any(new Object[] {future}), new Any(Map.of("a", future)),
        new Any(List.of(new Got(new Any(future)))), Optional.of(new Mail()),
        List.of(new Mail()), Map.of("a", new Mail()), new Any(new AtomicReference<>(future)), cycle);
  }

  /** Also where a verdict is due. */
  private static void lazyFields() throws Exception {
    Consumer consumer = new Consumer(semel, "lazy-fields");
    for (Object each : lazies()) {
      Call call = call();
      Report.thrown(LazyResult.class, () -> semel.once(call, Object.class, () -> each));
      Report.same(semel.once(call, Object.class, () -> "ran"), "ran");
      String id = "m-" + ++keys;
      Report.same(consumer.consume(id, () -> each).kind(), Verdict.Kind.RETRY_LATER);
      Report.same(consumer.consume(id, () -> null).kind(), Verdict.Kind.ACK);
    }
    Report.thrown(LazyResult.class, () -> semel.once(call(), Mail.class, Mail::new));
  }

  /** What a class does not show is not what it stands for: its work has run. */
  public static class Inner {
    public int id = 1;
    private transient Supplier<String> hidden;
    private CompletableFuture<String> own;

    public Inner() {}

    Inner(boolean isUsed) {
      hidden = isUsed ? () -> "a" : null;
      own = isUsed ? new CompletableFuture<>() : null;
    }
  }

  private static void hidden() throws Exception {
    notKept(Inner.class, new Inner(true));
    kept(Inner.class, new Inner(false));
  }

  static void run() {
    semel = Drivers.semel(Drivers.lettuce(Report.PORT), new Options());
    Report.check("once-again-8: fields that a codec loses are not kept", FieldSuite::lost);
    Report.check("once-again-8: values that hold each other", FieldSuite::cycles);
    Report.check("once-again-7: lazy values in fields are no results", FieldSuite::lazyFields);
    Report.check("once-again-7: a hidden future is not kept", FieldSuite::hidden);
    semel.close();
  }
}
