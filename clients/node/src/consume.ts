import * as errors from './errors.js';
import { unguardedWork, type Held, type Work } from './held.js';
import { notKept } from './codec.js';
import { refuseLazy, refuseLazyResult } from './lazy.js';
import { Fields } from './wire.js';

/** The answer to a broker. */
export type Verdict = 'ack' | 'retry' | 'deadLetter';

/** What became of a message. */
export interface Consumed {
  verdict: Verdict;
  /** Of `ack`: an earlier delivery was handled. */
  duplicate: boolean;
  /** The handler ran without protection: no id, or the namespace fails open. */
  unguarded: boolean;
  /** Of `retry`: milliseconds, a hint. */
  retryAfter: number;
  /** How often it was tried, this time included. */
  attempt: number;
  /** Why: what the handler threw, or what kept it from running. */
  error?: unknown;
}

const defaultRetryAfter = 1000;

function told(verdict: Verdict, attempt: number, more: Partial<Consumed> = {}): Consumed {
  return { verdict, duplicate: false, unguarded: false, attempt,
    retryAfter: verdict === 'retry' ? defaultRetryAfter : 0, ...more };
}

/** A message without an id. */
export async function unguarded(handle: (work: Work) => unknown,
  signal: AbortSignal = new AbortController().signal): Promise<Consumed> {
  try {
    refuseLazy(handle);
    signal.throwIfAborted();
    refuseLazyResult(await handle(unguardedWork(signal)));
    return told('ack', 1, { unguarded: true });
  } catch (error) {
    const verdict = error instanceof errors.Rejected ? 'deadLetter' : 'retry';
    return told(verdict, 1, { unguarded: true, error });
  }
}

export async function consume(acquire: () => Promise<Held | Fields>,
  handle: (work: Work) => unknown): Promise<Consumed> {
  let found: Held | Fields;
  try {
    refuseLazy(handle);
    found = await acquire();
  } catch (error) {
    return notRun(error);
  }
  if (found instanceof Fields) return told('ack', found.number('attempt'), { duplicate: true });
  const held = found;
  try {
    return await held.unlessGivenUp(handled(held, handle));
  } catch (error) { // it did not end after its signal was aborted
    return told('retry', held.work.attempt, { error });
  }
}

/**
 * Only what every consumer would refuse is a dead letter. A wrong option is this consumer's fault.
 */
function notRun(error: unknown): Consumed {
  if (error instanceof errors.InFlightError) {
    return told('retry', error.attempt, { error, retryAfter: error.retryAfter });
  }
  if (error instanceof errors.KeptFailureError) {
    return told('deadLetter', error.attempt, { error });
  }
  const refused = error instanceof errors.MismatchError || error instanceof errors.NotIssuedError
    || error instanceof errors.OutsideWindowError || error instanceof errors.KeyError
    || error instanceof errors.NotCanonicalError
    || /^WRONGTYPE /.test(errors.messageOf(error));
  return told(refused ? 'deadLetter' : 'retry', 0, { error });
}

async function handled(held: Held, handle: (work: Work) => unknown): Promise<Consumed> {
  const { attempt, unprotected } = held.work;
  try {
    refuseLazyResult(await handle(held.work));
  } catch (error) {
    return { ...await failed(held, error), unguarded: unprotected };
  } finally {
    if (held.lostBecause) held.end();
  }
  try {
    const done = await held.complete(undefined, Buffer.alloc(0), notKept);
    if (!done.lost) return told('ack', attempt, { unguarded: unprotected });
    // Handled twice; the newer owner answers for it.
    const verdict = done.stored ? 'ack' : 'retry';
    return told(verdict, attempt, { duplicate: verdict === 'ack', error: done.lost });
  } catch (error) { // handled, but the node could not be told: another delivery may be another run
    return told('ack', attempt, { error });
  } finally {
    held.end();
  }
}

async function failed(held: Held, error: unknown): Promise<Consumed> {
  const { policy, onFailure } = held.terms;
  const { attempt } = held.work;
  const last = policy.attemptsMax !== 0 && attempt >= policy.attemptsMax;
  let ending = onFailure
    ?? (error instanceof errors.Failure ? policy.onFailure : policy.onException);
  if (error instanceof errors.Rejected || (last && ending === 'release')) ending = 'keep';
  const ended = await held.fail(errors.messageOf(error), ending);
  held.end();
  if (ended) return told('retry', attempt, { error: ended });
  return told(ending === 'keep' ? 'deadLetter' : 'retry', attempt, { error });
}
