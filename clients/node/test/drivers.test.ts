// Each option of the drivers is kept, or refused by name when the object is made.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import * as semel from '../src/index.js';
import { Claims, Tokens, type AnyClient } from '../src/index.js';
import { expected, never, Node, skip, until } from './node.js';

const strays: unknown[] = [];
process.on('unhandledRejection', (error) => strays.push(error));
process.on('uncaughtExceptionMonitor', (error) => strays.push(error));

type Options = Record<string, unknown>;

const ioredis: Options[] = [{}, { enableAutoPipelining: true },
  { enableAutoPipelining: true, autoPipeliningIgnoredCommands: ['ping'] },
  { lazyConnect: true }, { lazyConnect: true, enableAutoPipelining: true },
  { enableOfflineQueue: false }, { enableReadyCheck: false }, { commandTimeout: 5000 },
  { maxRetriesPerRequest: null }, { maxRetriesPerRequest: 0 }, { stringNumbers: true },
  { autoResendUnfulfilledCommands: false }, { showFriendlyErrorStack: true }, { db: 0 },
  { connectionName: 'semel' }, { socketTimeout: 60_000 }, { blockingTimeout: 60_000 },
  { reconnectOnError: () => 2 }, { replyMapping: 'resp3' }, { replyMapping: 'legacy' },
  { noDelay: false }, { keyPrefix: '' }, { disableClientInfo: true }, { readOnly: false },
  { autoResubscribe: false }, { keepAlive: 1000 }];

const nodeRedis: Options[] = [{}, { commandOptions: { timeout: 5000 } },
  { commandOptions: { asap: true } }, { commandOptions: { typeMapping: { 36: Buffer, 43: Buffer } } },
  { commandOptions: { typeMapping: { 58: Number, 37: Array } } }, { disableOfflineQueue: true },
  { commandsQueueMaxLength: 1000 }, { name: 'semel' }, { pingInterval: 1000 }, { database: 0 },
  { disableClientInfo: true }, { keyPrefix: '' }, { readonly: false }];

/** All calls of the package, with a key of bytes. */
async function uses(client: AnyClient, n: Node, name: string): Promise<void> {
  const orders = new Claims(client, name, { policy: { as: 'call' } });
  const key = Buffer.from([0, 255, 13, 10, 36]);
  assert.equal((await orders.once(key, () => 'crème')).value, 'crème');
  assert.deepEqual((await orders.once(key, never)).replayed, true);
  await Promise.all(Array.from({ length: 8 }, (_, i) => orders.once(`many ${i}`, () => i)));
  const [begun, finish] = [expected(), expected<string>()];
  const running = orders.once('k', async () => {
    begun.fulfil();
    return finish.promise;
  });
  await begun.promise;
  const waiting = orders.once('k', never, { wait: Infinity });
  await until('it waits', async () => await n.waiters() === 1);
  finish.fulfil('paid');
  assert.equal((await waiting).value, 'paid');
  await running;
  const raw = { codec: semel.bytes };
  await orders.once('raw', () => Buffer.from([0, 255]), raw);
  assert.deepEqual((await orders.once('raw', () => never() as never, raw)).value,
    Buffer.from([0, 255]));
  const lock = await orders.lock('lock');
  await assert.rejects(orders.tryLock('lock'), semel.InFlightError);
  await lock.unlock();
  assert.equal((await orders.consumeOnce('m', () => {})).verdict, 'ack');
  assert.equal((await orders.consumeOnce('m', never)).duplicate, true);
  const tokens = new Tokens(client, `${name}-t`);
  const token = await tokens.issue(60_000);
  await tokens.consume(token);
  await assert.rejects(tokens.consume(token), semel.TokenUsedError);
}

function shown(options: Options): string {
  return JSON.stringify(options, (_, value: unknown) =>
    (typeof value === 'function' ? value.name || 'function' : value));
}

test('once-again-25: options of ioredis are kept', { skip }, async (t) => {
  const n = await Node.start(t);
  let i = 0;
  for (const protocol of [2, 3] as const) {
    for (const options of ioredis) {
      if (protocol === 2 && options['replyMapping'] === 'resp3') continue; // ioredis refuses it
      await t.test(`RESP${protocol} ${shown(options)}`, async () => {
        const client = new Redis({ port: n.port, protocol, ...options as object });
        client.on('error', () => {});
        try {
          await uses(client, n, `i${++i}`);
        } finally {
          client.disconnect();
        }
      });
    }
  }
});

