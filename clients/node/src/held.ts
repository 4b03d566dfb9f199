// A claim that this process owns, and the timer that renews its lease.
import type { Driver, Word } from './drivers.js';
import { messageOf, UnrecordedError, type LeaseLostError } from './errors.js';
import { ms, timerMax, type Ending } from './options.js';
import { Fields, insist, isAnswer, isOutOfMemory, lost, within } from './wire.js';

/** What a function learns of its claim. */
export interface Work {
  /** The fencing token: it grows with each owner. Pass it to what the work writes to. */
  readonly epoch: bigint;
  readonly attempt: number;
  /** An earlier owner went silent. Part of the work may have been done. */
  readonly takeover: boolean;
  /** The node had no room and the namespace fails open, or the message has no id. */
  readonly unprotected: boolean;
  /** Aborted when the call is, or when the lease is lost: then its reason is a LeaseLostError. */
  readonly signal: AbortSignal;
}

/** Of a message without an id, which has no claim. */
export function unguardedWork(signal: AbortSignal): Work {
  return { epoch: 0n, attempt: 1, takeover: false, unprotected: true, signal };
}

export interface Terms {
  driver: Driver;
  namespace: string;
  key: Word;
  lease: number;
  runMax: number;
  patience: number;
  /** What the caller wants failures to mean. */
  onFailure?: Ending | undefined;
  policy: KnownPolicy;
}

/** What the node says of a namespace; without the right to ask, little. */
export interface KnownPolicy {
  lease: number;
  attemptsTtl: number;
  attemptsMax: number;
  onFailure?: Ending | undefined;
  onException?: Ending | undefined;
}

/** After an abort, how long a function is waited for that does not end. */
const grace = 1000;
const failureBytesMax = 1024;

export class Held {
  readonly work: Work;
  readonly terms: Terms;
  /** Of a permit of a semaphore. */
  readonly slot: number;
  /** Of a read/write lock. */
  readonly token: bigint;
  lostBecause: LeaseLostError | undefined;
  readonly #controller = new AbortController();
  readonly #deadline: number;
  readonly #caller: AbortSignal | undefined;
  readonly #abort = (): void => this.#controller.abort(this.#caller?.reason);
  #until: number;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(terms: Terms, found: Fields, until: number, caller: AbortSignal | undefined) {
    this.terms = terms;
    this.slot = found.number('slot');
    this.token = found.integer('token');
    this.#until = until;
    this.#deadline = performance.now() + terms.runMax;
    this.#caller = caller;
    this.work = {
      epoch: found.integer('epoch'),
      attempt: found.number('attempt'),
      takeover: found.flag('takeover'),
      unprotected: found.outcome === 'unprotected',
      signal: this.#controller.signal,
    };
    caller?.addEventListener('abort', this.#abort, { once: true });
    const first = Math.min(until - performance.now(), terms.lease) / 3;
    if (!this.work.unprotected) this.#schedule(first);
  }

  /** Whether the lease is over by this process' clock, also while no timer could run. */
  get isOver(): boolean {
    return !this.work.unprotected && performance.now() >= this.#until;
  }

