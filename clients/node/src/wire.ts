// Calls that are repeated until the node has answered, and replies as fields.
import type { Driver, Word } from './drivers.js';
import { KeyError, LeaseLostError, messageOf, NamespaceError, RefusedError, SemelError,
  UnavailableError } from './errors.js';
import { timerMax } from './options.js';

/** A reply: a map in RESP3, names and values in turn in RESP2. */
export class Fields {
  readonly #found = new Map<string, unknown>();

  constructor(reply: unknown) {
    if (Array.isArray(reply)) {
      for (let i = 0; i + 1 < reply.length; i += 2) this.#found.set(String(reply[i]), reply[i + 1]);
    } else if (reply instanceof Map) {
      for (const [name, value] of reply) this.#found.set(String(name), value);
    } else if (typeof reply === 'object' && reply !== null && !Buffer.isBuffer(reply)) {
      for (const [name, value] of Object.entries(reply)) this.#found.set(name, value);
    } else {
      throw new SemelError('REPLY', 'a reply without fields; is this a Semel node?');
    }
  }

  text(name: string): string {
    const value = this.#found.get(name);
    return value === null || value === undefined ? '' : String(value);
  }

  get outcome(): string {
    return this.text('outcome');
  }

  bytes(name: string): Buffer | undefined {
    const value = this.#found.get(name);
    if (value === null || value === undefined) return undefined;
    return Buffer.isBuffer(value) ? value : Buffer.from(String(value));
  }

  list(name: string): unknown[] {
    const value = this.#found.get(name);
    return Array.isArray(value) ? value : [];
  }

  number(name: string): number {
    return Number(this.text(name) || 0);
  }

  /** Whether the driver has read an integer beyond 2^53 as a number. */
  isRounded(name: string): boolean {
    const value = this.#found.get(name);
    return typeof value === 'number' && !Number.isSafeInteger(value);
  }

  /** The same fields, but for one. */
  with(name: string, value: unknown): Fields {
    return new Fields(new Map([...this.#found, [name, value]]));
  }

  /** 0: not there. */
  integer(name: string): bigint {
    if (this.isRounded(name)) throw new SemelError('REPLY', `${name} is beyond 2^53`);
    return BigInt(this.text(name) || 0);
  }

  flag(name: string): boolean {
    const value = this.#found.get(name);
    return value === true || value === 1 || String(value) === '1' || String(value) === 'true';
  }
}

/** Rejects with the signal's reason as soon as it is aborted; `work` goes on. */
export function unlessAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) {
      work.catch(() => {});
      return abort();
    }
    signal.addEventListener('abort', abort, { once: true });
    const done = (): void => signal.removeEventListener('abort', abort);
    work.then((value) => { done(); resolve(value); }, (error: unknown) => { done(); reject(error); });
    return undefined;
  });
}

/** Ends after `time`, or rejects when the signal is aborted. */
export function pause(time: number, signal?: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(time, timerMax));
  });
  return unlessAborted(signal, passed).finally(() => clearTimeout(timer));
}

class Late extends Error {
  constructor() {
    super('no reply');
  }
}

/** What work gives, or a rejection after `time`. */
export async function within<T>(time: number, work: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = setTimeout(() => timer.abort(new Late()), Math.min(Math.max(0, time), timerMax));
  try {
    return await unlessAborted(timer.signal, work);
  } finally {
    clearTimeout(late);
  }
}

// Errors of a server begin with a word in capitals, those of the drivers do not.
const answers = /^[A-Z][A-Z0-9]+(?: |$)/;
// Transient ones: a call is repeated while its patience lasts. The node has done nothing ..
const refusals = /^(?:BUSY|LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|MOVED|ASK|OOM|MISCONF)(?: |$)/;
// .. or may have done it.
const doubts = /^(?:TRYAGAIN|UNBLOCKED)(?: |$)/;

/** Whether the node has said this, and would say it again. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && answers.test(error.message)
    && !refusals.test(error.message) && !doubts.test(error.message);
}

/** Whether the node had no memory for what was sent; it may have some for less. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && /^OOM(?: |$)/.test(error.message);
}

/** An error that the node answered, as one of this package. Its text stays: isAnswer() reads it. */
export function explained(error: unknown): unknown {
  if (error instanceof SemelError) return error;
  const text = messageOf(error);
  if (/^ERR key /.test(text)) return new KeyError(text.slice(4), { cause: error });
  if (/^ERR namespace /.test(text)) return new NamespaceError(text, { cause: error });
  return new RefusedError(text, { cause: error });
}

export interface Asked {
  reply: unknown;
  /** An earlier try may have had an effect. */
  repeated: boolean;
  /** An error that `ends` the tries: there is no reply. */
  refused?: unknown;
}

/**
 * Repeats a call until the node has answered, the signal is aborted or the patience ends. `unawaited`
 * gets a call that may still be answered when nobody waits for it.
 */
export async function insist(driver: Driver, words: readonly Word[], patience: number,
  signal?: AbortSignal, unawaited: (call: Promise<unknown>) => void = () => {},
  ends: (error: unknown) => boolean = () => false): Promise<Asked> {
  const end = performance.now() + patience;
  let repeated = false;
  let last: unknown = new Late();
  for (let delay = 5; ; delay = Math.min(2 * delay, 250)) {
    signal?.throwIfAborted();
    let settled = false;
    const call = Promise.resolve().then(() => driver.send(words)).finally(() => { settled = true; });
    try {
      const reply = await unlessAborted(signal, within(end - performance.now(), call));
      return { reply, repeated };
    } catch (error) {
      if (!settled) unawaited(call);
      signal?.throwIfAborted();
      if (ends(error)) return { reply: undefined, repeated, refused: error };
      if (isAnswer(error)) throw explained(error);
      last = error;
      repeated ||= !refusals.test(messageOf(error));
    }
    if (last instanceof Late || performance.now() + delay > end) break;
    await pause(delay, signal);
  }
  throw new UnavailableError(patience, last, repeated);
}

export function lost(outcome: string): LeaseLostError {
  return new LeaseLostError(outcome);
}
