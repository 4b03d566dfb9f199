package io.semel.tests;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.semel.Call;
import io.semel.CanonicalJson;
import io.semel.Identity;
import io.semel.InvalidKey;
import io.semel.KeyText;
import io.semel.Options;
import io.semel.Semel;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** docs/identity.md: the table of all languages, and what is Java's alone. */
final class IdentitySuite {
  private static final ObjectMapper JSON = new ObjectMapper();

  private IdentitySuite() {}

  private enum Color {
    RED {
      @Override
      public String toString() {
        return "a colour";
      }
    }
  }

  private record Box(String name, int size) {}

  private static JsonNode table() throws Exception {
    return JSON.readTree(new File("tests/identity/cases.json"));
  }

  private static String text(JsonNode node, String name) {
    return node.hasNonNull(name) ? node.get(name).asText() : null;
  }

  private static void refused(String name, Report.Work work) {
    try {
      Report.thrown(InvalidKey.class, work);
    } catch (AssertionError other) {
      throw new AssertionError(name + ": " + other.getMessage(), other);
    }
  }

  private static void is(String name, String found, String expected) {
    if (!found.equals(expected)) throw new AssertionError(name + ": " + found);
  }

  private static void cases() throws Exception {
    int played = 0;
    for (JsonNode each : table().get("cases")) {
      String name = text(each, "name");
      ++played;
      if (each.get("kind").asText().equals("json")) {
        if (each.has("error")) {
          refused(name, () -> CanonicalJson.ofJson(text(each, "json")));
        } else {
          String canonical = CanonicalJson.ofJson(text(each, "json"));
          is(name, canonical, text(each, "canonical"));
          is(name, CanonicalJson.digest(canonical).substring(0, 32), text(each, "sha256"));
        }
      } else if (each.has("error")) {
        refused(name, () -> identity(each));
      } else {
        Identity found = identity(each);
        is(name, found.text(), text(each, "canonical"));
        is(name, found.fingerprint(), text(each, "sha256"));
        is(name, found.key(), text(each, "key"));
      }
    }
    Report.same(played >= 102, true);
  }

  /** A scope of nobody cannot be written here; one of an empty user can. */
  private static Identity identity(JsonNode each) {
    JsonNode scope = each.get("scope");
    String user = scope.isObject() && scope.isEmpty() ? "" : text(scope, "user");
    return Identity.ofJson(text(each, "operation"), text(scope, "tenant"), user,
        text(each, "arguments"));
  }

  private static void values() throws Exception {
    for (JsonNode each : table().get("values")) {
      String name = text(each, "name");
      Object made = made(each.get("type").asText(), each.get("value"));
      if (each.has("refused")) {
        refused(name, () -> CanonicalJson.of(made));
      } else {
        is(name, CanonicalJson.of(made), text(each, "json"));
      }
    }
  }

  private static List<Object> elements(JsonNode list) {
    List<Object> made = new ArrayList<>();
    for (Iterator<JsonNode> i = list.elements(); i.hasNext();) {
      made.add(made(i.next().asText(), i.next()));
    }
    return made;
  }

  /** A type that this does not know fails the check. */
  private static Object made(String type, JsonNode value) {
    String text = value.asText();
    return switch (type) {
      case "null" -> null;
      case "bool" -> value.asBoolean();
      case "integer" -> new BigInteger(text).bitLength() < 64 ? (Object) Long.valueOf(text)
          : new BigInteger(text);
      case "big_integer" -> new BigInteger(text);
      case "float" -> Double.valueOf(text);
      case "decimal" -> new BigDecimal(text);
      case "text" -> text;
      case "lone_surrogate" -> Character.toString((char) Integer.parseInt(text, 16));
      case "bytes" -> HexFormat.of().parseHex(text);
      case "enum" -> Color.valueOf(text);
      case "uuid" -> UUID.fromString(text);
      case "date" -> LocalDate.parse(text);
      case "time" -> LocalTime.parse(text);
      case "datetime" -> LocalDateTime.parse(text);
      case "instant" -> OffsetDateTime.parse(text);
      case "duration" -> Duration.parse("PT" + text + "S");
      case "list" -> elements(value);
      case "set" -> new LinkedHashSet<>(elements(value));
      case "map" -> map(elements(value));
      case "record" -> new Box(value.get(2).asText(), value.get(5).asInt());
      case "function" -> (Supplier<String>) () -> "later";
      case "stream" -> new ByteArrayInputStream(new byte[1]);
      case "future" -> new CompletableFuture<String>();
      case "generator" -> List.of("a").iterator();
      case "cycle" -> cycle();
      case "opaque" -> new Object();
      default -> throw new AssertionError("no type " + type);
    };
  }

