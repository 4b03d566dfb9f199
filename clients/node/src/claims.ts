import { randomBytes } from 'node:crypto';
import { json, notKept, restored, stored, type Codec } from './codec.js';
import { driverOf, type AnyClient, type Driver, type Word } from './drivers.js';
import * as errors from './errors.js';
import { ask, grantedKey, withdraw, type Asking } from './giveback.js';
import { Held, type KnownPolicy, type Work } from './held.js';
import { refuseLazy, refuseLazyResult } from './lazy.js';
import { Access, Lock, Permit } from './lock.js';
import { acquireAll, distinctKeys, Locks } from './locks.js';
import { consume, unguarded, type Consumed } from './consume.js';
import { keyWord, type Key } from './keys.js';
import { checked, fingerprintWords, merged, ms, namespaceName, policyWords, unixTime, type CallOptions,
  type Milliseconds, type Policy } from './options.js';
import { Fields, insist, isAnswer, pause, unlessAborted } from './wire.js';
import { debounce, runDebounced, type Debounced, type Trailing } from './debounce.js';
import { waitFor } from './wait.js';
import { eventOf, tell, type ObservedEvent } from './observer.js';

/** Work that is done, by this call or by an earlier one. */
export interface Done<T> {
  readonly value: T;
  /** An earlier call ran it. */
  readonly replayed: boolean;
  /** The lease had ended when the work was recorded, but nobody had taken over. */
  readonly late: boolean;
  /** The node had no room and the namespace fails open; nothing was recorded. */
  readonly unprotected: boolean;
  /** Of the run; 0 if replayed. */
  readonly epoch: bigint;
  readonly attempt: number;
}

export interface ClaimsOptions extends Omit<CallOptions, 'signal' | 'fingerprint' | 'firstSent'> {
  /**
   * The first call declares the namespace with it. If it exists with other terms, the calls are
   * rejected, and the error names the differences.
   */
  policy?: Policy;
}

const defaultLease = 60_000;
const policyAge = 60_000; // after which the policy is read again
const permitsMax = 1024;
const accessPause = 2; // between two attempts at a read/write lock: the first pause, and the longest
const accessPauseMax = 50;
const nextTime = 1000; // a caller that waits for a read/write lock, and dies, stops the others

/** The permits of a semaphore, or what is wanted of a read/write lock. */
type Shared = number | 'READ' | 'WRITE';

/** A claim as it is asked for. */
interface Request {
  options: CallOptions;
  key: Word;
  policy: KnownPolicy;
  lease: number;
  patience: number;
  id: string;
  /** Of the claim, behind its key and its id. */
  words: string[];
  shared?: Shared | undefined;
  /** Waits for a read/write lock, and is not to be overtaken. */
  isNext?: boolean;
}

/**
 * A namespace of a node. It uses the client that it is given, which stays the caller's to close;
 * a call that waits for another owner takes a connection of its own, made with the client's
 * options.
 */
export class Claims {
  readonly name: string;
  readonly options: ClaimsOptions;
  readonly driver: Driver;
  #declared = false;
  #policy: Promise<KnownPolicy> | undefined;
  #read = 0;

  /**
   * Asks nothing: the first call declares the namespace if there is a policy. The other options are
   * defaults of all calls.
   */
  constructor(client: AnyClient, namespace: string, options: ClaimsOptions = {}) {
    this.name = namespaceName(namespace);
    this.options = checked(options, ['policy']);
    if (options.policy !== undefined) policyWords(options.policy);
    this.driver = driverOf(client);
  }

