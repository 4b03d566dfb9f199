package io.semel;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;

/** Claims: asks, waits and turns outcomes into answers. */
final class Claimer {
  private static final int OWNER_BYTES_MAX = 64;
  private static final int PERMITS_MAX = 1_024;
  private static final byte[] PERMIT = "SEMEL.PERMIT".getBytes(StandardCharsets.US_ASCII);
  /** Between two attempts at what is shared with others: the first pause, and the longest. */
  private static final long SHARED_PAUSE_MS = 2;
  private static final long SHARED_PAUSE_MS_MAX = 50;
  /** A caller that waits for a read/write lock, and dies, stops the others for so long. */
  private static final long NEXT_MS = 1_000;
  private static final Terms OF_PERMITS = Terms.as("lock");
  private final Semel semel;
  private final Link link;
  private final Wire wire;
  private final Options options;
  private final Abandoned abandoned;
  private final Semaphore waits;
  private final String owner;

  Claimer(Semel semel, Link link, Wire wire, Options options, Abandoned abandoned) {
    this.abandoned = abandoned;
    this.semel = semel;
    this.link = link;
    this.wire = wire;
    this.options = options;
    waits = new Semaphore(options.waitsMax);
    owner = cut(options.owner);
  }

  private static String cut(String label) {
    while (label.getBytes(StandardCharsets.UTF_8).length > OWNER_BYTES_MAX) {
      label = label.substring(0, label.length() - 1);
    }
    return label;
  }

  Claimed claim(Call call) {
    long started = System.nanoTime();
    checkKey(call.key);
    if (Work.isRunningHere(call)) {
      throw reported(Observer.Event.REJECTED, call, started, new Rejected(Rejected.Reason.NESTED,
          call + " is run by this very thread; the inner call would wait for itself", 0));
    }
    List<byte[]> words = words(call, Wire.words("SEMEL.CLAIM", call.namespace, call.key));
    Wire.Way way = way();
    try {
      Reply reply = ask(call, words, way, started + TimeUnit.MILLISECONDS.toNanos(call.waitMs));
      return answer(call, reply, started);
    } catch (Unreachable error) {
      semel.report(Observer.Event.UNREACHABLE, call, started);
      abandoned.release(call, words, way);
      // A caller that was interrupted does not want the work to be done, not unprotected either.
      boolean refuses = options.whenUnreachable == Options.WhenUnreachable.REFUSE
          || Thread.currentThread().isInterrupted();
      if (refuses) throw error;
      Wire.LOG.warning(call + " runs unprotected: " + error.getMessage());
      return Claimed.granted(new Work(semel, call, started));
    }
  }

  private Wire.Way way() {
    return options.bind ? link::callBound : link::call;
  }

  Permit permit(Call given, int permits) {
    if (permits < 1 || permits > PERMITS_MAX) {
      throw new IllegalArgumentException(permits + " permits, 1 to " + PERMITS_MAX
          + " are possible");
    }
    return shared(given, "SEMEL.PERMIT", Integer.toString(permits),
        (work, reply) -> new Permit(work, (int) reply.number("slot")));
  }

  /** `access`: READ or WRITE. */
  Access access(Call given, String access) {
    return shared(given, "SEMEL.RWLOCK", access,
        (work, reply) -> new Access(work, reply.number("token")));
  }

  /** What is held together with others: `made` makes it of a grant. */
  private <T> T shared(Call given, String command, String word,
      BiFunction<Work, Reply, T> made) {
    long started = System.nanoTime();
    checkKey(given.key);
    Call call = given.terms == Call.TERMS ? given.terms(OF_PERMITS) : given;
    if (call.fingerprint().length != 0 || call.firstSent != null) {
      throw new IllegalArgumentException(call + " is shared with others, and"
          + " has no payload, operation, identity or firstSent: its holders do different work");
    }
    List<byte[]> words = words(call, Wire.words(command, call.namespace, call.key, word));
    Wire.Way way = way();
    try {
      long endNanos = started + TimeUnit.MILLISECONDS.toNanos(call.waitMs);
      Reply reply = Arrays.equals(words.get(0), PERMIT) ? ask(call, words, way, endNanos)
          : askForAccess(call, words, way, endNanos);
      return sharedOf(call, reply, started, made);
    } catch (Unreachable error) {
      semel.report(Observer.Event.UNREACHABLE, call, started);
      abandoned.release(call, words, way);
      throw error;
    }
  }

