import type { Held } from './held.js';
import { lost } from './wire.js';

/**
 * A lock that this process holds. Its lease is renewed until it is unlocked or lost, or for the time
 * of `runMax`. `await using lock = ..` unlocks it at the end of the block.
 */
export class Lock implements AsyncDisposable {
  readonly #held: Held;
  #unlocking: Promise<void> | undefined;

  /** @internal */
  constructor(held: Held) {
    this.#held = held;
  }

  /**
   * The fencing token: it grows with each holder. What the holder writes to should refuse a token
   * smaller than one it has seen.
   */
  get token(): bigint {
    return this.#held.work.epoch;
  }

  /** Aborted with a LeaseLostError when the lock is lost. */
  get signal(): AbortSignal {
    return this.#held.work.signal;
  }

  /** Whether the lock is known to be lost. */
  get isLost(): boolean {
    return this.signal.aborted;
  }

  /**
   * Gives the lock back. Rejects with a LeaseLostError if it was not held any more, and with an
   * UnavailableError if the node did not answer: then the lease ends the lock. Repeats get what the
   * first call got.
   */
  unlock(): Promise<void> {
    this.#unlocking ??= this.#unlock();
    return this.#unlocking;
  }

  async #unlock(): Promise<void> {
    this.#held.end();
    const { found, repeated } = await this.#held.call('SEMEL.RELEASE');
    if (this.#held.lostBecause) throw this.#held.lostBecause;
    // Unknown: nobody holds it. The drivers repeat calls by themselves, and the first may have
    // taken effect.
    if (found.outcome !== 'ok' && found.outcome !== 'unknown' && !repeated) {
      this.#held.lose(found.outcome);
      throw lost(found.outcome);
    }
  }

  /** As unlock(), but a lock that is lost already is no error. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isLost) await this.unlock();
  }
}
