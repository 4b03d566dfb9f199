// Who is told of calls that did not run.
import * as errors from './errors.js';
import type { Key } from './keys.js';
import type { Milliseconds } from './options.js';

/**
 * Why a call did not run. `replayed`: the work was done before, and the call got its result or a
 * NoResultError. `rejected`: another owner has it (InFlightError), the node has no room (BusyError), or
 * it was first sent outside the window (OutsideWindowError). `mismatch`, `in-doubt`, `kept-failure`:
 * the errors of these names. `unreachable`: an UnavailableError. `unknown-token`: a NotIssuedError.
 */
export type ObservedEvent = 'replayed' | 'rejected' | 'mismatch' | 'in-doubt' | 'kept-failure'
  | 'unreachable' | 'unknown-token';

/** A call that did not run. */
export interface Observed {
  readonly event: ObservedEvent;
  readonly namespace: string;
  readonly key: Key;
  /** Since the call began, its wait included. */
  readonly took: Milliseconds;
}

/**
 * Called for each call that did not run, before the call settles: of once(), consumeOnce(), tokens,
 * locks and permits. Not called for work that ran, for a wrong argument, or for a call that was aborted. A
 * promise that it gives is not awaited. What it throws or rejects with is ignored.
 */
export type Observer = (observed: Observed) => unknown;

const kinds: readonly [new (...all: never[]) => Error, ObservedEvent][] = [
  [errors.InFlightError, 'rejected'], [errors.BusyError, 'rejected'],
  [errors.OutsideWindowError, 'rejected'], [errors.MismatchError, 'mismatch'],
  [errors.InDoubtError, 'in-doubt'], [errors.KeptFailureError, 'kept-failure'],
  [errors.UnavailableError, 'unreachable'], [errors.NotIssuedError, 'unknown-token'],
];

/** Undefined: it is not observed. */
export function eventOf(error: unknown): ObservedEvent | undefined {
  return kinds.find(([kind]) => error instanceof kind)?.[1];
}

/** The call has an outcome of its own, whatever the observer does. */
export function tell(observer: Observer, observed: Observed): void {
  try {
    // A promise that rejects would end the process.
    Promise.resolve(observer(observed)).catch(() => {});
  } catch { /* its own */ }
}
