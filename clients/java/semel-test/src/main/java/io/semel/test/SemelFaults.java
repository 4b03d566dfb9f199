package io.semel.test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What goes wrong with requests: {@code faults.error("LOADING not yet").command("set").plant()}.
 * Without more words a fault acts once, on the next command that is not of a connection's begin
 * (HELLO, AUTH, CLIENT, PING).
 */
public final class SemelFaults {
  private final SemelServer server;

  SemelFaults(SemelServer server) {
    this.server = server;
  }

  /** The reply is this error, and the command does not run. */
  public Fault error(String text) {
    return new Fault("ERROR", text);
  }

  /** The command runs after this time of the server's clock, a minute at most. */
  public Fault delay(Duration time) {
    return new Fault("DELAY", time.toMillis());
  }

  /** The connection is closed, and the command does not run. */
  public Fault drop() {
    return new Fault("DROP");
  }

  /** The command runs, and the connection is closed instead of its reply. */
  public Fault dropReply() {
    return new Fault("DROP-REPLY");
  }

  /** Removes all; returns how many there were. */
  public long clear() {
    return (Long) server.call("SEMEL.FAULT", "CLEAR");
  }

  /** A fault that is not planted yet. */
  public final class Fault {
    private final List<Object> words = new ArrayList<>(Arrays.asList("SEMEL.FAULT", "ADD"));

    private Fault(Object... action) {
      words.addAll(Arrays.asList(action));
    }

    /** Only commands whose name matches this glob: {@code set}, {@code h*}. */
    public Fault command(String glob) {
      return with("COMMAND", glob);
    }

    /** Only commands with a key that matches this glob. */
    public Fault key(String glob) {
      return with("KEY", glob);
    }

    /** From the n-th matching command on, not the first. */
    public Fault nth(long n) {
      return with("NTH", n);
    }

    /** On so many in a row, not one. */
    public Fault times(long count) {
      return with("COUNT", count);
    }

    /** On all that follow. */
    public Fault always() {
      return with("COUNT", 0);
    }

    /** From now on it acts. */
    public void plant() {
      server.call(words.toArray());
    }

    private Fault with(String name, Object value) {
      words.add(name);
      words.add(value);
      return this;
    }
  }
}
