// Waiting for another owner, on a connection of its own.
import type { Connection, Driver, Word } from './drivers.js';
import { UnavailableError } from './errors.js';
import { explained, Fields, insist, isAnswer, pause, unlessAborted, within } from './wire.js';

const tidyUpTime = 1000;
const waitMax = 2_000_000_000; // of one command: a timer for its reply takes no more than 2^31 - 1

export interface Waiting {
  driver: Driver;
  namespace: string;
  key: Word;
  /** The options of the claim, without its id. */
  words: readonly string[];
  wait: number;
  patience: number;
  signal?: AbortSignal | undefined;
}

/**
 * Ends a wait with CLIENT UNBLOCK, so that its reply says whether the claim was granted in that
 * moment; then it is given back. Without the right to that command the connection is closed, and
 * such a claim ends with its lease.
 */
async function leave(w: Waiting, id: string, reply: Promise<unknown>): Promise<void> {
  let ended = false;
  const ends = reply.finally(() => { ended = true; });
  ends.catch(() => {});
  const another = await w.driver.open();
  try {
    while (!ended) { // it may not wait yet
      if (Number(await another.send(['CLIENT', 'UNBLOCK', id])) === 1) break;
      await pause(1);
    }
  } finally {
    another.close();
  }
  const epoch = new Fields(await ends).integer('epoch');
  if (epoch !== 0n) {
    await insist(w.driver, ['SEMEL.RELEASE', w.namespace, w.key, String(epoch)], tidyUpTime);
  }
}

/** One SEMEL.WAIT. `connected` is called when the node has answered on this connection. */
async function blocked(w: Waiting, left: number, connected: () => void): Promise<Fields> {
  const opening = w.driver.open();
  let own: Connection;
  try {
    own = await unlessAborted(w.signal, within(w.patience, opening));
  } catch (error) {
    opening.then((late) => late.close(), () => {});
    throw error;
  }
  try {
    const id = String(await unlessAborted(w.signal,
      within(w.patience, own.send(['CLIENT', 'ID']))));
    connected();
    const words = ['SEMEL.WAIT', String(left), w.namespace, w.key, ...w.words];
    const reply = own.send(words);
    reply.catch(() => {});
    try {
      return new Fields(await unlessAborted(w.signal, within(left + w.patience, reply)));
    } catch (error) {
      if (w.signal?.aborted) await within(tidyUpTime, leave(w, id, reply)).catch(() => {});
      throw error;
    }
  } finally {
    own.close();
  }
}

/**
 * The claim, or what has become of the work, when the other owner is gone. A connection that ends is
 * replaced. The patience counts from when the node was last known to be there.
 *
 * The call carries no CLAIM-ID: the node would keep the place in its queue for a client that does
 * not come back, and grant it the claim.
 */
export async function waitFor(w: Waiting): Promise<Fields> {
  const end = performance.now() + w.wait;
  let seen = performance.now();
  let delay = 5;
  for (;;) {
    const left = Math.min(waitMax, Math.max(1, Math.ceil(end - performance.now())));
    let here = false;
    try {
      const found = await blocked(w, left, () => { here = true; });
      if (found.outcome !== 'in_flight' || left < waitMax) return found;
      seen = performance.now(); // that was a part of a longer wait
      continue;
    } catch (error) {
      w.signal?.throwIfAborted();
      if (isAnswer(error) && !/^MOVED /.test((error as Error).message)) throw explained(error);
      if (here) {
        seen = performance.now();
        delay = 5;
      } else if (performance.now() - seen > w.patience) {
        throw new UnavailableError(w.patience, error);
      }
      if (performance.now() > end + w.patience) {
        throw new UnavailableError(w.patience, error);
      }
    }
    await pause(delay, w.signal);
    delay = Math.min(2 * delay, 250);
  }
}
