package io.semel.tests;

import io.semel.Call;
import io.semel.Consumer;
import io.semel.LeaseLost;
import io.semel.Semel;
import io.semel.Terms;
import java.time.Duration;

/**
 * A child whose claims are in a group: it halts in the middle of its work, or is stopped in it.
 * DRIVER STORY, with a name for the keys of this round.
 */
final class GroupOwner {
  /** Renewed while the child lives; so long after its end others wait. */
  private static final Duration LEASE = Duration.ofSeconds(3);
  static final int WORKS = 3;

  private GroupOwner() {}

  static Call order(String name) {
    return Call.of("orders", name).lease(LEASE);
  }

  static Call payment(String name) {
    return Call.of("payments", name).lease(LEASE).terms(Terms.as("payment"));
  }

  static Consumer mails(Semel semel) {
    return new Consumer(semel, "mails", LEASE, Duration.ofDays(1), 16);
  }

  private static String working() {
    Child.say("working");
    try {
      Thread.sleep(600_000);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
    return "of the child";
  }

  private static void thread(Runnable run) {
    Thread thread = new Thread(run);
    thread.setDaemon(true);
    thread.start();
  }

  public static void main(String[] words) throws Exception {
    Semel semel = GroupDrivers.semel(words[0], "child");
    String name = words[2];
    if (words[1].equals("halted")) {
      thread(() -> semel.once(order(name), String.class, GroupOwner::working));
      thread(() -> semel.once(payment(name), String.class, GroupOwner::working));
      thread(() -> mails(semel).consume(name, GroupOwner::working));
      Child.waitForParent();
      Runtime.getRuntime().halt(9);
    }
    try {
      semel.once(order(name), String.class, () -> {
        Child.say("working");
        Child.waitForParent();
        return "of the child";
      });
      Child.say("recorded");
    } catch (LeaseLost lost) {
      Child.say("lost");
    }
    Runtime.getRuntime().halt(0);
  }
}