  /** Stops renewing. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#abort);
  }

  lose(why: string): void {
    this.end();
    this.lostBecause = lost(why);
    this.#controller.abort(this.lostBecause);
  }

  #schedule(delay: number): void {
    // A process that has nothing else to do may end; its lease ends the claim.
    this.#timer = setTimeout(() => void this.#renew(), Math.min(Math.max(1, delay), timerMax));
    this.#timer.unref();
  }

  async #renew(): Promise<void> {
    const { driver, namespace, key, lease, runMax } = this.terms;
    const asked = performance.now();
    if (asked > this.#deadline) return this.lose(`the work ran longer than ${runMax} ms`);
    try {
      const words = ['SEMEL.RENEW', namespace, key, String(this.work.epoch), 'LEASE',
        ms('lease', lease)];
      const call = Promise.resolve().then(() => driver.send(words));
      const found = new Fields(await within(this.#until - asked, call));
      if (this.#ended) return;
      if (found.outcome !== 'ok') return this.lose(found.outcome);
      this.#until = asked + lease;
      this.#schedule(lease / 3);
    } catch (error) {
      if (this.#ended) return;
      const left = this.#until - performance.now();
      if (left <= 0) return this.lose(`no renewal reached the node: ${messageOf(error)}`);
      this.#schedule(Math.min(lease / 20, left));
    }
  }

  /**
   * What `work` gives. If the signal is aborted and it does not end, this rejects with the signal's
   * reason; `work` goes on until it ends by itself, and its lease is not renewed any more.
   */
  unlessGivenUp<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.work;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const aborted = (): void => {
        timer = setTimeout(() => {
          this.end();
          reject(signal.reason);
        }, grace);
      };
      signal.addEventListener('abort', aborted, { once: true });
      if (signal.aborted) aborted();
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', aborted);
      };
      work.then((value) => { done(); resolve(value); },
        (error: unknown) => { done(); reject(error); });
    });
  }

  /** One of the owner's calls. */
  async call(name: string, ...words: Word[]): Promise<{ found: Fields; repeated: boolean }> {
    const { driver, namespace, key, patience } = this.terms;
    const all = [name, namespace, key, String(this.work.epoch), ...words];
    const { reply, repeated } = await insist(driver, all, patience);
    return { found: new Fields(reply), repeated };
  }

  /**
   * Records the work as done. `instead` is what to keep if `result` cannot be kept, and then `why`
   * says so. Rejects with a LeaseLostError if it is another owner's, whose result is `stored`.
   */
  async complete(value: unknown, result: Buffer, instead: Buffer): Promise<Completed> {
    if (this.work.unprotected) return { late: false };
    const { driver, namespace, key, patience } = this.terms;
    // There may be memory for what is smaller: the work must not run again.
    const isTooMuch = (error: unknown): boolean => isAnswer(error)
      || (isOutOfMemory(error) && result.length > instead.length);
    const losses = driver.losses?.();
    let why: unknown;
    try {
      const words = ['SEMEL.COMPLETE', namespace, key, String(this.work.epoch), result];
      const { reply, repeated, refused } =
        await insist(driver, words, patience, undefined, undefined, isTooMuch);
      let found: Fields;
      if (refused === undefined) {
        found = new Fields(reply);
      } else {
        why = refused; // too long, or no memory for it
        ({ found } = await this.call('SEMEL.COMPLETE', instead));
        // A try whose reply was lost, also one that the driver has repeated, has recorded the result.
        const again = repeated || losses === undefined || driver.losses?.() !== losses;
        if (again && found.outcome === 'conflict') return { late: false };
      }
      if (found.outcome === 'ok') return { late: found.flag('late'), why };
      if (found.outcome !== 'unknown') {
        return { late: false, stored: found.bytes('result'), lost: lost(found.outcome) };
      }
    } catch (error) {
      throw new UnrecordedError(value, error);
    }
    throw new UnrecordedError(value, new Error('the node does not know the claim'));
  }

  /**
   * Records a failure; without `ending` the lease ends the claim. Gives why the claim is another's.
   */
  async fail(failure: string, ending: Ending | undefined): Promise<LeaseLostError | undefined> {
    if (this.work.unprotected || ending === undefined) return undefined;
    try {
      const { found, repeated } = await this.call('SEMEL.FAIL', clipped(failure),
        ending.toUpperCase());
      // Unknown or repeated: an earlier try took effect, or there is nothing to end.
      if (found.outcome === 'ok' || found.outcome === 'unknown' || repeated) return undefined;
      return lost(found.outcome);
    } catch {
      return undefined; // the lease ends it
    }
  }

  async release(): Promise<void> {
    this.end();
    if (!this.work.unprotected) await this.call('SEMEL.RELEASE').catch(() => {});
  }
}

export interface Completed {
  late: boolean;
  why?: unknown;
  stored?: Buffer | undefined;
  lost?: LeaseLostError;
}

function clipped(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length <= failureBytesMax) return bytes;
  let end = failureBytesMax;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) --end;
  return bytes.subarray(0, end);
}
