// The locks of several keys: all or none.
import { refusal, type Claims } from './claims.js';
import type { Word } from './drivers.js';
import * as errors from './errors.js';
import { giveBack, isRefused, reclaim } from './giveback.js';
import { Held } from './held.js';
import { keyWord, type Key } from './keys.js';
import { Lock } from './lock.js';
import type { CallOptions } from './options.js';
import { explained, Fields, insist, isAnswer, pause } from './wire.js';

const locksMax = 1024; // each of them is renewed by itself
const firstPause = 2; // between two attempts, in ms, and the longest
const pauseMax = 50;

function nameOf(key: Word): string {
  return Buffer.from(key as string).toString('latin1');
}

/**
 * The locks of several keys that this process got at once. The lease of each is renewed until they are
 * unlocked, until it is lost, or for the time of `runMax`. `await using locks = ..` unlocks them at the
 * end of the block.
 */
export class Locks implements AsyncDisposable {
  readonly #locks = new Map<string, Lock>();
  readonly #lost = new AbortController();
  #unlocking: Promise<void> | undefined;

  /** @internal */
  constructor(all: readonly Held[]) {
    for (const held of all) {
      const lock = new Lock(held);
      this.#locks.set(nameOf(held.terms.key), lock);
      const { signal } = lock;
      signal.addEventListener('abort', () => this.#lost.abort(signal.reason), { once: true });
    }
  }

  /** The fencing token of a key: it grows with each holder of that key. 0: it is not among them. */
  token(key: Key): bigint {
    return this.#locks.get(nameOf(keyWord(key)))?.token ?? 0n;
  }

  /** Aborted with a LeaseLostError when one of the locks is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether one of the locks is known to be lost, or its lease is over. */
  get isLost(): boolean {
    return [...this.#locks.values()].some((lock) => lock.isLost);
  }

  /**
   * Gives all locks back, each as Lock.unlock() does. Rejects, when each has been tried, with a
   * LeaseLostError if one was not held any more, else with what the first failed with. Repeats get what
   * the first call got.
   */
  unlock(): Promise<void> {
    this.#unlocking ??= this.#unlock();
    return this.#unlocking;
  }

  async #unlock(): Promise<void> {
    const all = await Promise.allSettled([...this.#locks.values()].map((lock) => lock.unlock()));
    const failed = all.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    const lost = failed.find((why) => why instanceof errors.LeaseLostError);
    if (failed.length !== 0) throw lost ?? failed[0];
  }

  /** As unlock(), but locks whose signal is aborted are no error: their holder knows. */
  async [Symbol.asyncDispose](): Promise<void> {
    const unlocked = this.unlock();
    await (this.signal.aborted ? unlocked.catch(() => {}) : unlocked);
  }
}

/** A claim of several keys. All its tries have the same id. */
interface Request {
  claims: Claims;
  keys: readonly Word[];
  /** Of the claim of each key, behind the key. */
  words: readonly Word[];
  lease: number;
  patience: number;
  signal: AbortSignal | undefined;
}

interface Answer {
  granted: boolean;
  claims: Fields[];
}

export function distinctKeys(keys: unknown): Word[] {
  if (!Array.isArray(keys)) throw new errors.OptionError('keys: not an array');
  const words = new Map<string, Word>();
  for (const key of keys) {
    const word = keyWord(key as Key);
    words.set(nameOf(word), word);
  }
  if (words.size === 0 || words.size > locksMax) {
    throw new errors.OptionError(`${words.size} keys, 1 to ${locksMax} are possible`);
  }
  return [...words.values()];
}

/**
 * Claims all keys, or none, and asks again while others hold them. `found` is told of the key that an
 * error is about.
 */
export async function acquireAll(claims: Claims, keys: readonly Word[], options: CallOptions,
  found: (key: Word) => void): Promise<Held[]> {
  const { signal } = options;
  signal?.throwIfAborted();
  const { policy, lease, words, patience, id } = await claims.request(keys[0] as Word, options);
  signal?.throwIfAborted();
  const request: Request = { claims, keys, words: ['CLAIM-ID', id, ...words], lease, patience,
    signal };
  const wait = options.wait ?? 0;
  const end = performance.now() + wait;
  for (let delay = firstPause; ; delay = Math.min(2 * delay, pauseMax)) {
    const asked = performance.now();
    const answer = await claimAll(request);
    if (answer.granted) {
      const all = answer.claims.map((each, i) => new Held({ driver: claims.driver,
        namespace: claims.name, key: keys[i] as Word, lease, patience, policy,
        runMax: options.runMax ?? 3_600_000, onFailure: options.onFailure }, each,
      untilOf(each, asked, lease), undefined));
      if (!signal?.aborted) return all;
      for (const held of all) void held.release();
      throw signal.reason;
    }
    const { at, why } = obstacleIn(answer.claims);
    found(keys[at] as Word);
    if (!(why instanceof errors.InFlightError) || performance.now() >= end) throw why;
    const next = Math.min(delay * (0.5 + Math.random() / 2), end - performance.now());
    await pause(Math.max(0, next), signal);
  }
}

function untilOf(found: Fields, asked: number, lease: number): number {
  if (found.outcome !== 'regranted') return asked + lease;
  return performance.now() + Math.min(lease, found.number('remaining_ms'));
}

/** Why not all were granted: what waiting does not change comes before what it does. */
function obstacleIn(claims: readonly Fields[]): { at: number; why: Error } {
  let first: { at: number; why: Error } | undefined;
  for (const [at, found] of claims.entries()) {
    if (['free', 'granted', 'regranted'].includes(found.outcome)) continue;
    const why = obstacle(found);
    if (!(why instanceof errors.InFlightError)) return { at, why };
    first ??= { at, why };
  }
  return first ?? { at: 0, why: new errors.SemelError('REPLY', 'not granted, without a reason') };
}

function obstacle(found: Fields): Error {
  switch (found.outcome) {
    case 'error':
      return explained(new Error(found.text('message'))) as Error;
    case 'replay':
      return new errors.SemelError('NO_LOCK', 'the key is that of finished work, not of a lock');
    case 'unprotected':
      return new errors.BusyError('the namespace fails open, which is no lock');
    default:
      return refusal(found);
  }
}

/** Asks once, however often that takes. A grant that comes when nobody waits for it is given back. */
async function claimAll({ claims, keys, words, lease, patience, signal }: Request): Promise<Answer> {
  const { driver, name: namespace } = claims;
  const all = ['SEMEL.CLAIMALL', namespace, ...words, 'KEYS', String(keys.length), ...keys];
  const read = async (reply: unknown): Promise<Answer> => {
    const answer = answerOf(reply, keys.length);
    if (!answer.claims.some((each) => each.isRounded('epoch'))) return answer;
    const own = await driver.open(); // which reads an epoch beyond 2^53 as it is
    try {
      return answerOf(await own.send(all), keys.length);
    } finally {
      own.close();
    }
  };
  const single = (key: Word): Word[] => ['SEMEL.CLAIM', namespace, key, ...words];
  const again = (): void => {
    for (const key of keys) void reclaim({ driver, namespace, key }, single(key), lease);
  };
  const losses = driver.losses?.();
  let isPending = false;
  const unawaited = (call: Promise<unknown>): void => {
    isPending = true;
    call.then(read).then(({ granted, claims: found }) => {
      if (!granted) return undefined;
      return Promise.all(found.map((each, i) =>
        giveBack({ driver, namespace, key: keys[i] as Word }, each)));
    }).catch(again);
  };
  try {
    return await read((await insist(driver, all, patience, signal, unawaited)).reply);
  } catch (error) {
    if (!isAnswer(error)) claims.stale();
    if (!isPending && !isRefused(error, driver, losses) && (signal?.aborted || !isAnswer(error))) again();
    throw error;
  }
}

function answerOf(reply: unknown, count: number): Answer {
  const found = new Fields(reply);
  const claims = found.list('claims').map((each) => new Fields(each));
  if (claims.length !== count) {
    throw new errors.SemelError('REPLY', `${claims.length} claims in the reply to ${count} keys`);
  }
  return { granted: found.outcome === 'granted', claims };
}
