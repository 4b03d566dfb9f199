package io.semel.test;

import java.time.Duration;
import java.time.Instant;

/** The server's clock. It runs with the machine's until a test moves or stops it. */
public final class SemelClock {
  private final SemelServer server;

  SemelClock(SemelServer server) {
    this.server = server;
  }

  /** Moves on by whole milliseconds. What has ended by then is gone when this returns. */
  public void advance(Duration time) {
    server.call("SEMEL.CLOCK", "ADVANCE", time.toMillis());
  }

  /** Stands still from now on; {@link #advance} still moves it. */
  public void freeze() {
    server.call("SEMEL.CLOCK", "FREEZE");
  }

  /** Runs on, ahead of the machine's clock by all that it was advanced. */
  public void run() {
    server.call("SEMEL.CLOCK", "REAL");
  }

  public Instant now() {
    return Instant.ofEpochMilli(Long.parseLong(server.call("SEMEL.CLOCK", "NOW").toString()));
  }
}
