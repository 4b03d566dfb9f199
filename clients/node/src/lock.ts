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

  /** Whether the lock is known to be lost, or its lease is over. */
  get isLost(): boolean {
    return this.signal.aborted || this.#held.isOver;
  }

  /**
   * Gives the lock back. Rejects with a LeaseLostError if it was not held any more, also if another
   * owner has come and gone, and with an
   * UnavailableError if the node did not answer: then the lease ends the lock. Repeats get what the
   * first call got.
   */
  unlock(): Promise<void> {
    this.#unlocking ??= this.#unlock();
    return this.#unlocking;
  }

  async #unlock(): Promise<void> {
    const { driver } = this.#held.terms;
    this.#held.end();
    const losses = driver.losses?.();
    const { found, repeated } = await this.#held.call('SEMEL.RELEASE');
    if (this.#held.lostBecause) throw this.#held.lostBecause;
    if (found.outcome === 'ok') return;
    // An earlier try, also one that the driver has repeated by itself, may have taken effect. While the
    // lease runs, nobody else can have had the lock before that.
    const again = repeated || losses === undefined || driver.losses?.() !== losses;
    if (again && !this.#held.isOver) return;
    this.#held.lose(found.outcome);
    throw lost(found.outcome);
  }

  /** As unlock(), but a lock whose signal is aborted is no error: its holder knows. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.signal.aborted) await this.unlock();
  }
}

/**
 * One of the permits of a semaphore. As a Lock; its token grows with each holder of its slot, so what
 * the holders write to keeps one for each slot. `await using permit = ..` releases it.
 */
export class Permit implements AsyncDisposable {
  readonly #lock: Lock;
  /** 0 to permits - 1: no other holder has it. It may name one of as many things. */
  readonly slot: number;

  /** @internal */
  constructor(held: Held) {
    this.#lock = new Lock(held);
    this.slot = held.slot;
  }

  /** The fencing token. */
  get token(): bigint {
    return this.#lock.token;
  }

  /** Aborted with a LeaseLostError when the permit is lost. */
  get signal(): AbortSignal {
    return this.#lock.signal;
  }

  /** Whether the permit is known to be lost, or its lease is over. */
  get isLost(): boolean {
    return this.#lock.isLost;
  }

  /** Gives the permit back, as Lock.unlock() gives back a lock. */
  release(): Promise<void> {
    return this.#lock.unlock();
  }

  /** As release(), but a permit whose signal is aborted is no error: its holder knows. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
  }
}

/**
 * A hold of a read/write lock, as one of its readers or its writer. As a Lock, but for its token.
 * `await using hold = ..` releases it.
 */
export class Access implements AsyncDisposable {
  readonly #lock: Lock;
  /**
   * The fencing token: that of a reader is at least that of every writer before it, and smaller than
   * that of every writer after it.
   */
  readonly token: bigint;

  /** @internal */
  constructor(held: Held) {
    this.#lock = new Lock(held);
    this.token = held.token;
  }

  /** Aborted with a LeaseLostError when the hold is lost. */
  get signal(): AbortSignal {
    return this.#lock.signal;
  }

  /** Whether the hold is known to be lost, or its lease is over. */
  get isLost(): boolean {
    return this.#lock.isLost;
  }

  /** Gives the hold back, as Lock.unlock() gives back a lock. */
  release(): Promise<void> {
    return this.#lock.unlock();
  }

  /** As release(), but a hold whose signal is aborted is no error: its holder knows. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
  }
}
