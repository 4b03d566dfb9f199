package io.semel.tests;

import io.semel.Call;
import io.semel.Consumer;
import io.semel.LeaseLost;
import io.semel.Options;
import io.semel.Semel;
import io.semel.Terms;
import java.time.Duration;

/** A child: the owner of a claim that dies, or stands still, while it works. */
public final class Owner {
  private Owner() {}

  static Call call(String namespace) {
    Call call = Call.of(namespace, "order-1").lease(Duration.ofSeconds(60));
    return namespace.equals("payments") ? call.terms(Terms.as("payment")) : call;
  }

  /** PORT STORY NAMESPACE */
  public static void main(String[] words) throws Exception {
    int port = Integer.parseInt(words[0]);
    Options options = new Options().owner("child").bind(words[1].equals("bound"));
    Semel semel = Drivers.semel(Drivers.lettuce(port), options);
    if (words[1].equals("consumer")) {
      new Consumer(semel, words[2]).consume("m-1", () -> {
        Child.say("working");
        Child.waitForParent();
        Runtime.getRuntime().halt(9);
        return null;
      });
    }
    try {
      semel.once(call(words[2]), String.class, () -> {
        Child.say("working");
        Child.waitForParent();
        if (!words[1].equals("slow")) Runtime.getRuntime().halt(9);
        return "of the child";
      });
      Child.say("recorded");
    } catch (LeaseLost lost) {
      Child.say("lost");
    }
    Runtime.getRuntime().halt(0);
  }
}