test('once-again-25: options of node-redis are kept', { skip }, async (t) => {
  const n = await Node.start(t);
  let i = 0;
  for (const RESP of [2, 3] as const) {
    for (const options of nodeRedis) {
      await t.test(`RESP${RESP} ${shown(options)}`, async () => {
        const client = createClient({ socket: { port: n.port }, RESP, ...options });
        client.on('error', () => {});
        await client.connect();
        try {
          await uses(client as unknown as AnyClient, n, `n${++i}`);
        } finally {
          client.destroy();
        }
      });
    }
    await t.test(`RESP${RESP} clients that are made of clients`, async () => {
      const client = createClient({ socket: { port: n.port }, RESP });
      client.on('error', () => {});
      await client.connect();
      const pool = createClientPool({ socket: { port: n.port }, RESP }, { minimum: 1, maximum: 2 });
      pool.on('error', () => {});
      await pool.connect();
      const own = client.createPool({ minimum: 1, maximum: 1 });
      own.on('error', () => {});
      await own.connect();
      try {
        for (const made of [client.withTypeMapping({ 36: Buffer }), client.asap(),
          client.withCommandOptions({ typeMapping: { 58: Number } }), pool,
          pool.withTypeMapping({ 36: Buffer }), own]) {
          await uses(made as unknown as AnyClient, n, `n${++i}`);
        }
      } finally {
        own.destroy();
        pool.destroy();
        client.destroy();
      }
    });
  }
});

test('once-again-25: what cannot be kept is refused by name', () => {
  const quiet = <T extends { on(event: 'error', listener: () => void): unknown }>(client: T): T => {
    client.on('error', () => {});
    return client;
  };
  const redis = quiet(new Redis({ lazyConnect: true }));
  const client = quiet(createClient());
  const { signal } = new AbortController();
  const refused: [string, object][] = [
    ['keyPrefix', new Redis({ lazyConnect: true, keyPrefix: 'app:' })],
    ['keyPrefix', new Cluster([{ port: 1 }], { lazyConnect: true, keyPrefix: 'app:' })],
    ['keyPrefix', new Cluster([{ port: 1 }],
      { lazyConnect: true, redisOptions: { keyPrefix: 'app:' } as object })],
    ['keyPrefix', createClient({ keyPrefix: 'app:' })],
    ['keyPrefix', createClientPool({ keyPrefix: 'app:' })],
    ['keyPrefix', createCluster({ rootNodes: [{ socket: { port: 1 } }], keyPrefix: 'app:' })],
    ['monitor', new Redis({ lazyConnect: true, monitor: true })],
    ['sentinels', new Redis({ lazyConnect: true, sentinels: [{ host: '127.0.0.1', port: 1 }],
      name: 'x' })],
    ['commandQueue', new Redis({ lazyConnect: true, commandQueue: false })],
    ['pipeline', redis.pipeline()], ['pipeline', redis.multi()], ['multi', client.multi()],
    ['legacy', client.legacy()], ['abortSignal', client.withAbortSignal(signal)],
    ['abortSignal', createClient({ commandOptions: { abortSignal: signal } })],
    ['abortSignal', createClientPool().withAbortSignal(signal)],
    ['createSentinel', quiet(createSentinel({ name: 'x',
      sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }))],
    ['Driver', {}], ['Driver', new Map()],
  ];
  for (const [name, made] of refused) {
    const named = new RegExp(name);
    assert.throws(() => new Claims(made as AnyClient, 'x'), named, name);
    assert.throws(() => new Tokens(made as AnyClient, 'x'), named, name);
  }
  for (const none of [undefined, null, 'redis://'] as unknown as AnyClient[]) {
    assert.throws(() => new Claims(none, 'x'), TypeError);
  }
});

test('once-again-25: a client that has not connected runs nothing, then works', { skip },
  async (t) => {
    const n = await Node.start(t);
    const client = createClient({ socket: { port: n.port } });
    client.on('error', () => {});
    const orders = new Claims(client as unknown as AnyClient, 'orders', { patience: 50 });
    await assert.rejects(orders.once('k', never), semel.UnavailableError);
    await client.connect();
    assert.equal((await orders.once('k', () => 'ran', { patience: 5000 })).value, 'ran');
    client.destroy();
  });

test('nothing of all this was an unhandled rejection', () => {
  assert.deepEqual(strays, []);
});