  /**
   * Runs `fn` for a key unless that was done before; then it gives the first result.
   *
   * While another owner runs it the call rejects with an InFlightError, or waits (`wait`). What `fn`
   * throws is what the call rejects with. It ends the claim as the namespace's ON-EXCEPTION says,
   * or ON-FAILURE for a Failure, or as `onFailure` does; by default the next call runs it.
   *
   * If the signal is aborted or the lease is lost, `fn` has a second to end. Then the call rejects,
   * and the claim is ended when `fn` ends, or by its lease.
   */
  async once<T>(key: Key, fn: (work: Work) => T | PromiseLike<T>,
    options: CallOptions = {}): Promise<Done<Awaited<T>>> {
    refuseLazy(fn);
    const found = await this.acquire(key, options);
    if (found instanceof Fields) {
      return await this.#replayed(found, options) as Done<Awaited<T>>;
    }
    return found.unlessGivenUp(this.#run(found, fn, options));
  }

  /**
   * Handles a message once, however often a broker delivers it, and gives the verdict for the
   * broker; it never rejects. A message without an id is handled unguarded.
   */
  async consumeOnce(id: Key | null | undefined, handle: (work: Work) => unknown,
    options: CallOptions = {}): Promise<Consumed> {
    if (id === null || id === undefined || (keyLike(id) && id.length === 0)) {
      return unguarded(handle, options.signal);
    }
    return consume(() => this.acquire(id, options), handle);
  }

  /**
   * Waits for a lock, by default without limit; after `wait` it rejects with an InFlightError. The
   * signal is for getting the lock: aborted later it does not unlock it.
   *
   * Declare the namespace as `lock`, or as `fair-lock` for locks in the order of arrival.
   */
  lock(key: Key, options: CallOptions = {}): Promise<Lock> {
    return this.#lock(key, merged({ wait: this.options.wait ?? Infinity }, options));
  }

  /** Does not wait: an InFlightError says that another holds the lock. */
  tryLock(key: Key, options: CallOptions = {}): Promise<Lock> {
    return this.#lock(key, { ...options, wait: 0 });
  }

  /**
   * Waits until it gets the locks of all keys in one step, and holds none before: two callers who name
   * the same keys in another order do not wait for each other for ever. Waiters have no order. There are
   * 1 to 1,024 keys; a key that is named twice counts once. All else is as of lock().
   */
  lockAll(keys: readonly Key[], options: CallOptions = {}): Promise<Locks> {
    return this.#lockAll(keys, merged({ wait: this.options.wait ?? Infinity }, options));
  }

  /** Does not wait: an InFlightError says that another holds one of the locks, and this caller none. */
  tryLockAll(keys: readonly Key[], options: CallOptions = {}): Promise<Locks> {
    return this.#lockAll(keys, { ...options, wait: 0 });
  }

  async #lockAll(keys: readonly Key[], given: CallOptions): Promise<Locks> {
    const options = merged(this.options, checked(given));
    const words = distinctKeys(keys);
    let obstacle = words[0] as Key;
    return new Locks(await this.#observed(() => obstacle, options,
      () => acquireAll(this, words, options, (key) => { obstacle = key as Key; })));
  }

  /**
   * Waits for one of so many permits of a key, 1 to 1024, by default without limit; after `wait` it
   * rejects with an InFlightError. Who came first gets the permit that becomes free.
   *
   * Each caller states how many permits there are. With fewer than before, no permit is given while
   * there are as many holders as permits. Declare the namespace as `lock`.
   */
  permit(key: Key, permits: number, options: CallOptions = {}): Promise<Permit> {
    return this.#permit(key, permits, merged({ wait: this.options.wait ?? Infinity }, options));
  }

  /** Does not wait: an InFlightError says that all permits are held. */
  tryPermit(key: Key, permits: number, options: CallOptions = {}): Promise<Permit> {
    return this.#permit(key, permits, { ...options, wait: 0 });
  }

  /**
   * Stores a payload in place of the one before, and moves the time of its run, which any process takes
   * by runDebounced(). Gives the time until then.
   */
  debounce(key: Key, payload: string | Uint8Array, when: Trailing): Promise<Milliseconds> {
    return debounce(this, key, payload, when);
  }

  /**
   * Calls `fn` with the latest payload of the key, if it is due and no other run has it. The lease of
   * the run is renewed; `work.signal` is aborted when it is lost. If `fn` throws, the payload comes
   * again after a quiet time, unless a call has replaced it; if this process ends, when the lease is
   * over. A LeaseLostError: `fn` ran, and the lease was lost before its end was known. An
   * UnrecordedError: `fn` succeeded, the node could not be told, and the payload may come again.
   */
  async runDebounced<T>(key: Key, fn: (payload: Buffer, work: Work) => T | PromiseLike<T>,
    options: CallOptions = {}): Promise<Debounced<T>> {
    return runDebounced(this, key, fn, merged(this.options, checked(options)));
  }

  async #permit(key: Key, permits: number, options: CallOptions): Promise<Permit> {
    if (!Number.isInteger(permits) || permits < 1 || permits > permitsMax) {
      throw new errors.OptionError(`permits: ${String(permits)}, 1 to ${permitsMax} are possible`);
    }
    return new Permit(await this.#held(key, options, permits));
  }

  /**
   * Waits to be one of the readers of a key, 128 at most, by default without limit; after `wait` it
   * rejects with an InFlightError. The waiter in front is not overtaken. There is no upgrade: a caller
   * that has to write asks for writeLock(), and may read. Declare the namespace as `lock`.
   */
  readLock(key: Key, options: CallOptions = {}): Promise<Access> {
    return this.#access(key, 'READ', merged({ wait: this.options.wait ?? Infinity }, options));
  }

  /** Does not wait: an InFlightError says that a writer is in, or another caller waits in front. */
  tryReadLock(key: Key, options: CallOptions = {}): Promise<Access> {
    return this.#access(key, 'READ', { ...options, wait: 0 });
  }

  /** Waits to be the only writer of a key, while there is no reader; all else is as of readLock(). */
  writeLock(key: Key, options: CallOptions = {}): Promise<Access> {
    return this.#access(key, 'WRITE', merged({ wait: this.options.wait ?? Infinity }, options));
  }

  /** Does not wait: an InFlightError says that others are in, or another caller waits in front. */
  tryWriteLock(key: Key, options: CallOptions = {}): Promise<Access> {
    return this.#access(key, 'WRITE', { ...options, wait: 0 });
  }

  async #access(key: Key, access: 'READ' | 'WRITE', options: CallOptions): Promise<Access> {
    return new Access(await this.#held(key, options, access));
  }

  async #lock(key: Key, options: CallOptions): Promise<Lock> {
    return new Lock(await this.#held(key, options));
  }

  async #held(key: Key, options: CallOptions, shared?: Shared): Promise<Held> {
    const found = await this.acquire(key, options, true, shared);
    if (found instanceof Fields) {
      throw new errors.SemelError('NO_LOCK', 'the key is that of finished work, not of a lock');
    }
    return found;
  }

  /** Has the policy read again: the node may be another one. @internal */
  stale(): void {
    this.#read = -Infinity;
  }

  /** The policy. One that an operator changes is seen within a minute. @internal */
  ready(): Promise<KnownPolicy> {
    if (this.#policy !== undefined && performance.now() - this.#read < policyAge) {
      return this.#policy;
    }
    const read = this.#readPolicy();
    this.#policy = read;
    this.#read = performance.now();
    read.catch(() => { if (this.#policy === read) this.#policy = undefined; });
    return read;
  }

  async #readPolicy(): Promise<KnownPolicy> {
    const patience = this.options.patience ?? 5000;
    const ask = async (...words: string[]): Promise<unknown> =>
      (await insist(this.driver, ['SEMEL.NAMESPACE', ...words], patience)).reply;
    const show = (): Promise<unknown> => ask('SHOW', this.name).catch((error: unknown) => {
      if (/^NOPERM /.test(errors.messageOf(error))) return undefined;
      throw error;
    });
    const { policy } = this.options;
    const declare = policy && (() => ask('DECLARE', this.name, ...policyWords(policy)));
    if (!this.#declared) await declare?.();
    let found = await show();
    if (found === null && declare) { // a node without a storage has forgotten it
      await declare();
      found = await show();
    }
    this.#declared = true;
    const unread: KnownPolicy = { lease: defaultLease, attemptsTtl: 0, attemptsMax: 0 };
    if (found === undefined) return unread;
    if (found === null) return { ...unread, onFailure: 'release', onException: 'release' };
    const fields = new Fields(found);
    return {
      lease: fields.number('lease_ms'),
      attemptsTtl: fields.number('attempts_ttl_ms'),
      attemptsMax: fields.number('attempts_max'),
      onFailure: fields.text('on_failure').toLowerCase() as KnownPolicy['onFailure'],
      onException: fields.text('on_exception').toLowerCase() as KnownPolicy['onException'],
    };
  }

  /** A claim that is held, or the fields of a replay. @internal */
  async acquire(key: Key, given: CallOptions, detached = false,
    shared?: Shared): Promise<Held | Fields> {
    const options = merged(this.options, checked(given));
    return this.#observed(() => key, options,
      () => this.#acquire(key, options, detached, shared));
  }

  /** What `ask` gives; the observer is told if it is not the right to do something. */
  async #observed<T extends Held | Fields | Held[]>(key: () => Key, { observer }: CallOptions,
    ask: () => Promise<T>): Promise<T> {
    if (observer === undefined) return ask();
    const began = performance.now();
    const observe = (event: ObservedEvent | undefined): void => {
      if (event === undefined) return;
      tell(observer, { event, namespace: this.name, key: key(), took: performance.now() - began });
    };
    let found: T;
    try {
      found = await ask();
    } catch (error) {
      observe(eventOf(error));
      throw error;
    }
    if (found instanceof Fields) observe('replayed');
    return found;
  }

  async #acquire(key: Key, options: CallOptions, detached: boolean,
    shared: Shared | undefined): Promise<Held | Fields> {
    const { signal } = options;
    signal?.throwIfAborted();
    const isNext = typeof shared === 'string' && (options.wait ?? 0) > 0;
    const request = { ...await this.request(key, options), shared, isNext };
    const { patience } = request;
    signal?.throwIfAborted();
    let asked = performance.now();
    let found = await this.ask(this.#asking(request));
    const waits = found.outcome === 'in_flight' && (options.wait ?? 0) > 0;
    if (waits && typeof shared === 'string') {
      ({ found, asked } = await this.#nextAccess(request, options.wait ?? 0));
    } else if (waits) {
      found = await waitFor({ driver: this.driver, namespace: this.name, key: request.key,
        permit: typeof shared === 'number', words: this.#words(request), lease: request.lease,
        wait: options.wait ?? 0, patience, signal }).catch((error) => {
        if (error instanceof errors.UnavailableError) this.#read = -Infinity;
        throw error;
      });
      asked = performance.now();
    }
    const { lease, policy } = request;
    const claimKey = grantedKey({ ...request, driver: this.driver, namespace: this.name,
      permit: shared !== undefined }, found);
    const terms = { driver: this.driver, namespace: this.name, key: claimKey, lease, patience,
      policy, runMax: options.runMax ?? 3_600_000, onFailure: options.onFailure };
    switch (found.outcome) {
      case 'unprotected':
        if (detached) throw new errors.BusyError('the namespace fails open, which is no lock');
        break;
      case 'granted':
        break;
      case 'regranted':
        asked = performance.now() + Math.min(0, found.number('remaining_ms') - lease);
        break;
      case 'replay':
        return found;
      default:
        throw refusal(found);
    }
    const held = new Held(terms, found, asked + lease, detached ? undefined : signal);
    if (signal?.aborted) {
      void held.release();
      throw signal.reason;
    }
    return held;
  }

  /** Asks again until it is granted. Waiters have no order, and do not ask all at once. */
  async #nextAccess(request: Request,
    wait: number): Promise<{ found: Fields; asked: number }> {
    const end = performance.now() + wait;
    for (let delay = accessPause; ; delay = Math.min(2 * delay, accessPauseMax)) {
      const next = Math.min(delay * (0.5 + Math.random() / 2), end - performance.now());
      await pause(Math.max(0, next), request.options.signal).catch((error: unknown) => {
        withdraw(this.#asking(request)); // or the place in front would stop the others
        throw error;
      });
      const asked = performance.now();
      const isLast = asked >= end;
      const found = await this.ask(
        this.#asking(isLast ? { ...request, isNext: false } : request));
      if (found.outcome !== 'in_flight' || isLast) return { found, asked };
    }
  }

  /** @internal */
  async request(key: Key, options: CallOptions): Promise<Request> {
    const word = keyWord(key);
    const words = fingerprintWords(options);
    if (options.firstSent !== undefined) words.push('FIRST-SENT', unixTime(options.firstSent));
    if (options.owner !== undefined) words.push('OWNER', options.owner);
    const policy = await unlessAborted(options.signal, this.ready());
    const lease = options.lease ?? policy.lease;
    words.push('LEASE', ms('lease', lease));
    return { options, policy, lease, words, patience: options.patience ?? 5000,
      key: word,
      id: randomBytes(16).toString('hex') };
  }

  #words({ key, id, words, shared, isNext }: Request): Word[] {
    const command = shared === undefined ? 'SEMEL.CLAIM'
      : typeof shared === 'number' ? 'SEMEL.PERMIT' : 'SEMEL.RWLOCK';
    const named: Word[] = [command, this.name, key, ...shared === undefined ? [] : [String(shared)]];
    if (isNext) named.push('NEXT', String(nextTime));
    return [...named, 'CLAIM-ID', id, ...words];
  }

  #asking(request: Request): Asking {
    const { key, patience, lease, options, shared, isNext } = request;
    return { driver: this.driver, namespace: this.name, key, permit: shared !== undefined,
      words: this.#words(request), lease, patience, signal: options.signal,
      left: isNext ? this.#words({ ...request, isNext: false }) : undefined };
  }

  /** Asks for a claim until the node has answered. @internal */
  ask(asking: Asking): Promise<Fields> {
    return ask(asking).catch((error: unknown) => {
      if (!isAnswer(error)) this.stale(); // the node may be another one
      throw error;
    });
  }

  #codec(options: CallOptions): Codec {
    return options.codec ?? this.options.codec ?? json;
  }

  async #replayed(found: Fields, options: CallOptions): Promise<Done<unknown>> {
    const result = found.flag('result_expired') ? undefined : found.bytes('result');
    return { value: await restored(this.#codec(options), result), replayed: true, late: false,
      unprotected: false, epoch: 0n, attempt: found.number('attempt') };
  }

  async #run<T>(held: Held, fn: (work: Work) => T | PromiseLike<T>,
    options: CallOptions): Promise<Done<Awaited<T>>> {
    try {
      const { work } = held;
      const value = await runs(held, fn);
      let result: Buffer = notKept;
      let why: unknown;
      try {
        result = await stored(this.#codec(options), value);
      } catch (error) {
        why = error ?? new Error('the codec threw nothing');
      }
      const done = await held.complete(value, result, notKept);
      if (done.lost) throw done.lost;
      why ??= done.why;
      if (why !== undefined) throw new errors.ResultNotKeptError(value, why);
      return { value, replayed: false, late: done.late, unprotected: work.unprotected,
        epoch: work.epoch, attempt: work.attempt };
    } finally {
      held.end();
    }
  }
}

function keyLike(id: unknown): id is Key {
  return typeof id === 'string' || id instanceof Uint8Array;
}

/** What `fn` gives; if it throws, the claim is ended as the policy says. */
async function runs<T>(held: Held, fn: (work: Work) => T | PromiseLike<T>): Promise<Awaited<T>> {
  try {
    const value = await fn(held.work);
    refuseLazyResult(value);
    return value;
  } catch (error) {
    const { policy, onFailure } = held.terms;
    const ending = onFailure
      ?? (error instanceof errors.Failure ? policy.onFailure : policy.onException);
    const ended = await held.fail(errors.messageOf(error), ending);
    if (ended && !(error instanceof errors.LeaseLostError)) {
      throw new errors.LeaseLostError(ended.message, { cause: error });
    }
    throw error;
  }
}

/** The error for a claim that is neither granted nor done. */
export function refusal(found: Fields): Error {
  const attempt = found.number('attempt');
  const { outcome } = found;
  switch (outcome) {
    case 'in_flight':
      return new errors.InFlightError(found.number('remaining_ms'), found.number('retry_after_ms'),
        attempt, found.text('owner'));
    case 'kept_failure':
      return new errors.KeptFailureError(found.text('failure'), found.flag('poison'), attempt);
    case 'mismatch':
      return new errors.MismatchError();
    case 'in_doubt':
      return new errors.InDoubtError(attempt, found.text('owner'));
    case 'too_old':
    case 'too_new':
      return new errors.OutsideWindowError(outcome);
    case 'unknown':
      return new errors.NotIssuedError();
    case 'busy':
      return new errors.BusyError(found.text('reason'));
    default:
      return new errors.SemelError('REPLY', `an outcome that is not known here: '${outcome}'`);
  }
}
