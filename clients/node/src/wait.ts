// Waiting for another owner, on a connection of its own.
import type { Connection, Word } from './drivers.js';
import { UnavailableError } from './errors.js';
import { giveBack, reclaim, type Named } from './giveback.js';
import { explained, Fields, isAnswer, pause, unlessAborted, within } from './wire.js';

const tidyUpTime = 1000;
const waitMax = 2_000_000_000; // of one command: a timer for its reply takes no more than 2^31 - 1

export interface Waiting extends Named {
  /** The claim as it was asked for before, with its id. */
  words: readonly Word[];
  lease: number;
  wait: number;
  patience: number;
  signal?: AbortSignal | undefined;
}

/**
 * Ends a wait with CLIENT UNBLOCK, so that its reply says whether the claim was granted in that
 * moment; then it is given back. Rejects where that is not known.
 */
async function leave(w: Waiting, id: string, reply: Promise<unknown>): Promise<void> {
  let ended = false;
  const ends = reply.finally(() => { ended = true; });
  ends.catch(() => {});
  const another = await w.driver.open();
  try {
    do { // it may not wait yet; where the connection is lost, the node may not know that
      const asked = another.send(['CLIENT', 'UNBLOCK', id]);
      if (Number(await within(tidyUpTime, asked)) === 1) break;
      await pause(1);
    } while (!ended);
  } finally {
    another.close();
  }
  await giveBack(w, new Fields(await ends));
}

/** Waits whose replies are not known, and their connections at the node. */
interface Lost { times: number; ids: string[] }

/** The claim or the permit, asked for with a wait. */
function waitWords({ words, permit }: Waiting, left: number): readonly Word[] {
  if (!permit) return ['SEMEL.WAIT', String(left), ...words.slice(1)];
  const named = 4; // the command, namespace, key and permits
  return [...words.slice(0, named), 'WAIT', String(left), ...words.slice(named)];
}

/** One wait. `connected` is called when the node has answered on this connection. */
async function blocked(w: Waiting, left: number, lost: Lost,
  connected: () => void): Promise<Fields> {
  const opening = w.driver.open();
  let own: Connection;
  try {
    own = await unlessAborted(w.signal, within(w.patience, opening));
  } catch (error) {
    opening.then((late) => late.close(), () => {});
    throw error;
  }
  let leaving: Promise<void> | undefined;
  try {
    const id = String(await unlessAborted(w.signal,
      within(w.patience, own.send(['CLIENT', 'ID']))));
    connected();
    for (const each of lost.ids) { // or it would be granted to a wait that nobody is at any more
      await within(w.patience, own.send(['CLIENT', 'UNBLOCK', each])).catch((error: unknown) => {
        if (!isAnswer(error)) throw error;
      });
    }
    lost.ids = [id];
    ++lost.times;
    const reply = own.send(waitWords(w, left));
    reply.catch(() => {});
    try {
      return new Fields(await unlessAborted(w.signal, within(left + w.patience, reply)));
    } catch (error) {
      // The call rejects at once; the connection is needed for a moment yet.
      if (w.signal?.aborted) {
        --lost.times; // leave() knows
        leaving = within(tidyUpTime, leave(w, id, reply))
          .catch(() => void reclaim(w, w.words, w.lease));
      }
      throw error;
    }
  } finally {
    if (leaving === undefined) own.close();
    else void leaving.finally(() => own.close());
  }
}

/**
 * The claim, or what has become of the work, when the other owner is gone. A connection that ends is
 * replaced. The patience counts from when the node was last known to be there.
 *
 * A reply that is lost may have been a grant: with the id of the claim it is given again, or given
 * back when nobody waits for it any more.
 */
export async function waitFor(w: Waiting): Promise<Fields> {
  const lost: Lost = { times: 0, ids: [] };
  try {
    return await waits(w, lost);
  } catch (error) {
    if (lost.times > 0 && !isAnswer(error)) void reclaim(w, w.words, w.lease);
    throw error;
  }
}

async function waits(w: Waiting, lost: Lost): Promise<Fields> {
  const end = performance.now() + w.wait;
  let seen = performance.now();
  let delay = 5;
  for (;;) {
    const left = Math.min(waitMax, Math.max(1, Math.ceil(end - performance.now())));
    let here = false;
    try {
      const found = await blocked(w, left, lost, () => { here = true; });
      [lost.times, lost.ids] = [0, []];
      if (found.outcome !== 'in_flight' || left < waitMax) return found;
      seen = performance.now(); // that was a part of a longer wait
      continue;
    } catch (error) {
      w.signal?.throwIfAborted();
      if (isAnswer(error)) throw explained(error);
      if (here) {
        seen = performance.now();
        delay = 5;
      } else if (performance.now() - seen > w.patience) {
        throw new UnavailableError(w.patience, error, lost.times > 0);
      }
      if (performance.now() > end + w.patience) {
        throw new UnavailableError(w.patience, error, lost.times > 0);
      }
    }
    await pause(delay, w.signal);
    delay = Math.min(2 * delay, 250);
  }
}
