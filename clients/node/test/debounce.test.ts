import assert from 'node:assert/strict';
import test from 'node:test';
import { driverOf, type Driver } from '../src/drivers.js';
import { BusyError, Claims, KeyError, LazyError, LeaseLostError, OptionError, UnavailableError,
  UnrecordedError, type AnyClient } from '../src/index.js';
import { Node, expected, kinds, never, skip, until } from './node.js';

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

/** A namespace with a payload of 'doc' that is due. */
async function due(node: Node, client: AnyClient): Promise<Claims> {
  const edits = new Claims(client, 'edits', { policy });
  await edits.debounce('doc', 'text', { quiet: 1000, keep: 3_600_000 });
  await node.advance(1000);
  return edits;
}

const isFree = (node: Node): Promise<void> =>
  until('the run is free', async () => await node.state('edits', '{doc}#run') === 'absent');

for (const kind of kinds) {
  test(`${kind}: a run whose reply is lost is given back`, { skip }, async (t) => {
    const node = await Node.start(t);
    const proxy = await node.proxy();
    const edits = await due(node, await node.client(kind, proxy.port));
    const again = await due(node, await node.client(kind));
    proxy.cut('SEMEL.DEBOUNCERUN', 1); // and then the node does not answer
    proxy.rule('SEMEL.DEBOUNCERUN', '-BUSY a script runs', 1_000_000);
    await assert.rejects(edits.runDebounced('doc', never, { patience: 300 }), UnavailableError);
    assert.equal(await node.state('edits', '{doc}#run'), 'held');
    proxy.clear();
    await isFree(node);

    proxy.rule('SEMEL.DEBOUNCERUN', 'hold'); // its caller leaves meanwhile
    const leaves = new AbortController();
    const left = edits.runDebounced('doc', never, { signal: leaves.signal });
    left.catch(() => {});
    await until('it is granted', async () => await node.state('edits', '{doc}#run') === 'held');
    leaves.abort(new Error('left'));
    await assert.rejects(left, /left/);
    proxy.release();
    await isFree(node);

    proxy.cut('SEMEL.DEBOUNCERUN', 1); // he leaves while the call is repeated
    proxy.rule('SEMEL.DEBOUNCERUN', '-BUSY a script runs', 1_000_000);
    const repeats = new AbortController();
    const repeated = edits.runDebounced('doc', never, { signal: repeats.signal });
    repeated.catch(() => {});
    await until('it is repeated', () => proxy.done > 8);
    repeats.abort(new Error('left'));
    await assert.rejects(repeated, /left/);
    proxy.clear();
    await isFree(node);
    assert.equal((await again.runDebounced('doc', String)).value, 'text');
  });

  test(`${kind}: the reply to the end of a run is lost`, { skip }, async (t) => {
    const node = await Node.start(t);
    const proxy = await node.proxy();
    const client = await node.client(kind, proxy.port);
    const edits = await due(node, client);
    proxy.cut('SEMEL.DEBOUNCEEND', 1);
    assert.deepEqual(await edits.runDebounced('doc', String),
      { ran: true, running: false, due: 0, value: 'text' });
    await due(node, client);
    proxy.rule('SEMEL.DEBOUNCEEND', '-BUSY a script runs', 1_000_000);
    await assert.rejects(edits.runDebounced('doc', String, { patience: 100 }),
      (error) => error instanceof UnrecordedError && error.value === 'text'
        && error.cause instanceof UnavailableError);
  });
}

test('debounce: an epoch that the driver rounds is asked for again', { skip }, async (t) => {
  const node = await Node.start(t);
  const real = driverOf(await node.client('ioredis, RESP2'));
  let comes = Promise.resolve();
  const rounding: Driver = {
    ...real,
    async send(words) {
      const reply = await real.send(words);
      if (words[0] !== 'SEMEL.DEBOUNCERUN' || !Array.isArray(reply)) return reply;
      await comes;
      return reply.map((each, i) => (String(reply[i - 1]) === 'epoch' ? 2 ** 53 + 2 : each));
    },
  };
  const edits = await due(node, rounding);
  const { promise, fulfil } = expected();
  comes = promise;
  await assert.rejects(edits.runDebounced('doc', never, { patience: 50 }), UnavailableError);
  assert.equal(await node.state('edits', '{doc}#run'), 'held');
  fulfil(); // the late reply has the epoch rounded
  await isFree(node);
  const found = await edits.runDebounced('doc', (payload, { epoch }) => `${payload} ${epoch}`);
  assert.match(found.value ?? '', /^text \d{1,3}$/);
});

test('debounce: what is lazy runs nothing, and the payload stays', { skip }, async (t) => {
  const node = await Node.start(t);
  const edits = await due(node, await node.client('ioredis, RESP3'));
  await assert.rejects(edits.runDebounced('doc', function* () { yield 1; }), LazyError);
  await assert.rejects(edits.runDebounced('doc', undefined as never), TypeError);
  await assert.rejects(edits.runDebounced('doc', never, { lease: 0 }), OptionError);
  assert.equal(await node.state('edits', '{doc}#run'), 'absent');
  await assert.rejects(edits.runDebounced('doc', () => [1].values()), LazyError);
  await node.advance(1000); // after a quiet time it comes again
  assert.equal((await edits.runDebounced('doc', String)).value, 'text');
});

test('debounce: a run that is lost, and that throws', { skip }, async (t) => {
  const node = await Node.start(t);
  const edits = await due(node, await node.client('ioredis, RESP3'));
  await assert.rejects(edits.runDebounced('doc', async () => {
    await node.call('SEMEL.FORGET', 'edits', '{doc}#run');
    throw new RangeError('its own');
  }), (error) => error instanceof LeaseLostError && error.cause instanceof RangeError);
});

test('debounce: without memory nothing runs, also where the namespace fails open', { skip },
  async (t) => {
    const node = await Node.start(t);
    const client = await node.client('ioredis, RESP3');
    const edits = new Claims(client, 'edits', { policy: { ...policy, failOpen: true }, patience: 300 });
    await edits.debounce('doc', 'text', { quiet: 1000 });
    await node.advance(1000);
    await node.call('CONFIG', 'SET', 'maxmemory', '8mb'); // less than it has already
    await assert.rejects(edits.runDebounced('doc', never), BusyError);
  });
