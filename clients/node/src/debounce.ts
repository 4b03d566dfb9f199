// Debounce after the last call: one run, with the latest payload.
import { refusal, type Claims } from './claims.js';
import { LeaseLostError, OptionError } from './errors.js';
import { giveBack } from './giveback.js';
import { Held, type Work } from './held.js';
import { keyWord, type Key } from './keys.js';
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

/** Ends the run; `more`: AGAIN. */
async function ended(claims: Claims, key: Key, held: Held, more: string[]): Promise<void> {
  held.end();
  const words = ['SEMEL.DEBOUNCEEND', claims.name, keyWord(key), String(held.work.epoch), ...more];
  const { reply, repeated } = await insist(claims.driver, words, held.terms.patience);
  const found = new Fields(reply);
  const known = found.outcome === 'ok' || (repeated && found.outcome === 'unknown');
  if (!known || found.flag('late')) throw lost(found.outcome);
}

/** @internal */
export async function runDebounced<T>(claims: Claims, key: Key,
  fn: (payload: Buffer, work: Work) => T | PromiseLike<T>,
  options: CallOptions): Promise<Debounced<T>> {
  const { id, lease, patience, policy, words: more } = await claims.request(key, options);
  const { driver, name: namespace } = claims;
  const asked = performance.now();
  const words = ['SEMEL.DEBOUNCERUN', namespace, keyWord(key), 'CLAIM-ID', id, ...more];
  const late = (call: Promise<unknown>): void => {
    const claim = { driver, namespace, key: keyWord(key), permit: true };
    call.then((reply) => giveBack(claim, new Fields(reply))).catch(() => {});
  };
  const { reply } = await insist(driver, words, patience, options.signal, late);
  const found = new Fields(reply);
  const none = { ran: false, running: false, due: 0 };
  if (found.outcome === 'idle') return none;
  if (found.outcome === 'quiet') return { ...none, due: found.number('due_ms') };
  if (found.outcome === 'in_flight') {
    return { ...none, running: true, due: found.number('retry_after_ms') };
  }
  if (found.outcome !== 'granted' && found.outcome !== 'regranted') throw refusal(found);
  const held = new Held({ driver, namespace, key: found.bytes('key') ?? '', lease, patience, policy,
    runMax: options.runMax ?? 3_600_000 }, found, asked + lease, options.signal);
  let value: T;
  try {
    value = await fn(found.bytes('payload') ?? Buffer.alloc(0), held.work);
  } catch (error) {
    await ended(claims, key, held, ['AGAIN']).catch(() => {}); // the error is the news
    throw held.lostBecause !== undefined && !(error instanceof LeaseLostError)
      ? new LeaseLostError(held.lostBecause.message, { cause: error }) : error;
  }
  await ended(claims, key, held, []);
  return { ran: true, running: false, due: 0, value };
}
