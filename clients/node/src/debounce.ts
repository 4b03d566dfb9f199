// Debounce after the last call: one run, with the latest payload.
import { refusal, type Claims } from './claims.js';
import { BusyError, LeaseLostError, OptionError, UnrecordedError } from './errors.js';
import { Held, type Work } from './held.js';
import { keyWord, type Key } from './keys.js';
import { refuseLazy, refuseLazyResult } from './lazy.js';
import { ms, type CallOptions, type Milliseconds } from './options.js';
import { Fields, insist, lost } from './wire.js';

/** When the run behind the last call comes. Each time is 1 ms to 366 days. */
export interface Trailing {
  /** So long after the last call. */
  quiet: Milliseconds;
  /** At the latest so long after the first; by default a minute, or `quiet` if longer. */
  maxWait?: Milliseconds;
  /** How long a payload that is due waits for its run, by default a day. */
  keep?: Milliseconds;
}

/** What became of a try to run. */
export interface Debounced<T> {
  readonly ran: boolean;
  /** Another has the run. */
  readonly running: boolean;
  /** The run comes then, if no other call does; 0: it ran, or nothing is stored. */
  readonly due: Milliseconds;
  /** What the function gave. */
  readonly value?: T;
}

const timeMax = 366 * 24 * 3600 * 1000;
const names = ['quiet', 'maxWait', 'keep'];

function timeWord(name: string, value: Milliseconds): string {
  if (value > timeMax) throw new OptionError(`${name}: ${value}; the most is ${timeMax} ms`);
  return ms(name, value, 1);
}

/** @internal */
export async function debounce(claims: Claims, key: Key, payload: string | Uint8Array,
  when: Trailing): Promise<Milliseconds> {
  const other = Object.keys(when).find((name) => !names.includes(name));
  if (other !== undefined) throw new OptionError(`${other}: not known`);
  const { quiet, maxWait, keep } = when;
  const bytes = Buffer.from(payload as Uint8Array);
  const words = ['SEMEL.DEBOUNCE', claims.name, keyWord(key), bytes, 'QUIET',
    timeWord('quiet', quiet)];
  if (maxWait !== undefined) {
    if (maxWait < quiet) throw new OptionError('maxWait: less than quiet');
    words.push('MAX-WAIT', timeWord('maxWait', maxWait));
  }
  if (keep !== undefined) words.push('KEEP', timeWord('keep', keep));
  await claims.ready();
  const { reply } = await insist(claims.driver, words, claims.options.patience ?? 5000);
  return new Fields(reply).number('due_ms');
}

/** Ends the run; `more`: AGAIN. Rejects with a LeaseLostError if it was not ours any more. */
async function ended(claims: Claims, key: Key, held: Held, more: string[]): Promise<void> {
  const { driver } = claims;
  held.end();
  const losses = driver.losses?.();
  const words = ['SEMEL.DEBOUNCEEND', claims.name, keyWord(key), String(held.work.epoch), ...more];
  const { reply, repeated } = await insist(driver, words, held.terms.patience);
  const found = new Fields(reply);
  if (found.outcome === 'ok' && !found.flag('late')) return;
  if (held.lostBecause) throw held.lostBecause;
  // An earlier try, also one that the driver has repeated by itself, may have ended it, as in Lock.
  const again = repeated || losses === undefined || driver.losses?.() !== losses;
  if (found.outcome === 'ok' || !again || held.isOver) throw lost(found.outcome);
}

/** What `fn` gives. Where it throws, the payload comes again. */
async function run<T>(claims: Claims, key: Key, held: Held,
  fn: (work: Work) => T | PromiseLike<T>): Promise<T> {
  let value: T;
  try {
    value = await fn(held.work);
    refuseLazyResult(value);
  } catch (error) { // which is the news, unless another may have run it as well
    let why = held.lostBecause;
    await ended(claims, key, held, ['AGAIN']).catch((silent: unknown) => {
      if (silent instanceof LeaseLostError) why = silent;
    });
    throw why !== undefined && !(error instanceof LeaseLostError)
      ? new LeaseLostError(why.message, { cause: error }) : error;
  }
  await ended(claims, key, held, []).catch((error: unknown) => {
    throw error instanceof LeaseLostError ? error : new UnrecordedError(value, error);
  });
  return value;
}

/** @internal */
export async function runDebounced<T>(claims: Claims, key: Key,
  fn: (payload: Buffer, work: Work) => T | PromiseLike<T>,
  options: CallOptions): Promise<Debounced<T>> {
  refuseLazy(fn);
  const { signal } = options;
  const { id, lease, patience, policy, words } = await claims.request(key, options);
  const { driver, name: namespace } = claims;
  const asked = performance.now();
  const found = await claims.ask({ driver, namespace, key: keyWord(key), permit: true, lease,
    patience, signal,
    words: ['SEMEL.DEBOUNCERUN', namespace, keyWord(key), 'CLAIM-ID', id, ...words] });
  const none = { ran: false, running: false, due: 0 };
  switch (found.outcome) {
    case 'idle':
      return none;
    case 'quiet':
      return { ...none, due: found.number('due_ms') };
    case 'in_flight':
      return { ...none, running: true, due: found.number('retry_after_ms') };
    case 'granted':
    case 'regranted':
      break;
    case 'unprotected':
      throw new BusyError('the namespace fails open, which is no lock');
    default:
      throw refusal(found);
  }
  const held = new Held({ driver, namespace, key: found.bytes('key') ?? '', lease, patience, policy,
    runMax: options.runMax ?? 3_600_000 }, found, asked + lease, signal);
  if (signal?.aborted) {
    void held.release();
    throw signal.reason;
  }
  const payload = found.bytes('payload') ?? Buffer.alloc(0);
  const value = await run(claims, key, held, (work) => fn(payload, work));
  return { ran: true, running: false, due: 0, value };
}
