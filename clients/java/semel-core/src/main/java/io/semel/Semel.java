package io.semel;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;

/**
 * Work that happens once, over a Redis client of the application:
 *
 * <pre>
 * Semel semel = new Semel(new LettuceLink(client));
 * String receipt = semel.once("orders", "order-4711", String.class, () -> pay(order));
 * </pre>
 *
 * All methods may be called from several threads. Errors: those of claim().
 */
public final class Semel implements AutoCloseable {
  private static final int WHY_CHARS_MAX = 300;
  private final Link link;
  private final Options options;
  private final Wire wire;
  private final Claimer claimer;
  private final Abandoned abandoned;
  private final Renewer renewer;
  private final Codec codec;
  private final Results results;
  private final List<Observer> observers = new CopyOnWriteArrayList<>();
  private final ExecutorService ends;

  /** With default options, and JSON if a Jackson is there. */
  public Semel(Link link) {
    this(link, new Options(), Codecs.found());
  }

  /** Closes `link` when it is closed itself. */
  public Semel(Link link, Options options, Codec codec) {
    this.link = link;
    this.options = options;
    this.codec = codec;
    results = new Results(codec);
    wire = new Wire(link, options);
    renewer = new Renewer(link, options);
    if (options.bind && !link.hasOwnConnections()) {
      throw new IllegalArgumentException("bind: this " + link.getClass().getSimpleName()
          + " was made without a way to open connections of its own");
    }
    abandoned = new Abandoned(link, options);
    claimer = new Claimer(this, link, wire, options, abandoned);
    ends = new ThreadPoolExecutor(0, 16, 10, TimeUnit.SECONDS, new SynchronousQueue<Runnable>(),
        task -> {
          Thread thread = new Thread(task, "semel-ends");
          thread.setDaemon(true);
          return thread;
        }, new ThreadPoolExecutor.CallerRunsPolicy());
  }

  public Semel observe(Observer observer) {
    observers.add(observer);
    return this;
  }

  public Codec codec() {
    return codec;
  }

  /**
   * Asks for the right to do the work, and waits for another owner if the call says so.
   *
   * @throws Rejected if another owner is doing it, or there is no room
   * @throws Mismatch if the key was used for another payload
   * @throws KeptFailure if it failed for good
   * @throws InDoubt if its outcome is unknown, and nobody has decided
   * @throws UnknownToken if the namespace's keys are issued, and this one was not
   * @throws InvalidKey if the key is null, empty or too long
   * @throws Unreachable if the node does not answer, unless the options say to run unprotected
   * @throws ServerError if the node refuses the command
   */
  public Claimed claim(Call call) {
    return claimer.claim(call);
  }

  /**
   * Runs `fn` if it did not run before under this key; otherwise answers what it returned then. What
   * it throws is passed on, and the key is free again, as Call.onException says. See claim().
   *
   * @throws LeaseLost if another owner took over while it ran
   * @throws ResultNotKept if it ran, but repeats cannot be given what it returned
   * @throws Unrecorded if it ran, but the node could not be told: a repeat may run
   * @throws LazyResult if it returned a future, a stream or the like: that is a failure
   */
  public <T, X extends Exception> T once(Call call, Class<T> type, Fn<T, X> fn) throws X {
    return type.isPrimitive() ? onceOf(call, type, fn) : type.cast(onceOf(call, type, fn));
  }

  /** once() with the default terms. */
  public <T, X extends Exception> T once(String namespace, String key, Class<T> type, Fn<T, X> fn)
      throws X {
    return once(Call.of(namespace, key), type, fn);
  }

  /** once() of a text. */
  public <X extends Exception> String once(String namespace, String key, Fn<String, X> fn)
      throws X {
    return once(Call.of(namespace, key), String.class, fn);
  }

  /** once() for results of a generic type. */
  @SuppressWarnings("unchecked")
  public <T, X extends Exception> T onceOf(Call call, Type type, Fn<T, X> fn) throws X {
    Results.check(type);
    Claimed claimed = claim(call);
    if (!claimed.isGranted()) return (T) replayed(call, claimed, type);
    Work work = claimed.work();
    T value;
    try {
      value = work.run(fn);
      Lazy.check(value);
    } catch (Throwable thrown) {
      work.failed(thrown);
      throw thrown;
    }
    finish(work, value, type);
    return value;
  }

