import { driverOf, type AnyClient, type Driver, type Word } from './drivers.js';
import { OptionError } from './errors.js';
import { keyWord, type Key } from './keys.js';
import { ms, type Milliseconds } from './options.js';
import { Fields, insist } from './wire.js';

/** So many per period. */
export interface RateTerms {
  /**
   * `sliding`, the default: at most the limit in any span of a period. `fixed`: in a window, which
   * begins with its first call. `bucket`: as many tokens as the limit, of which `refill` come back in
   * a period, evenly.
   */
  kind?: 'fixed' | 'sliding' | 'bucket';
  /** 1 to 100,000,000. */
  limit: number;
  /** 1 ms to 366 days. */
  period: Milliseconds;
  /** Of a bucket; by default as many as the limit. */
  refill?: number;
  /** How long a call is repeated while the node does not answer, by default 5 s. */
  patience?: Milliseconds;
}

/** The answer to a call. */
export interface Rate {
  /** False: nothing was taken. */
  readonly allowed: boolean;
  /** Available now, after this call. */
  readonly remaining: number;
  /** Not allowed: the cost is available then, if no other call takes any. */
  readonly retryAfter: Milliseconds;
  /** Until the whole limit is available, if no other call takes any. */
  readonly resetAfter: Milliseconds;
}

const rateMax = 100_000_000;
const periodMax = 366 * 24 * 3600 * 1000;
const names = ['kind', 'limit', 'period', 'refill', 'patience'];

function count(name: string, value: unknown, least: number, most = rateMax): string {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
    return String(value);
  }
  throw new OptionError(`${name}: ${String(value)}, ${least} to ${most} are possible`);
}

/**
 * One set of terms for any number of keys. A limit is one string of the node's store, under the key
 * itself; DEL resets it.
 */
export class RateLimiter {
  readonly terms: Readonly<RateTerms>;
  readonly #driver: Driver;
  readonly #words: Word[];

  /** Asks nothing. Throws an OptionError for terms that no node would take. */
  constructor(client: AnyClient, terms: RateTerms) {
    const { kind = 'sliding', limit, period, refill, patience } = terms;
    const other = Object.keys(terms).find((name) => !names.includes(name));
    if (other !== undefined) throw new OptionError(`${other}: not known`);
    if (!['fixed', 'sliding', 'bucket'].includes(kind)) throw new OptionError(`kind: ${String(kind)}`);
    if (patience !== undefined) ms('patience', patience, 1);
    const words = [kind.toUpperCase(), count('limit', limit, 1), ms('period', period, 1)];
    if (period > periodMax) throw new OptionError(`period: ${period}; the most is ${periodMax} ms`);
    if (refill !== undefined) {
      if (kind !== 'bucket') throw new OptionError('refill: only a bucket has one');
      words.push('REFILL', count('refill', refill, 1));
    }
    this.terms = { ...terms };
    this.#driver = driverOf(client);
    this.#words = words;
  }

  /**
   * Takes `cost` of what the terms allow for the key, or nothing. A cost of 0 takes nothing and is
   * always allowed.
   *
   * A try whose reply was lost may have taken as well: fewer are allowed then, never more. Rejects
   * with an UnavailableError when the node does not answer; whether to go on is the caller's choice.
   */
  async take(key: Key, cost = 1, { signal }: { signal?: AbortSignal } = {}): Promise<Rate> {
    const words: Word[] = ['SEMEL.LIMIT', keyWord(key), ...this.#words,
      'COST', count('cost', cost, 0, this.terms.limit)];
    const { reply } = await insist(this.#driver, words, this.terms.patience ?? 5000, signal);
    const found = new Fields(reply);
    return { allowed: found.outcome === 'allowed', remaining: found.number('remaining'),
      retryAfter: found.number('retry_after_ms'), resetAfter: found.number('reset_after_ms') };
  }

  /** Takes nothing. */
  look(key: Key): Promise<Rate> {
    return this.take(key, 0);
  }
}