  private static Map<Object, Object> map(List<Object> pairs) {
    Map<Object, Object> made = new LinkedHashMap<>();
    for (int i = 0; i < pairs.size(); i += 2) made.put(pairs.get(i), pairs.get(i + 1));
    return made;
  }

  private static List<Object> cycle() {
    List<Object> made = new ArrayList<>();
    made.add(Map.of("self", made));
    return made;
  }

  private static void formats() throws Exception {
    for (JsonNode each : table().get("formats")) {
      Map<String, Object> fields = new TreeMap<>();
      each.get("fields").fields().forEachRemaining(
          field -> fields.put(field.getKey(), field.getValue().textValue()));
      String format = text(each, "format");
      if (each.has("error")) {
        refused(format, () -> KeyText.format(format, fields));
      } else {
        is(format, KeyText.format(format, fields), text(each, "key"));
      }
    }
    Report.same(KeyText.composite("a|b", "c"), "a\\|b|c");
    Report.same(KeyText.composite("a", "b|c"), "a|b\\|c");
    Report.same(KeyText.composite(7L, Color.RED, new BigDecimal("1.50")), "7|RED|1.5");
    refused("a null field", () -> KeyText.composite("a", null));
    refused("an empty field", () -> KeyText.composite("a", ""));
  }

  /** Both sides of each bound. */
  private static void bounds() {
    CanonicalJson.ofJson("[".repeat(128) + "]".repeat(128));
    refused("129 levels", () -> CanonicalJson.ofJson("[".repeat(129) + "]".repeat(129)));
    CanonicalJson.ofJson("[" + "1,".repeat(1_048_574) + "1]");
    refused("values", () -> CanonicalJson.ofJson("[" + "1,".repeat(1_048_575) + "1]"));
    String most = "x".repeat((16 << 20) - 2);
    CanonicalJson.ofJson('"' + most + '"');
    refused("bytes", () -> CanonicalJson.ofJson('"' + most + "x\""));
    refused("bytes of a value", () -> CanonicalJson.of(most + "x"));
    refused("bytes beyond ASCII", () -> CanonicalJson.of("\u00fc".repeat(8 << 20)));
    Object nested = "end";
    for (int i = 0; i < 128; ++i) nested = List.of(nested);
    CanonicalJson.of(nested);
    Object deeper = List.of(nested);
    refused("129 levels of lists", () -> CanonicalJson.of(deeper));
    refused("a long number", () -> CanonicalJson.of(BigInteger.TEN.pow(1_000_000)));
    refused("a large number", () -> CanonicalJson.of(new BigDecimal("1E+2000000000")));
    refused("a small number", () -> CanonicalJson.of(new BigDecimal("1E-2000000000")));
  }

  private static void inEachJvm() throws Exception {
    List<String> expected = new ArrayList<>();
    IdentityChild.values().forEach((name, value) -> expected.add(name + " " + key(value)));
    List<String> homes = new ArrayList<>(List.of(System.getProperty("java.home")));
    File[] installed = new File("/usr/lib/jvm").listFiles();
    for (File each : installed == null ? new File[0] : installed) {
      // Of this one its class files are too new for the older ones.
      if (new File(each, "release").exists() && isNewer(each)) homes.add(each.getPath());
    }
    for (String home : homes) {
      // Identity hash codes: an address, and always 1; here they are random.
      for (String hash : new String[] {"1", "2"}) {
        try (Child child = new Child(home, List.of("-XX:+UnlockExperimentalVMOptions",
            "-XX:hashCode=" + hash, "-Duser.language=tr", "-Duser.timezone=Asia/Tokyo",
            "-Dfile.encoding=ISO-8859-1"), IdentityChild.class)) {
          for (String each : expected) Report.same(child.line(), each);
        }
      }
    }
  }

  private static boolean isNewer(File home) throws Exception {
    String release = java.nio.file.Files.readString(new File(home, "release").toPath());
    java.util.regex.Matcher version =
        java.util.regex.Pattern.compile("JAVA_VERSION=\"(\\d+)").matcher(release);
    return version.find() && Integer.parseInt(version.group(1)) > Runtime.version().feature();
  }

