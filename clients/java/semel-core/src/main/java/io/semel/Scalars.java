package io.semel;

import java.io.File;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.URI;
import java.net.URL;
import java.nio.charset.Charset;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Calendar;
import java.util.Currency;
import java.util.Date;
import java.util.Locale;
import java.util.TimeZone;
import java.util.UUID;

/** Values that are one text or number; see JsonTree. */
final class Scalars {
  private Scalars() {}

  /** A String or CanonicalJson.Exact; null if it is none of these. */
  static Object of(Object value) {
    if (value instanceof Number) return JsonTree.ofNumber((Number) value);
    String text = text(value);
    if (text == null) text = time(value);
    if (text != null) CanonicalJson.checkText(text);
    return text;
  }

  private static String text(Object value) {
    if (value instanceof CharSequence || value instanceof Character || value instanceof URI
        || value instanceof URL || value instanceof File || value instanceof Path) {
      return value.toString();
    }
    if (value instanceof char[]) return new String((char[]) value);
    if (value instanceof UUID) return value.toString();
    if (value instanceof Locale) return ((Locale) value).toLanguageTag();
    if (value instanceof Currency) return ((Currency) value).getCurrencyCode();
    if (value instanceof Charset) return ((Charset) value).name();
    if (value instanceof InetAddress) return ((InetAddress) value).getHostAddress();
    return null;
  }

  private static String time(Object value) {
    if (value instanceof Date) return date((Date) value);
    if (value instanceof Calendar) return instant(((Calendar) value).toInstant());
    if (value instanceof TimeZone) return ((TimeZone) value).getID();
    if (value instanceof Instant) return instant((Instant) value);
    if (value instanceof OffsetDateTime) return instant(((OffsetDateTime) value).toInstant());
    if (value instanceof ZonedDateTime) return instant(((ZonedDateTime) value).toInstant());
    if (value instanceof LocalDateTime) return local((LocalDateTime) value);
    if (value instanceof LocalTime) return local((LocalTime) value);
    if (value instanceof OffsetTime) {
      return local(((OffsetTime) value).toLocalTime()) + ((OffsetTime) value).getOffset().getId();
    }
    if (value instanceof Duration) return duration((Duration) value);
    if (value instanceof ZoneId) return ((ZoneId) value).getId();
    boolean iso = value instanceof LocalDate || value instanceof Period || value instanceof Year
        || value instanceof YearMonth || value instanceof MonthDay;
    return iso ? value.toString() : null;
  }

  /** Those of java.sql are a date or a time of day; that module need not be there. */
  private static String date(Date value) {
    for (Class<?> type = value.getClass(); type != null; type = type.getSuperclass()) {
      if (type.getName().equals("java.sql.Date") || type.getName().equals("java.sql.Time")) {
        return value.toString();
      }
    }
    return instant(value.toInstant());
  }

  private static String instant(Instant value) {
    try {
      return local(LocalDateTime.ofInstant(value, ZoneOffset.UTC)) + "Z";
    } catch (DateTimeException beyond) {
      throw new InvalidKey("a time beyond all dates: " + value, beyond);
    }
  }

  private static String local(LocalDateTime value) {
    return value.toLocalDate() + "T" + local(value.toLocalTime());
  }

  private static String local(LocalTime value) {
    StringBuilder made = new StringBuilder(String.format((Locale) null, "%02d:%02d:%02d",
        value.getHour(), value.getMinute(), value.getSecond()));
    if (value.getNano() != 0) {
      made.append(String.format((Locale) null, ".%09d", value.getNano()).replaceFirst("0+$", ""));
    }
    return made.toString();
  }

  private static String duration(Duration value) {
    BigDecimal seconds = BigDecimal.valueOf(value.getSeconds())
        .add(BigDecimal.valueOf(value.getNano(), 9));
    return "PT" + (seconds.signum() == 0 ? "0" : seconds.stripTrailingZeros().toPlainString())
        + "S";
  }
}
