// What calls reject with. `code` is for those who cannot use instanceof.

/** The base of all errors of this package. */
export class SemelError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Another owner is doing the work, or holds the lock. */
export class InFlightError extends SemelError {
  constructor(
    /** Milliseconds of the other's lease that are left. */
    readonly remaining: number,
    /** Milliseconds after which to ask again: a hint. */
    readonly retryAfter: number,
    readonly attempt: number,
    readonly owner: string,
  ) {
    super('IN_FLIGHT', `in flight, owner '${owner}', attempt ${attempt}`);
  }
}

/** The key was used with another payload. */
export class MismatchError extends SemelError {
  constructor() {
    super('MISMATCH', 'the key was used with another payload');
  }
}

/** An owner went silent or does not know the outcome. An operator decides (SEMEL.RESOLVE). */
export class InDoubtError extends SemelError {
  constructor(readonly attempt: number, readonly owner: string) {
    super('IN_DOUBT', `in doubt after attempt ${attempt} of owner '${owner}'`);
  }
}

/** The work failed for good. */
export class KeptFailureError extends SemelError {
  constructor(
    readonly failure: string,
    /** It was tried too often. */
    readonly poison: boolean,
    readonly attempt: number,
  ) {
    super('KEPT_FAILURE', `failed for good: ${poison ? `${attempt} attempts` : failure}`);
  }
}

/** The work is done, but its result has expired or was never kept. */
export class NoResultError extends SemelError {
  constructor() {
    super('NO_RESULT', 'done, but there is no result');
  }
}

/** The work is recorded as done, but its result could not be encoded or stored. */
export class ResultNotKeptError extends SemelError {
  constructor(
    /** What the function returned. */
    readonly value: unknown,
    cause: unknown,
  ) {
    super('RESULT_NOT_KEPT', `done, but the result was not kept: ${messageOf(cause)}`, { cause });
  }
}

/** The claim is no longer this caller's: another owner may have run the work as well. */
export class LeaseLostError extends SemelError {
  constructor(why: string, options?: ErrorOptions) {
    super('LEASE_LOST', `the lease was lost: ${why}`, options);
  }
}

/** The function succeeded, but the node could not be told. The work may run again. */
export class UnrecordedError extends SemelError {
  constructor(
    /** What the function returned. */
    readonly value: unknown,
    cause: unknown,
  ) {
    super('UNRECORDED', `done, but not recorded: ${messageOf(cause)}`, { cause });
  }
}

/** `firstSent` is too old, or too far ahead, for the namespace. */
export class OutsideWindowError extends SemelError {
  constructor(readonly outcome: 'too_old' | 'too_new') {
    super('OUTSIDE_WINDOW', `first sent outside the window: ${outcome}`);
  }
}

/** The namespace takes only keys that were issued, and this one was not, or has ended. */
export class NotIssuedError extends SemelError {
  constructor() {
    super('NOT_ISSUED', 'the key was not issued, or has ended');
  }
}

/** The node has no room. Nothing was claimed. */
export class BusyError extends SemelError {
  constructor(readonly reason: string) {
    super('BUSY', `busy: ${reason}`);
  }
}

/** The node did not answer within the patience of the call. */
export class UnavailableError extends SemelError {
  constructor(
    patience: number,
    cause: unknown,
    /** The node may have got the call. What it was granted by that is given back. */
    readonly uncertain = true,
  ) {
    super('UNAVAILABLE', `no answer within ${patience} ms: ${messageOf(cause)}`, { cause });
  }
}

/** The key, or a name that is part of it, is empty, too long or of another type than text. */
export class KeyError extends SemelError {
  /** Which rule it breaks, as C++ names it; empty where it is the type. */
  readonly reason: string;

  constructor(message: string, options: ErrorOptions & { reason?: string } = {}) {
    super('KEY', message, options);
    this.reason = options.reason ?? '';
  }
}

/**
 * The node refuses the namespace: it is declared with other terms, or is of another database, or may
 * not be declared. The message is the node's; it names the command that changes the terms.
 */
export class NamespaceError extends SemelError {
  constructor(reply: string, options?: ErrorOptions) {
    super('NAMESPACE', reply, options);
  }
}

/** Any other error that the node answers. The message is the node's, with its first word (`NOPERM ..`). */
export class RefusedError extends SemelError {
  constructor(reply: string, options?: ErrorOptions) {
    super('REFUSED', reply, options);
  }
}

/**
 * An option, or the name of a namespace, that cannot be kept; the message has the name, the value and
 * the limit. Nothing ran, and no repeat will help.
 */
export class OptionError extends SemelError {
  constructor(message: string) {
    super('OPTION', message);
  }
}

/** A payload that has no canonical text (docs/identity.md). Nothing ran. */
export class NotCanonicalError extends SemelError {
  constructor(
    /** Where in the value: `$.items[2].price`. */
    readonly path: string,
    why: string,
    options?: ErrorOptions,
  ) {
    super('NOT_CANONICAL', `${path}: ${why}`, options);
  }
}

/**
 * A function that does not do its work by being called, or a result that stands for work still to be
 * done. Of a function: nothing ran. Of a result: the claim has ended as if that was thrown.
 */
export class LazyError extends SemelError {
  constructor(message: string) {
    super('LAZY', message);
  }
}

/** The token was consumed before. */
export class TokenUsedError extends SemelError {
  constructor() {
    super('TOKEN_USED', 'the token was used');
  }
}

/** The token was never issued. */
export class TokenUnknownError extends SemelError {
  constructor() {
    super('TOKEN_UNKNOWN', 'the token is unknown');
  }
}

/** The token was issued, and its time is over. */
export class TokenExpiredError extends SemelError {
  constructor() {
    super('TOKEN_EXPIRED', 'the token has expired');
  }
}

/**
 * For functions to throw: the work is known to have failed. The namespace's ON-FAILURE decides what
 * that means, where its ON-EXCEPTION decides about all else that is thrown.
 */
export class Failure extends Error {
  override readonly name: string = 'Failure';
}

/** For handlers of messages to throw: no other try will help. */
export class Rejected extends Failure {
  override readonly name = 'Rejected';
}

/** The text of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown);
  } catch {
    return 'what was thrown has no text';
  }
}
