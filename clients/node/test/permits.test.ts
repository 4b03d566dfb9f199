import assert from 'node:assert/strict';
import test from 'node:test';
import { Claims, InFlightError, KeyError, LeaseLostError, OptionError } from '../src/index.js';
import { Node, kinds, skip, until } from './node.js';

const policy = { as: 'lock' } as const;

for (const kind of kinds) {
  test(`${kind}: a semaphore has as many holders as permits`, { skip }, async (t) => {
    const node = await Node.start(t);
    const seats = new Claims(await node.client(kind), 'seats', { policy });
    const first = await seats.tryPermit('k', 2);
    const second = await seats.permit('k', 2);
    assert.deepEqual([first.slot, second.slot], [0, 1]);
    await assert.rejects(seats.tryPermit('k', 2), InFlightError);
    await assert.rejects(seats.permit('k', 2, { wait: 20 }), InFlightError);
    const { token } = first;
    await first.release();
    await first.release();
    await assert.rejects(seats.tryPermit('k', 1), InFlightError); // one is held
    const next = await seats.tryPermit('k', 2);
    assert.equal(next.slot, 0);
    assert.ok(next.token > token);
    const third = await seats.tryPermit('k', 3);
    for (const each of [second, next, third]) await each.release();
    const binary = await seats.tryPermit(Buffer.from([0, 255, 10]), 1);
    await binary.release();
  });
}

test('permits: what is wrong, lost or left', { skip }, async (t) => {
  const node = await Node.start(t);
  const client = await node.client('ioredis, RESP3');
  const seats = new Claims(client, 'seats', { policy });
  for (const permits of [0, 1025, 1.5, NaN]) {
    await assert.rejects(seats.tryPermit('k', permits), OptionError);
  }
  await assert.rejects(seats.tryPermit('', 1), KeyError);
  const held = await seats.tryPermit('k', 1, { lease: 300 });
  await seats.driver.send(['SEMEL.FORGET', 'seats', '{k}#0']);
  await until('the loss is noticed', () => held.isLost);
  await assert.rejects(held.release(), LeaseLostError);

  const other = await seats.tryPermit('k', 1);
  const leaves = new AbortController();
  const waits = seats.permit('k', 1, { signal: leaves.signal });
  leaves.abort(new Error('left'));
  await assert.rejects(waits, /left/);
  const gets = seats.permit('k', 1);
  await other.release();
  await (await gets).release();
  await until('nobody has a permit', async () => {
    const found = await seats.driver.send(['SEMEL.PERMITS', 'seats', 'k']);
    return Array.isArray(found) && found.length === 0;
  });
});