  /** Who asks again is not to be overtaken. */
  private static List<byte[]> inFront(List<byte[]> words) {
    List<byte[]> next = new ArrayList<>(words);
    next.addAll(4, Wire.words("NEXT", Long.toString(NEXT_MS)));
    return next;
  }

  /** After so many attempts at what is shared with others. Waiters do not ask all at once. */
  private static long sharedPauseMs(long seen) {
    long most = Math.min(SHARED_PAUSE_MS << Math.min(seen, 5), SHARED_PAUSE_MS_MAX);
    return ThreadLocalRandom.current().nextLong(most / 2, most + 1);
  }

  private Reply askForAccess(Call call, List<byte[]> words, Wire.Way way, long endNanos) {
    for (long seen = 0;; ++seen) {
      boolean isLast = TimeUnit.NANOSECONDS.toMillis(endNanos - System.nanoTime()) <= 0;
      Reply reply = asked(call, isLast ? words : inFront(words), way);
      if (isLast || !reply.outcome().equals("in_flight")) return reply;
      long leftMs = TimeUnit.NANOSECONDS.toMillis(endNanos - System.nanoTime());
      if (!Wire.pause(Math.max(0, Math.min(leftMs, sharedPauseMs(seen))))) {
        abandoned.release(call, words, way);  // or its place in front stops the others
        return reply;
      }
    }
  }

  private <T> T sharedOf(Call call, Reply reply, long started, BiFunction<Work, Reply, T> made) {
    switch (reply.outcome()) {
      case "granted":
      case "regranted":
        Work work = new Work(semel, call.at(reply.text("key")), reply, started);
        semel.watch(work);
        return made.apply(work, reply);
      case "unprotected":
        throw reported(Observer.Event.REJECTED, call, started, new Rejected(
            Rejected.Reason.BUSY, "no room for " + call
            + ", and to run unprotected is not to hold it", 1_000));
      case "replay":
        throw reported(Observer.Event.REJECTED, call, started, new Rejected(
            Rejected.Reason.DONE, call + " is of finished work, not shared with others", 0));
      default:
        throw refusal(call, reply, started);
    }
  }

  private void checkKey(String key) {
    if (key == null || key.trim().isEmpty()) throw new InvalidKey("the key is empty");
    CanonicalJson.checkText(key);
    int length = key.getBytes(StandardCharsets.UTF_8).length;
    if (length > options.keyBytesMax) {
      throw new InvalidKey("the key has " + length + " bytes; the limit is " + options.keyBytesMax);
    }
  }

  /** Each try has the same id, so that a lost reply costs no lease. */
  private List<byte[]> words(Call call, List<byte[]> named) {
    List<byte[]> words = new ArrayList<>(named);
    words.addAll(Wire.words("LEASE", Long.toString(call.leaseMs), "CLAIM-ID",
        UUID.randomUUID().toString()));
    words.addAll(Wire.words(call.fingerprint()));
    if (call.firstSent != null) {
      words.addAll(Wire.words("FIRST-SENT", Long.toString(call.firstSent.toEpochMilli())));
    }
    if (!owner.isEmpty()) words.addAll(Wire.words("OWNER", owner));
    if (options.bind) words.addAll(Wire.words("BIND"));
    return words;
  }

  private Reply ask(Call call, List<byte[]> words, Wire.Way way, long endNanos) {
    boolean alone = !options.bind;
    boolean isPermit = Arrays.equals(words.get(0), PERMIT);
    for (long seen = 0;; ++seen) {
      Reply reply = asked(call, words, way);
      long leftMs = TimeUnit.NANOSECONDS.toMillis(endNanos - System.nanoTime());
      if (!reply.outcome().equals("in_flight") || leftMs <= 0) return reply;
      if (alone && waits.tryAcquire()) {
        try {
          return waited(call, words, leftMs);
        } catch (UnsupportedOperationException none) {
          alone = false;
        } finally {
          waits.release();
        }
      } else {
        long pauseMs = isPermit ? sharedPauseMs(seen)
            : Math.min(10L << Math.min(seen, 5), Math.max(1, reply.number("retry_after_ms")));
        if (!Wire.pause(Math.min(leftMs, pauseMs))) return reply;
      }
    }
  }

  /** The reply to the last of the tries, which knows when that began. */
  private Reply asked(Call call, List<byte[]> words, Wire.Way way) {
    long[] began = new long[1];
    Wire.Way timed = (same, timeoutMs) -> {
      began[0] = System.nanoTime();
      return way.send(same, timeoutMs);
    };
    Object reply = wire.persistently(declared(call, timed), words, options.callTimeoutMs,
        options.patienceMs);
    return new Reply(reply, began[0]);
  }

