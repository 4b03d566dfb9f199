package io.semel;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Commands with their retries, and the namespaces that this process has declared. */
final class Wire {
  static final Logger LOG = Logger.getLogger("io.semel");
  private static final long DECLARED_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(10);
  private final Link link;
  private final Options options;
  private final ConcurrentHashMap<String, Declared> declared = new ConcurrentHashMap<>();

  private static final class Declared {
    final Terms terms;
    final long generation;
    final long since;

    Declared(Terms terms, long generation, long since) {
      this.terms = terms;
      this.generation = generation;
      this.since = since;
    }
  }

  /** How a command travels. */
  interface Way {
    Object send(List<byte[]> words, long timeoutMs);
  }

  Wire(Link link, Options options) {
    this.link = link;
    this.options = options;
  }

  static List<byte[]> words(String... texts) {
    List<byte[]> words = new ArrayList<>(texts.length + 8);
    for (String each : texts) words.add(each.getBytes(StandardCharsets.UTF_8));
    return words;
  }

  /**
   * The reply, asked for again until `patienceMs` have passed, or the thread is interrupted. Each
   * command that is sent by this has the same effect when it is sent twice, but for SEMEL.LIMIT,
   * which may take twice: fewer are allowed then.
   */
  Object persistently(Way way, List<byte[]> words, long timeoutMs, long patienceMs) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMs);
    for (long pauseMs = 10;; pauseMs = Math.min(200, pauseMs * 2)) {
      SemelException failed;
      try {
        return way.send(words, timeoutMs);
      } catch (Unreachable error) {
        failed = error;
      } catch (ServerError error) {
        if (!error.isTransient()) throw error;
        failed = error;
      }
      if (System.nanoTime() - end >= 0 || !pause(pauseMs)) {
        throw failed instanceof Unreachable ? failed
            : new Unreachable("the node takes no claims: " + failed.getMessage(), failed);
      }
    }
  }

  /**
   * persistently() of what an owner says of its work. An interrupted thread sends it as well: the work
   * is done, and would be repeated if nobody wrote that down. It stays interrupted.
   */
  Object toTheEnd(Way way, List<byte[]> words, long timeoutMs, long patienceMs) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMs);
    boolean interrupted = false;
    try {
      while (true) {
        interrupted |= Thread.interrupted();
        long leftMs = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        try {
          return persistently(way, words, timeoutMs, Math.max(0, leftMs));
        } catch (Unreachable error) {
          if (!Thread.currentThread().isInterrupted() || System.nanoTime() - end >= 0) throw error;
        }
      }
    } finally {
      if (interrupted) Thread.currentThread().interrupt();
    }
  }

  /** False if the thread was interrupted; it stays so. */
  static boolean pause(long ms) {
    try {
      Thread.sleep(ms);
      return true;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** declare(), tried for as long as a claim is. */
  void declarePersistently(String namespace, Terms terms) {
    persistently((words, timeoutMs) -> {
      declare(namespace, terms);
      return null;
    }, null, options.callTimeoutMs, options.patienceMs);
  }

  /** Declares it unless that was done on this connection a short time ago. Tries once. */
  void declare(String namespace, Terms terms) {
    Declared known = declared.get(namespace);
    long now = System.nanoTime();
    if (known != null && !known.terms.equals(terms)) {
      throw new IllegalStateException("namespace " + namespace + " is used with two terms here: "
          + known.terms + " and " + terms + "; give one of them another prefix or namespace");
    }
    if (known != null && known.generation == link.generation()
        && now - known.since < DECLARED_AGAIN_NANOS) {
      return;
    }
    long generation = link.generation();
    // A node restarted without a storage has forgotten its namespaces, and the first claim would
    // declare them with default terms.
    declareNow(namespace, terms);
    declared.put(namespace, new Declared(terms, generation, now));
  }

  void forgetDeclared(String namespace) {
    declared.computeIfPresent(namespace, (name, known) -> new Declared(known.terms, -1, 0));
  }

  private void declareNow(String namespace, Terms terms) {
    try {
      declareAs("DECLARE", namespace, terms);
    } catch (ServerError error) {
      String text = error.getMessage();
      if (text.startsWith("NOPERM")) {
        LOG.log(Level.FINE, "namespace {0}: taken as it is, {1}", new Object[] {namespace, text});
      } else if (!text.contains("declared with other terms")) {
        throw error;
      } else if (options.changeTerms) {
        declareAs("CHANGE", namespace, terms);
      } else {
        throw new ServerError(text + "; if it is meant, set changeTerms (semel.change-terms)");
      }
    }
  }

  private void declareAs(String word, String namespace, Terms terms) {
    List<byte[]> words = words("SEMEL.NAMESPACE", word, namespace, "AS", terms.policy());
    words.addAll(words(terms.options().toArray(new String[0])));
    link.call(words, options.callTimeoutMs);
  }
}
