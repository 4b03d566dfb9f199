// What is granted when nobody waits for it any more is given back.
import type { Driver, Word } from './drivers.js';
import { UnavailableError } from './errors.js';
import { Fields, insist, isAnswer } from './wire.js';

const tidyUpTime = 1000;
const longest = 600_000;
const atOnceMax = 10_000; // beyond it claims end with their leases
let running = 0;

/** A claim, as it is named in calls. */
export interface Named {
  driver: Driver;
  namespace: string;
  key: Word;
  /** Of a semaphore or a read/write lock: the key of the claim is in the reply. */
  permit?: boolean;
}

/** A claim that is asked for, with an id. */
export interface Asking extends Named {
  words: readonly Word[];
  /** Of a caller who is to be next, if he waits: how he asks when he does not wait any more. */
  left?: readonly Word[] | undefined;
  lease: number;
  patience: number;
  signal?: AbortSignal | undefined;
}

/** The key of the claim that was granted. */
export function grantedKey({ key, permit }: Named, found: Fields): Word {
  return (permit && found.bytes('key')) || key;
}

/**
 * The fields of a reply to `words`, a claim with an id. ioredis rounds an epoch beyond 2^53 in RESP3; a
 * connection of its own, which does not, is then asked for it.
 */
export async function exactly(driver: Driver, words: readonly Word[],
  reply: unknown): Promise<Fields> {
  const found = new Fields(reply);
  if (!found.isRounded('epoch') && !found.isRounded('token')) return found;
  const own = await driver.open();
  try {
    const again = new Fields(await own.send(words));
    const whole = found.with('epoch', again.text('epoch'));
    return found.isRounded('token') ? whole.with('token', again.text('token')) : whole;
  } finally {
    own.close();
  }
}

/** Releases the claim, if it was granted. */
export async function giveBack(claim: Named, found: Fields): Promise<void> {
  const epoch = found.integer('epoch');
  if (epoch === 0n) return;
  await insist(claim.driver,
    ['SEMEL.RELEASE', claim.namespace, grantedKey(claim, found), String(epoch)], tidyUpTime);
}

/** A pause that does not keep the process alive. */
function idle(time: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, time).unref());
}

/** Whether the key is held, perhaps by this claim. What is free is not claimed to give it back. */
async function isHeld({ driver, namespace, key, permit }: Named): Promise<boolean> {
  if (permit) return true; // one that is free is taken for a moment
  try {
    return new Fields(await driver.send(['SEMEL.GETCLAIM', namespace, key])).text('state') === 'held';
  } catch (error) {
    if (isAnswer(error)) return true; // without the right to look
    throw error;
  }
}

/**
 * Gives back what a claim may have been granted whose reply did not come. With its id it is granted
 * again. Goes on until the node answers, or its lease would have ended. Never rejects.
 */
export async function reclaim(claim: Named, words: readonly Word[], lease: number): Promise<void> {
  if (running >= atOnceMax) return;
  ++running;
  const end = performance.now() + Math.min(lease, longest);
  for (let delay = 20; performance.now() < end; delay = Math.min(2 * delay, 1000)) {
    try {
      if (await isHeld(claim)) {
        const reply = await claim.driver.send(words);
        await giveBack(claim, await exactly(claim.driver, words, reply));
      }
      break;
    } catch (error) {
      if (isAnswer(error)) break;
    }
    await idle(delay);
  }
  --running;
}

/**
 * Whether the node has had none of the calls that ended so. `losses`: of the driver, before them; it may
 * have repeated one by itself.
 */
export function isRefused(error: unknown, driver: Driver, losses: number | undefined): boolean {
  return error instanceof UnavailableError && !error.uncertain
    && losses !== undefined && driver.losses?.() === losses;
}

/**
 * Asks once, however often that takes. What is granted when nobody waits for it any more is given back,
 * and so is the place in front of others.
 */
export async function ask(asking: Asking): Promise<Fields> {
  const { driver, words, left, patience, signal } = asking;
  const losses = driver.losses?.();
  const again = (): void => withdraw(asking);
  let isPending = false;
  const unawaited = (call: Promise<unknown>): void => {
    isPending = true;
    call.then((reply) => exactly(driver, words, reply)).then((found) => {
      if (left !== undefined && found.outcome === 'in_flight') return again();
      return giveBack(asking, found);
    }).catch(again);
  };
  try {
    const { reply } = await insist(driver, words, patience, signal, unawaited);
    return await exactly(driver, words, reply);
  } catch (error) {
    // An earlier call may have made him next.
    const isNothing = left === undefined && isRefused(error, driver, losses);
    if (!isPending && !isNothing && (signal?.aborted || !isAnswer(error))) again();
    throw error;
  }
}

/** Gives back, in the background, what a caller who has gone may have. */
export function withdraw(asking: Asking): void {
  void reclaim(asking, asking.left ?? asking.words, asking.lease);
}