  /** Each try declares the namespace where the node may have forgotten it. */
  private Wire.Way declared(Call call, Wire.Way way) {
    return (words, timeoutMs) -> {
      wire.declare(call.namespace, call.terms);
      try {
        return way.send(words, timeoutMs);
      } catch (ServerError error) {
        if (!error.getMessage().contains("not declared")) throw error;
        wire.forgetDeclared(call.namespace);
        wire.declare(call.namespace, call.terms);
        return way.send(words, timeoutMs);
      }
    };
  }

  private Reply waited(Call call, List<byte[]> claim, long leftMs) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(leftMs);
    // Each try waits for what is left: 1 ms or more, as 0 would be without limit.
    return new Reply(wire.persistently(declared(call, (same, timeout) -> {
      long now = Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime()));
      return link.callAlone(waiting(claim, now), now + timeout);
    }), claim, options.callTimeoutMs, Math.max(options.patienceMs, leftMs)));
  }

  /** The words of a claim or of a permit, with a wait. */
  private static List<byte[]> waiting(List<byte[]> words, long waitMs) {
    String wait = Long.toString(waitMs);
    boolean isPermit = Arrays.equals(words.get(0), PERMIT);
    int named = isPermit ? 4 : 1;  // the command, namespace, key and permits
    List<byte[]> all = isPermit ? new ArrayList<>(words.subList(0, named)) : new ArrayList<>();
    all.addAll(isPermit ? Wire.words("WAIT", wait) : Wire.words("SEMEL.WAIT", wait));
    all.addAll(words.subList(named, words.size()));
    return all;
  }

  private Claimed answer(Call call, Reply reply, long started) {
    switch (reply.outcome()) {
      case "granted":
      case "regranted":
        Work work = new Work(semel, call, reply, started);
        semel.watch(work);
        return Claimed.granted(work);
      case "unprotected":
        return Claimed.granted(new Work(semel, call, started));
      case "replay":
        semel.report(call.duplicate == Duplicate.REJECT ? Observer.Event.REJECTED
            : Observer.Event.REPLAYED, call, started);
        return Claimed.done(reply.flag("result_expired") ? null : reply.bytes("result"));
      default:
        throw refusal(call, reply, started);
    }
  }

  private SemelException refusal(Call call, Reply reply, long started) {
    switch (reply.outcome()) {
      case "in_flight":
        String by = reply.text("owner").isEmpty() ? "another owner" : reply.text("owner");
        return reported(Observer.Event.REJECTED, call, started, new Rejected(
            Rejected.Reason.IN_FLIGHT, call + " is being done by " + by,
            Math.max(1, reply.number("retry_after_ms"))));
      case "mismatch":
        return reported(Observer.Event.MISMATCH, call, started,
            new Mismatch(call + " was used for another payload or by another operation"));
      case "in_doubt":
        return reported(Observer.Event.IN_DOUBT, call, started, new InDoubt(call
            + " has an unknown outcome: its owner went silent, or said so; SEMEL.RESOLVE decides"));
      case "kept_failure":
        boolean poison = reply.flag("poison");
        return reported(Observer.Event.KEPT_FAILURE, call, started, new KeptFailure(call
            + (poison ? " was tried as often as is allowed" : " failed for good"),
            reply.text("failure"), poison, reply.number("attempt")));
      case "unknown":
        return reported(Observer.Event.UNKNOWN_TOKEN, call, started,
            new UnknownToken("no such token, or its time is over"));
      case "busy":
        return reported(Observer.Event.REJECTED, call, started, new Rejected(
            Rejected.Reason.BUSY, "no room for " + call + ": " + reply.text("reason"), 1_000));
      case "too_old":
        return reported(Observer.Event.REJECTED, call, started,
            new Rejected(Rejected.Reason.TOO_OLD, call + " was sent too long ago", 0));
      case "too_new":
        return reported(Observer.Event.REJECTED, call, started,
            new Rejected(Rejected.Reason.TOO_NEW, call + " claims to be of the future", 0));
      default:
        return new ServerError("ERR unknown outcome " + reply.outcome());
    }
  }

  private <X extends SemelException> X reported(Observer.Event event, Call call, long started,
      X refusal) {
    semel.report(event, call, started);
    return refusal;
  }
}