  /**
   * once() for work that ends later. The claim is asked for in this thread; the record is written
   * before the answer completes.
   */
  @SuppressWarnings("unchecked")
  public <T> CompletableFuture<T> onceAsync(Call call, Type type,
      Fn<? extends CompletionStage<T>, ? extends Exception> fn) {
    Results.check(type);
    CompletableFuture<T> answer = new CompletableFuture<>();
    Claimed claimed;
    try {
      claimed = claim(call);
      if (!claimed.isGranted()) {
        return CompletableFuture.completedFuture((T) replayed(call, claimed, type));
      }
    } catch (RuntimeException refused) {
      answer.completeExceptionally(refused);
      return answer;
    }
    Work work = claimed.work();
    try {
      CompletionStage<T> stage = work.run(fn);
      if (stage == null) throw new LazyResult("the function returned no stage, but null");
      // Not in the thread that completes it: that may be one which must not block.
      stage.whenCompleteAsync((value, thrown) -> endAsync(work, type, value, thrown, answer), ends);
    } catch (Throwable thrown) {
      work.failed(thrown);
      answer.completeExceptionally(thrown);
    }
    return answer;
  }

  private <T> void endAsync(Work work, Type type, T value, Throwable thrown,
      CompletableFuture<T> answer) {
    try {
      if (thrown == null) {
        Lazy.check(value);
        finish(work, value, type);
        answer.complete(value);
      } else {
        work.failed(thrown);
        answer.completeExceptionally(thrown);
      }
    } catch (Throwable late) {
      work.failed(late);  // without effect if it was completed
      answer.completeExceptionally(late);
    }
  }

  /** Encodes and completes. Work that ran is done even if its result cannot be kept. */
  private void finish(Work work, Object value, Type type) {
    finish(work, envelope(work, value, type), value);
  }

  /**
   * Completes `work`, whose value is `value`, with `envelope`.
   *
   * @throws LeaseLost if another owner has taken over
   * @throws ResultNotKept if `envelope` has not the value, or the node has no room for it
   * @throws Unrecorded if the node could not be told
   */
  public void finish(Work work, Envelope envelope, Object value) {
    finishLate(work, envelope, value);
    told(work, envelope, value);
  }

  /** finish() of work whose caller has been told() already, as it was in a transaction. */
  public void finishLate(Work work, Envelope envelope, Object value) {
    work.record(envelope.encode());
    work.told(value);
  }

  /**
   * To be called where finishLate() comes later.
   *
   * @throws ResultNotKept if `envelope` has not the value
   */
  public void told(Work work, Envelope envelope, Object value) {
    if (work.isProtected() && envelope.dropped() != null) {
      throw notKept(work, envelope.dropped(), value);
    }
  }

  static ResultNotKept notKept(Work work, String why, Object value) {
    return new ResultNotKept(work.call() + " is done, but repeats will not get its result: " + why,
        value);
  }

  /** How a result is kept. */
  private interface Keeping {
    Envelope keep() throws Exception;
  }

  /** `value` as it is stored: read as `type` it is an equal one. Or why it is not kept. */
  public Envelope envelope(Work work, Object value, Type type) {
    return kept(work, () -> {
      Envelope made = typed(work, value, type);
      boolean same = type == void.class || type == Void.class || made.isNull()
          || results.same(value, codec.decode(made.body(), type));
      return same ? made : null;
    });
  }

  /**
   * envelope() for a caller over HTTP, who gets JSON: what is read from it is the same JSON. With
   * `isErased` any value will do that has it, as nobody casts it.
   */
  public Envelope document(Work work, Object value, Type type, boolean isErased) {
    return kept(work, () -> {
      try {
        Envelope made = type == Object.class && isErased ? null : typed(work, value, type);
        if (made != null && (made.isNull()
            || results.sameDocument(value, codec.decode(made.body(), type)))) {
          return made;
        }
      } catch (Exception | StackOverflowError | NoClassDefFoundError unreadable) {
        if (!isErased) throw unreadable;
      }
      if (!isErased) return null;
      byte[] body = codec.document(value);
      return results.sameDocument(value, codec.decode(body, Object.class))
          ? new Envelope(work.call().operation, body).form("document") : null;
    });
  }

  private Envelope typed(Work work, Object value, Type type) throws Exception {
    Envelope made = new Envelope(work.call().operation, codec.encode(value, type));
    return value == null ? made.form("null") : made;
  }

  private Envelope kept(Work work, Keeping keeping) {
    String operation = work.call().operation;
    // Nothing of it is recorded.
    if (!work.isProtected()) return Envelope.dropped(operation, "unprotected");
    String why;
    try {
      Envelope made = keeping.keep();
      if (made != null && made.body().length <= options.resultBytesMax) return made;
      why = made == null ? "what is read from it is another value"
          : made.body().length + " bytes; the limit is " + options.resultBytesMax;
    } catch (Exception | StackOverflowError | NoClassDefFoundError error) {
      why = error.toString();
    }
    why = why.length() > WHY_CHARS_MAX ? why.substring(0, WHY_CHARS_MAX) : why;
    reportDropped(work, why);
    return Envelope.dropped(operation, why);
  }