  static String key(Object value) {
    return Identity.of("pay", value).key();
  }

  /** Of each pair the second one is other work. */
  private static void differ() {
    Object[][] pairs = IdentityChild.differing();
    for (Object[] each : pairs) {
      if (key(each[0]).equals(key(each[1]))) {
        throw new AssertionError(CanonicalJson.of(each[0]) + " is that of " + each[1]);
      }
    }
  }

  private static void names() {
    Map<String, Object> arguments = new LinkedHashMap<>();
    arguments.put("order", new IdentityChild.Order("o-1", List.of(
        new IdentityChild.Line(1, () -> "later"))));
    InvalidKey error = Report.thrown(InvalidKey.class, () -> Identity.of("pay", arguments));
    Report.has(error.getMessage(), "order.lines[0].extra: a java.util.function.Supplier");
    Report.has(Report.thrown(InvalidKey.class, () -> Identity.of("pay",
        Map.of("when", new IdentityChild.Hidden()))).getMessage(), "when: a ");
  }

  /** The digits of Double.toString were not the shortest before JDK 19. */
  private static void shortest() {
    Object[][] known = {{2.0E-3, "0.002"}, {2.2250738585072014E-308, "2.2250738585072014e-308"},
        {4.9E-324, "5e-324"}, {2E23, "2e+23"}, {1.0E23, "1e+23"}, {8.41E21, "8.41e+21"},
        {9.007199254740993E15, "9007199254740992"}, {1.1E-5f, "0.000011"}, {0.1f, "0.1"},
        {1.4E-45f, "1e-45"}, {3.4028235E38f, "3.4028235e+38"}, {Math.scalb(1.0, -44),
        "5.684341886080802e-14"}, {9.5367431640625E-7, "9.5367431640625e-7"}, {-0.0f, "0"}};
    for (Object[] each : known) Report.same(CanonicalJson.of(each[0]), each[1]);
    java.util.Random random = new java.util.Random(34);
    for (int i = 0; i < 20_000; ++i) {
      double value = Math.abs(Double.longBitsToDouble(random.nextLong()));
      if (Double.isNaN(value) || Double.isInfinite(value)) continue;
      String text = CanonicalJson.of(value);
      Report.same(Double.parseDouble(text), value);
      int digits = text.replaceFirst("e.*", "").replaceAll("^0[.0]*|[.]|0+$", "").length();
      int java = Double.toString(value).replaceFirst("E.*", "").replaceAll("[.]|0+$", "").length();
      if (digits > java) throw new AssertionError(text + " for " + value);
    }
  }

  /** A call's operation alone, by its claim: as other languages have it. */
  private static void operationAlone() {
    try (Semel semel = Drivers.semel(Drivers.lettuce(Report.PORT), new Options())) {
      semel.once(Call.of("identities", "alone").operation("pay"), String.class, () -> "paid");
      List<?> claim = (List<?>) semel.command("SEMEL.GETCLAIM", "identities", "alone");
      List<String> texts = new ArrayList<>();
      for (Object each : claim) {
        texts.add(each instanceof byte[] ? new String((byte[]) each) : String.valueOf(each));
      }
      Report.has(texts.toString(), "c2515859b748268828a9d1f486bc4bdf");
      // A null that is given is a payload.
      Report.thrown(io.semel.Mismatch.class, () -> semel.once(Call.of("identities", "alone")
          .operation("pay").json("null"), String.class, () -> "paid"));
    }
  }

  static void run() {
    Report.check("once-again-4: an operation without arguments", IdentitySuite::operationAlone);
    Report.check("once-again-4: the table of identity", IdentitySuite::cases);
    Report.check("once-again-4: Java's values by the table", IdentitySuite::values);
    Report.check("once-again-4: formats of keys by the table", IdentitySuite::formats);
    Report.check("once-again-4: the bounds of an identity", IdentitySuite::bounds);
    Report.check("once-again-4: equal values in each JVM", IdentitySuite::inEachJvm);
    Report.check("once-again-4: other values have other keys", IdentitySuite::differ);
    Report.check("once-again-4: what is refused is named", IdentitySuite::names);
    Report.check("once-again-4: the shortest digits", IdentitySuite::shortest);
  }
}
