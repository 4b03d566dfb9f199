/**
 * Work that happens once, over a Semel node and ioredis or node-redis.
 *
 *     const orders = new Claims(redis, 'orders', { policy: { as: 'call' } });
 *     const { value } = await orders.once('order-4711', ({ signal }) => charge(signal));
 *
 * One caller runs the function; duplicates get its result.
 */
export { canonicalJson } from './canonical.js';
export { Claims, type ClaimsOptions, type Done } from './claims.js';
export { bytes, json, typed, type Codec } from './codec.js';
export type { Consumed, Verdict } from './consume.js';
export type { Debounced, Trailing } from './debounce.js';
export type { AnyClient, Connection, Driver, Word } from './drivers.js';
export * from './errors.js';
export type { Work } from './held.js';
export { canonicalOf, ExactNumber, identityOf, identityOfText, type Identity,
  type Scope } from './identity.js';
export { compositeKey, formatKey, type Key } from './keys.js';
export { Access, Lock, Permit } from './lock.js';
export { Locks } from './locks.js';
export type { Observed, ObservedEvent, Observer } from './observer.js';
export type { CallOptions, Ending, Milliseconds, Policy } from './options.js';
export { RateLimiter, type Rate, type RateTerms } from './rate.js';
export { Tokens } from './tokens.js';
