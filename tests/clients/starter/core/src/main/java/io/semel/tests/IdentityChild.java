package io.semel.tests;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.annotation.JsonValue;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Currency;
import java.util.Date;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Supplier;

/** Another JVM that says the keys of the same values. */
public final class IdentityChild {
  private IdentityChild() {}

  /** Its hash code is another one in each JVM; its text is not its name. */
  enum Right {
    READ, WRITE {
      @Override
      public String toString() {
        return "may write";
      }
    },
    ADMIN, AUDIT, OWNER, GUEST;

    @Override
    public String toString() {
      return "right " + ordinal();
    }
  }

  record Grant(String user, Set<Right> rights, Map<Right, Set<String>> more) {}

  record Line(int count, Supplier<String> extra) {}

  record Order(String id, List<Line> lines) {}

  /** Equal by its members, which a mapper would write in the order of its hash table. */
  static final class Bean {
    private final Set<UUID> ids;
    private final HashMap<String, Object> more;
    @JsonProperty("sum")
    private final BigDecimal amount;
    @JsonIgnore
    private final long seen = System.nanoTime();
    private final transient long hash = System.nanoTime();
    private final float part = 0.1f;
    private final double whole = 2.0E-3;
    private final int hidden;

    Bean(Set<UUID> ids, HashMap<String, Object> more, BigDecimal amount, int hidden) {
      this.ids = ids;
      this.more = more;
      this.amount = amount;
      this.hidden = hidden;
    }

    public Set<UUID> getIds() {
      return ids;
    }

    public HashMap<String, Object> getMore() {
      return more;
    }

    public BigDecimal getAmount() {
      return amount;
    }
  }

  /** As its text. */
  record Money(@JsonIgnore long cents) {
    @JsonValue
    String text() {
      return cents + " c";
    }
  }

  @JsonTypeInfo(use = JsonTypeInfo.Id.NAME)
  interface Means {}

  record Card(String id) implements Means {}

  record Account(String id) implements Means {}

  static class Parent {
    private final int id;

    Parent(int id) {
      this.id = id;
    }
  }

  static final class Derived extends Parent {
    private final int id = 1;

    Derived(int parents) {
      super(parents);
    }
  }

  /** Writes itself: what it holds cannot be seen. */
  static final class Hidden implements java.io.Serializable {
    private static final long serialVersionUID = 1L;
    private final transient Object inside = "state";

    private void writeObject(java.io.ObjectOutputStream out) throws java.io.IOException {
      out.writeObject(inside);
    }
  }

  private static <T> Set<T> shuffled(List<T> from) {
    List<T> copy = new ArrayList<>(from);
    java.util.Collections.shuffle(copy);
    return new LinkedHashSet<>(copy);
  }

  static Map<String, Object> values() {
    Map<String, Object> all = new LinkedHashMap<>();
    List<Right> rights = List.of(Right.READ, Right.WRITE, Right.ADMIN, Right.AUDIT, Right.OWNER);
    Map<Right, Set<String>> more = new HashMap<>();
    for (Right each : rights) more.put(each, shuffled(List.of("Aa", "BB", "c")));
    all.put("sets of enums", new Grant("u", new HashSet<>(rights), more));
    all.put("sets that collide", shuffled(List.of("AaAa", "BBBB", "AaBB", "BBAa")));
    all.put("immutable sets", Set.of("a", "b", "c", "d", "e", Right.OWNER));
    all.put("an immutable map", Map.of("a", 1, "b", 2, "c", Map.of(3, 4, 5, 6)));
    all.put("a map of enums", new EnumMap<>(Map.of(Right.READ, 1, Right.GUEST, 2)));
    Set<UUID> ids = new HashSet<>();
    for (long i = 0; i < 9; ++i) ids.add(new UUID(i, i * 31));
    HashMap<String, Object> inside = new HashMap<>();
    for (int i = 0; i < 40; ++i) inside.put("k" + i, shuffled(List.of(1, 2L, 3.5)));
    all.put("a bean", new Bean(ids, inside, new BigDecimal("1.50"), 7));
    all.put("sets of beans", shuffled(List.of(new Order("a", List.of()), new Order("b", List.of()))));
    all.put("numbers", Arrays.asList(2.0E-3, 2E23, 4.9E-324, 1.1f, 9007199254740993L,
        new BigInteger("123456789012345678901234567890"), new BigDecimal("1E+3"), 1e21));
    all.put("times", Arrays.asList(Instant.parse("2026-01-31T09:20:30.5Z"), new Date(0),
        LocalDate.of(2026, 1, 31), LocalTime.NOON, Duration.ofMillis(90_500),
        ZonedDateTime.parse("2026-07-01T12:00+02:00[Europe/Berlin]"),
        java.sql.Timestamp.from(Instant.ofEpochSecond(1, 5)), java.sql.Date.valueOf("2026-01-31")));
    all.put("others", Arrays.asList("\u0130i\u00fc\ud83d\ude00", 'x', new byte[] {0, -1},
        ByteBuffer.wrap(new byte[] {1, 2}), Optional.of(5), Optional.empty(), Locale.GERMANY,
        Currency.getInstance("EUR"), java.net.URI.create("a:b"), new int[] {1, 2}, new Money(5),
        Right.WRITE, new TreeSet<>(List.of("b", "a")), Map.entry("a", 1), new Card("c")));
    return all;
  }

  static Object[][] differing() {
    HashMap<String, Object> none = new HashMap<>();
    Map<String, Object> isNull = new HashMap<>();
    isNull.put("a", null);
    return new Object[][] {{isNull, none}, {isNull, Map.of("a", "null")}, {Map.of("a", ""), isNull},
        {List.of(1, 2), List.of(2, 1)}, {List.of(1, 2), Set.of(1, 2)}, {"1", 1},
        {9007199254740993L, 9007199254740992L}, {0.1f, (double) 0.1f}, {Right.READ, Right.WRITE},
        {Map.of(1, "a"), Map.of("1", "a")}, {new byte[] {1}, List.of(1)}, {true, "true"},
        {Map.of("$set", List.of(1)), Set.of(1)}, {Map.of("$set", List.of(1)),
        Map.of("$$set", List.of(1))}, {"\u00e9", "e\u0301"}, {new Card("a"), new Account("a")},
        {new Bean(Set.of(), none, BigDecimal.ONE, 1), new Bean(Set.of(), none, BigDecimal.ONE, 2)},
        {new Derived(1), new Derived(2)}, {List.of("a", "b"), List.of("ab")},
        {List.of(List.of("a"), List.of("b")), List.of(List.of("a", "b"))},
        {Instant.EPOCH, Instant.EPOCH.plusNanos(1)}, {new BigDecimal("0.1"),
        new BigDecimal("0.10000000000000000001")}, {Duration.ofSeconds(-1), Duration.ofSeconds(1)}};
  }

  public static void main(String[] words) {
    for (Map.Entry<String, Object> each : values().entrySet()) {
      Child.say(each.getKey() + " " + IdentitySuite.key(each.getValue()));
    }
  }
}