  private void reportDropped(Work work, String why) {
    Wire.LOG.log(Level.WARNING, "the result of {0} is not kept: {1}",
        new Object[] {work.call(), why});
    report(Observer.Event.RESULT_DROPPED, work);
  }

  private Object replayed(Call call, Claimed claimed, Type type) {
    return value(call, replay(call, claimed), type);
  }

  /**
   * What the first call stored, for a repeat of it.
   *
   * @throws Rejected if it is gone, or the call rejects repeats
   * @throws Mismatch if another operation stored it
   */
  public Envelope replay(Call call, Claimed claimed) {
    if (call.duplicate == Duplicate.REJECT) {
      throw new Rejected(Rejected.Reason.DONE, call + " is done", 0);
    }
    if (claimed.result() == null) throw gone(call, "its time is over");
    Envelope envelope = Envelope.decode(claimed.result());
    if (!envelope.operation().isEmpty() && !call.operation.isEmpty()
        && !isSame(call.operation, envelope.operation())) {
      throw new Mismatch(call + " was used by " + envelope.operation());
    }
    if (envelope.dropped() != null) throw gone(call, envelope.dropped());
    return envelope;
  }

  /** Before operations were part of the fingerprint, results had the short name of a method. */
  private static boolean isSame(String operation, String stored) {
    String plain = operation.replaceAll("[\\r\\n]+", " ");
    return stored.equals(plain)
        || stored.equals(plain.replaceFirst("\\(.*", "").replaceFirst("^.*[.$](?=[^.]+\\.)", ""));
  }

  /** The value in it, or Rejected if it cannot be read as `type`. */
  public Object value(Call call, Envelope envelope, Type type) {
    if (type == void.class || type == Void.class || envelope.isNull()) return null;
    try {
      return codec.decode(envelope.body(), envelope.isDocument() ? Object.class : type);
    } catch (Exception error) {
      throw gone(call, "it cannot be read: " + error);
    }
  }

  private static Rejected gone(Call call, String why) {
    return new Rejected(Rejected.Reason.RESULT_GONE,
        call + " is done, but its result is not there: " + why, 0);
  }

  void complete(Work work, byte[] result) {
    Call call = work.call();
    if (!work.isProtected()) {
      report(Observer.Event.UNPROTECTED, work);
      return;
    }
    Completion completion = new Completion(link, work, result);
    String outcome;
    try {
      outcome = completion.outcome(wire, options);
    } catch (SemelException error) {
      outcome = error.toString();
    }
    boolean isGone = outcome.equals("stale_owner") || outcome.equals("refused")
        || outcome.equals("conflict");
    if (outcome.equals("ok")) {
      report(Observer.Event.RAN, work);
      work.dropped(completion.dropped());
      if (completion.dropped() != null) reportDropped(work, completion.dropped());
    } else if (isGone || outcome.equals("unknown") && work.isOver()) {
      report(Observer.Event.LEASE_LOST, work);
      throw new LeaseLost("the lease of " + call + " was lost while it ran (" + outcome
          + "); another owner's result counts");
    } else {
      Wire.LOG.log(Level.WARNING, "{0} is done, but that is not recorded: {1}",
          new Object[] {call, outcome});
      report(Observer.Event.UNRECORDED, work);
      work.unrecorded(outcome);
    }
  }

  void release(Work work) {
    Call call = work.call();
    List<byte[]> words = Wire.words("SEMEL.RELEASE", call.namespace, call.key,
        Long.toString(work.epoch()));
    int[] tries = new int[1];
    String outcome;
    try {
      outcome = new Reply(wire.toTheEnd((same, timeoutMs) -> {
        ++tries[0];
        return link.call(same, timeoutMs);
      }, words, options.callTimeoutMs, Math.min(options.patienceMs, options.recordPatienceMs)))
          .outcome();
    } catch (SemelException error) {
      Wire.LOG.log(Level.WARNING, "{0} ends with its lease: {1}", new Object[] {call, error});
      return;
    }
    // After a lost reply it may be gone by this very call.
    if (outcome.equals("ok") || outcome.equals("unknown") && tries[0] > 1 && !work.isOver()) return;
    report(Observer.Event.LEASE_LOST, work);
    throw new LeaseLost("the lease of " + call + " was lost before it was released (" + outcome
        + "): another owner may have been in");
  }

