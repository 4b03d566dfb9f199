package io.semel;

import java.util.ArrayList;
import java.util.List;

/**
 * One completion with its repeats. Work that ran is done even if the node has no room for its
 * result: then the completion says so instead, without the result. For one thread.
 */
final class Completion {
  private final Link link;
  private final Work work;
  private final byte[] result;
  private byte[] bare;
  private String dropped;
  private boolean isUnanswered;

  Completion(Link link, Work work, byte[] result) {
    this.link = link;
    this.work = work;
    this.result = result;
  }

  /** Why the node has it without its result, or null. */
  String dropped() {
    return dropped;
  }

  /** What the node answers within the time of Options.recordPatience, or throws. */
  String outcome(Wire wire, Options options) {
    String outcome;
    try {
      outcome = sent(wire.toTheEnd((same, timeoutMs) -> send(timeoutMs), null,
          options.callTimeoutMs, options.recordPatienceMs));
    } catch (Unreachable over) {
      boolean isRefused = over.getCause() instanceof ServerError;
      if (!isRefused || !drop((ServerError) over.getCause())) throw over;
      // Refused to the end, such as by a full disk, which may take less.
      outcome = sent(call(bare, options.callTimeoutMs));
    }
    if (!outcome.equals("conflict") || dropped == null || !isUnanswered) return outcome;
    // An earlier try, whose answer was lost, has brought the result after all.
    dropped = null;
    return "ok";
  }

  private static String sent(Object reply) {
    return new Reply(reply).outcome();
  }

  private Object send(long timeoutMs) {
    try {
      return call(bare == null ? result : bare, timeoutMs);
    } catch (ServerError error) {
      if (!error.isOfResult() || !drop(error)) throw error;
      return call(bare, timeoutMs);
    } catch (Unreachable error) {
      isUnanswered = true;
      throw error;
    }
  }

  /** False if there is nothing to leave out. */
  private boolean drop(ServerError error) {
    Envelope whole = Envelope.decode(result);
    if (bare != null || result.length == 0 || whole.dropped() != null) return false;
    String operation = whole.operation().isEmpty() ? work.call().operation : whole.operation();
    dropped = "the node did not take it: " + error.getMessage();
    bare = Envelope.dropped(operation, dropped).encode();
    return true;
  }

  private Object call(byte[] last, long timeoutMs) {
    Call call = work.call();
    List<byte[]> words = new ArrayList<>(Wire.words("SEMEL.COMPLETE", call.namespace, call.key,
        Long.toString(work.epoch())));
    words.add(last);
    return link.call(words, timeoutMs);
  }
}
