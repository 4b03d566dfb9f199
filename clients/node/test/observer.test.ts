import assert from 'node:assert/strict';
import test from 'node:test';
import * as semel from '../src/index.js';
import { Claims, type Observed } from '../src/index.js';
import { Node, kinds, skip } from './node.js';

const paid = (): string => 'paid';

for (const kind of kinds) {
  test(`${kind}: an observer hears of calls that did not run`, { skip }, async (t) => {
    const node = await Node.start(t);
    const client = await node.client(kind);
    const heard: Observed[] = [];
    const words = (): string => heard.splice(0).map(({ event }) => event).join(' ');
    const observer = (seen: Observed): void => void heard.push(seen);
    const calls = new Claims(client, 'calls', { policy: { as: 'call' }, observer });
    await calls.once('k', paid, { operation: 'pay' });
    assert.equal(words(), ''); // it ran
    assert.equal((await calls.once('k', paid, { operation: 'pay' })).replayed, true);
    const [seen] = heard;
    assert.deepEqual([seen?.namespace, seen?.key, (seen?.took ?? -1) >= 0], ['calls', 'k', true]);
    assert.equal(words(), 'replayed');
    await assert.rejects(calls.once('k', paid, { operation: 'refund' }), semel.MismatchError);
    assert.equal(words(), 'mismatch');
    const fails = (): never => { throw new RangeError('its own'); };
    await assert.rejects(calls.once('f', fails, { onFailure: 'keep' }), RangeError);
    await assert.rejects(calls.once('d', fails, { onFailure: 'in-doubt' }), RangeError);
    assert.equal(words(), '');
    await assert.rejects(calls.once('f', paid), semel.KeptFailureError);
    await assert.rejects(calls.once('d', paid), semel.InDoubtError);
    assert.equal(words(), 'kept-failure in-doubt');
    await calls.once('outer', async () => {
      await assert.rejects(calls.once('outer', paid), semel.InFlightError);
      await assert.rejects(calls.once('outer', paid, { wait: 5 }), semel.InFlightError);
    });
    assert.equal(words(), 'rejected rejected'); // one of each call, however often it asked
    await assert.rejects(calls.once('', paid), semel.KeyError);
    await assert.rejects(calls.once('k', paid, { lease: 0 }), semel.OptionError);
    await assert.rejects(calls.once('k', paid, { signal: AbortSignal.abort(new Error('left')) }),
      /left/);
    assert.equal(words(), '');

    const mails = new Claims(client, 'mails', { policy: { as: 'message' }, observer });
    await mails.consumeOnce('m', () => {});
    assert.equal((await mails.consumeOnce('m', () => {})).duplicate, true);
    assert.equal(words(), 'replayed');
    const locks = new Claims(client, 'locks', { policy: { as: 'lock' }, observer });
    const lock = await locks.tryLock('k');
    await assert.rejects(locks.tryLock('k'), semel.InFlightError);
    const permit = await locks.tryPermit('k', 1);
    await assert.rejects(locks.permit('k', 1, { wait: 20 }), semel.InFlightError);
    assert.equal(words(), 'rejected rejected');
    await lock.unlock();
    await permit.release();
    const issued = new Claims(client, 'issued', { policy: { as: 'token' }, observer });
    await assert.rejects(issued.once('forged', paid), semel.NotIssuedError);
    assert.equal(words(), 'unknown-token');
    await node.kill();
    await assert.rejects(mails.once('n', paid, { patience: 50 }), semel.UnavailableError);
    assert.equal(words(), 'unreachable');
  });
}

test('observers: what they do is not what the call does', { skip }, async (t) => {
  const node = await Node.start(t);
  const client = await node.client('ioredis, RESP3');
  const unhandled: unknown[] = [];
  const note = (why: unknown): void => void unhandled.push(why);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));
  const own = new Error('the observer\'s own');
  const thenable = { get then(): never { throw own; } };
  const observers = [() => { throw own; }, async () => Promise.reject(own), () => thenable,
    () => ({ then: (_: unknown, no: (why: unknown) => void) => no(own) }), () => new Promise(() => {})];
  const plain = new Claims(client, 'calls', { policy: { as: 'call' } });
  await plain.once('k', paid, { operation: 'pay' });
  for (const observer of observers) {
    const found = await plain.once('k', paid, { observer, operation: 'pay' });
    assert.deepEqual([found.value, found.replayed], ['paid', true]);
    await assert.rejects(plain.once('k', paid, { observer, operation: 'other' }),
      semel.MismatchError);
  }
  await new Promise(setImmediate); // a rejection that nobody handles is told by then
  assert.deepEqual(unhandled, []);
  for (const wrong of [null, 1, 'f', {}, function* () { yield 1; }, async function* () { yield 1; }]) {
    assert.throws(() => new Claims(client, 'calls', { observer: wrong as never }),
      semel.OptionError);
  }

  // One that calls the very claims that call it, and one that closes the client.
  let inner: unknown;
  const nested = new Claims(client, 'calls', { observer: (): void => {
    inner ??= plain.once('k', paid, { operation: 'pay' });
    if ('disconnect' in client) void client.disconnect();
  } });
  assert.equal((await nested.once('k', paid, { operation: 'pay' })).value, 'paid');
  await (inner as Promise<unknown>).catch(() => {});
});