  /** Tries for as long as a claim does: a group may be without a leader for a second. */
  void endQuietly(Work work, List<byte[]> words) {
    try {
      wire.toTheEnd(link::call, words, options.callTimeoutMs,
          Math.min(options.patienceMs, options.recordPatienceMs));
    } catch (RuntimeException error) {
      Wire.LOG.log(Level.WARNING, "{0} ends with its lease: {1}",
          new Object[] {work.call(), error.toString()});
    }
  }

  void watch(Work work) {
    renewer.watch(work);
  }

  void report(Observer.Event event, Work work) {
    report(event, work.call(), work.startedNanos);
  }

  void report(Observer.Event event, Call call, long startedNanos) {
    for (Observer each : observers) {
      try {
        each.on(event, call.namespace, System.nanoTime() - startedNanos);
      } catch (Throwable error) {  // also an Error: the call has its own outcome
        Wire.LOG.log(Level.FINE, "an observer threw", error);
      }
    }
  }

  /** Declares a namespace before its first use, so that wrong terms are found at the start. */
  public void declare(String namespace, Terms terms) {
    wire.declarePersistently(namespace, terms);
  }

  /** Tokens of this namespace: see Tokens. */
  public Tokens tokens(String namespace, Terms terms) {
    return new Tokens(this, namespace, terms);
  }

  /**
   * One of so many permits of a key, 1 to 1024. While all are held it waits for the time of
   * Call.wait(), by default not at all. Of the waits that block, the first that came gets what becomes
   * free; those that poll have no order and come after them: with Options.bind(), beyond
   * Options.waitsMax(), and of a link without connections for waits (a Jedis cluster, Redisson without
   * a RedisClientConfig). Each caller states how many permits there are: with fewer than before, none
   * is given while there are as many holders as permits.
   *
   * <p>The lease is renewed until the permit is released or lost, at most for the time of
   * Options.renewFor(). The namespace is declared as `lock`, unless the call has terms. A permit is
   * held or an exception, whatever Options.whenUnreachable() says.
   *
   * @throws Rejected if all permits are held (IN_FLIGHT), also where an interrupted thread has stopped
   *     waiting, or if there is no room (BUSY)
   * @throws IllegalArgumentException if that number is not possible, or the call has a payload, an
   *     operation, an identity or a time of its first sending
   * @throws InvalidKey if the key is null, empty or too long
   * @throws Unreachable if the node does not answer, or the thread is interrupted meanwhile; what it
   *     granted is given back
   * @throws ServerError if the node refuses the command
   */
  public Permit permit(Call call, int permits) {
    return claimer.permit(call, permits);
  }

  /** permit() that does not wait. */
  public Permit permit(String namespace, String key, int permits) {
    return permit(Call.of(namespace, key), permits);
  }

  /**
   * One of the readers of a key, 128 at most. While a writer is in, or another caller waits in front,
   * it waits for the time of Call.wait(), by default not at all; who waits in front is not overtaken.
   * There is no upgrade: who has to write asks for writeLock(), and may read. All else, with its
   * exceptions, is as of permit().
   */
  public Access readLock(Call call) {
    return claimer.access(call, "READ");
  }

  /** readLock() that does not wait. */
  public Access readLock(String namespace, String key) {
    return readLock(Call.of(namespace, key));
  }

  /** The only writer of a key, while there is no reader; all else is as of readLock(). */
  public Access writeLock(Call call) {
    return claimer.access(call, "WRITE");
  }

  /** writeLock() that does not wait. */
  public Access writeLock(String namespace, String key) {
    return writeLock(Call.of(namespace, key));
  }

  /** At most `limit` per `period` for each key. Terms that no node would take are an error. */
  public RateLimiter rateLimiter(RateLimiter.Kind kind, long limit, Duration period) {
    return new RateLimiter(this, kind, limit, period, 0);
  }

  /** A bucket of `limit` tokens, of which `refill` come back in a period. */
  public RateLimiter bucket(long limit, Duration period, long refill) {
    return new RateLimiter(this, RateLimiter.Kind.BUCKET, limit, period, refill);
  }

  Object send(List<byte[]> words) {
    return wire.persistently(link::call, words, options.callTimeoutMs, options.patienceMs);
  }

  /** Any other command, such as SEMEL.GETCLAIM, with its reply as Link has it. */
  public Object command(String... words) {
    List<String> all = new ArrayList<>();
    Collections.addAll(all, words);
    return link.call(Wire.words(all.toArray(new String[0])), options.callTimeoutMs);
  }

  /** Ends renewals and the link. Work that still runs keeps its claim until its lease ends. */
  @Override
  public void close() {
    renewer.close();
    abandoned.close();
    ends.shutdown();
    link.close();
  }
}
