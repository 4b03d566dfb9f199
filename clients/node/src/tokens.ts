import { randomBytes } from 'node:crypto';
import { Claims, type ClaimsOptions, type Done } from './claims.js';
import type { AnyClient, Word } from './drivers.js';
import * as errors from './errors.js';
import type { Work } from './held.js';
import { keyWord } from './keys.js';
import { refuseLazy } from './lazy.js';
import { ms, type CallOptions, type Milliseconds } from './options.js';
import { insist } from './wire.js';

const tokenBytes = 24; // 16 random ones, then the end of its time in Unix milliseconds

/** Tokens that are used once: a form, a link in a mail, a coupon. */
export class Tokens {
  readonly claims: Claims;

  /**
   * Without a policy the namespace is declared as `token`: six seconds to use a token, an hour in
   * which its use is remembered, three tries.
   */
  constructor(client: AnyClient, namespace: string, options: ClaimsOptions = {}) {
    this.claims = new Claims(client, namespace, { policy: { as: 'token' }, ...options });
  }

  /** Makes a token, good for `ttl`, by default the namespace's ATTEMPTS-TTL. It is text for URLs. */
  async issue(ttl?: Milliseconds): Promise<string> {
    if (ttl !== undefined) ms('ttl', ttl, 1);
    const known = ttl ?? (await this.claims.ready()).attemptsTtl;
    const bytes = Buffer.alloc(tokenBytes);
    randomBytes(16).copy(bytes);
    // Without the right to read the policy the time is not known: then the token names none.
    const end = known === 0 ? 2n ** 64n - 1n : BigInt(Math.ceil(Date.now() + known));
    bytes.writeBigUInt64BE(end, 16);
    const token = bytes.toString('base64url');
    await this.issueAs(token, ttl);
    return token;
  }

  /**
   * Issues a token that the caller chose; false: it is known already, used or not. A repeat after a
   * lost reply may give false for a token that it issued.
   */
  async issueAs(token: string, ttl?: Milliseconds): Promise<boolean> {
    const word = keyWord(token, 'the token');
    const time = ttl === undefined ? [] : ['TTL', ms('ttl', ttl, 1)];
    await this.claims.ready();
    const { driver, name, options } = this.claims;
    const words: Word[] = ['SEMEL.ISSUE', name, word, ...time];
    return Number((await insist(driver, words, options.patience ?? 5000)).reply) === 1;
  }

  /**
   * Uses a token up. Rejects with a TokenUsedError, TokenExpiredError or TokenUnknownError; the last
   * one also for a chosen token whose time is over. InFlightError: it is being redeemed.
   */
  async consume(token: string, options: CallOptions = {}): Promise<void> {
    const done = await this.redeem(token, () => {}, options);
    if (done.replayed) throw new errors.TokenUsedError();
  }

  /**
   * Runs `fn` for a token as Claims.once does, and repeats get its result: a double click. If `fn`
   * throws the token is good still, for ATTEMPTS-TTL.
   */
  async redeem<T>(token: string, fn: (work: Work) => T | PromiseLike<T>,
    options: CallOptions = {}): Promise<Done<Awaited<T>>> {
    refuseLazy(fn);
    let runs = false;
    try {
      return await this.claims.once(token, (work) => {
        runs = true;
        return fn(work);
      }, options);
    } catch (error) {
      if (runs) throw error;
      if (error instanceof errors.NotIssuedError) {
        throw hasExpired(token) ? new errors.TokenExpiredError() : new errors.TokenUnknownError();
      }
      throw error instanceof errors.NoResultError ? new errors.TokenUsedError() : error;
    }
  }
}

/**
 * Reads the time in a token of issue(). It only names the error: whoever forges it gets another word
 * for no.
 */
function hasExpired(token: string): boolean {
  const bytes = Buffer.from(token, 'base64url');
  return bytes.length === tokenBytes && bytes.readBigUInt64BE(16) <= BigInt(Date.now());
}
