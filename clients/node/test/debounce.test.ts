import assert from 'node:assert/strict';
import test from 'node:test';
import { Claims, KeyError, LeaseLostError, OptionError } from '../src/index.js';
import { Node, kinds, skip } from './node.js';

const policy = { as: 'lock' } as const;
const when = { quiet: 100_000, maxWait: 150_000 };

for (const kind of kinds) {
  test(`${kind}: a run comes after the last call`, { skip }, async (t) => {
    const node = await Node.start(t);
    const edits = new Claims(await node.client(kind), 'edits', { policy });
    const advance = (ms: number): Promise<unknown> =>
      edits.driver.send(['SEMEL.CLOCK', 'ADVANCE', String(ms)]);
    const ran: Buffer[] = [];
    const run = (): ReturnType<typeof edits.runDebounced<number>> =>
      edits.runDebounced('doc', (payload) => ran.push(payload));
    assert.deepEqual(await run(), { ran: false, running: false, due: 0 });
    assert.equal(await edits.debounce('doc', 'a', when), 100_000);
    await advance(60_000);
    const last = Buffer.from([0, 255, 10]);
    const due = await edits.debounce('doc', last, when);
    assert.ok(due > 80_000 && due <= 90_000);
    const early = await run();
    assert.ok(!early.ran && early.due <= due);
    await advance(due);
    await assert.rejects(edits.runDebounced('doc', async () => {
      assert.equal((await run()).running, true);
      throw new Error('failed');
    }), /failed/);
    assert.ok((await run()).due > 90_000); // it comes again after a quiet time
    await advance(100_000);
    assert.deepEqual(await run(), { ran: true, running: false, due: 0, value: 1 });
    assert.deepEqual(ran, [last]);
    assert.deepEqual(await run(), { ran: false, running: false, due: 0 });
  });
}

test('debounce: what is wrong, and a run that is lost', { skip }, async (t) => {
  const node = await Node.start(t);
  const edits = new Claims(await node.client('ioredis, RESP3'), 'edits', { policy });
  for (const each of [{ quiet: 0 }, { quiet: -1 }, { quiet: NaN }, { quiet: 1e12 },
    { quiet: 10, maxWait: 9 }, { quiet: 10, keep: 0 }, { quiet: 10, other: 1 }]) {
    await assert.rejects(edits.debounce('k', 'p', each), OptionError);
  }
  await assert.rejects(edits.debounce('', 'p', when), KeyError);
  await edits.debounce('k', '', { quiet: 1000 });
  await edits.driver.send(['SEMEL.CLOCK', 'ADVANCE', '1000']);
  await assert.rejects(edits.runDebounced('k', async (payload) => {
    assert.equal(payload.length, 0);
    await edits.driver.send(['SEMEL.FORGET', 'edits', '{k}#run']);
  }), LeaseLostError);
});
