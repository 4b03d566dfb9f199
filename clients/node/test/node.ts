// A node of its own for each test, whose clock the test controls, and clients of each kind.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Redis, Cluster } from 'ioredis';
import { createClient, createCluster } from 'redis';
import type { AnyClient } from '../src/index.js';
import { Proxy } from './proxy.js';

const patience = 20_000; // of these tests; nothing takes as long

export function program(): string | undefined {
  if (process.env['SEMEL_TEST_PROGRAM']) return process.env['SEMEL_TEST_PROGRAM'];
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  return ['release', 'dev'].map((kind) => join(root, 'build', kind, 'tools/semel/semel'))
    .find((path) => existsSync(path));
}

export const skip = program() === undefined
  && 'no program semel: build it, or name it in SEMEL_TEST_PROGRAM';

export async function until(what: string, so: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + patience; !await so();) {
    assert.ok(Date.now() < end, `not so within ${patience} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export const kinds = ['ioredis, RESP2', 'ioredis, RESP3', 'node-redis, RESP2',
  'node-redis, RESP3'] as const;
export type Kind = (typeof kinds)[number];

const running = new Set<ChildProcess>();
after(() => { for (const each of running) each.kill('SIGKILL'); });

/** How many timers and sockets are open. */
function handles(): number {
  return process.getActiveResourcesInfo()
    .filter((each) => each === 'Timeout' || each.startsWith('TCP')).length;
}

export class Node {
  port = 0;
  #process: ChildProcess | undefined;
  readonly #folder = mkdtempSync(join(tmpdir(), 'semel-'));
  readonly #closers: (() => unknown)[] = [];
  #control!: Redis;

  constructor(readonly options: readonly string[]) {}

  /** Also checks that the test leaves no timer and no socket behind. */
  static async start(t: TestContext, ...options: string[]): Promise<Node> {
    const before = handles();
    const node = new Node(options);
    await node.run();
    t.after(async () => {
      for (const each of node.#closers) await each();
      await node.kill();
      rmSync(node.#folder, { recursive: true });
      await until('timers and sockets are gone', () => handles() <= before);
    });
    return node;
  }

  async run(): Promise<void> {
    const ready = join(this.#folder, 'ready');
    rmSync(ready, { force: true });
    const started = spawn(program() ?? '', ['node', '--port', String(this.port), '--ready-file', ready,
      '--test-clock', '--exit-with-parent', 'yes',
      ...this.options.map((each) => each.replace('FOLDER', this.#folder))], { stdio: 'ignore' });
    running.add(started);
    started.unref();
    this.#process = started;
    await until('the node starts', () => {
      assert.equal(started.exitCode, null, 'the node has ended');
      const text = existsSync(ready) ? readFileSync(ready, 'utf8') : '';
      const port = /^port=(\d+)$/m.exec(text);
      this.port = Number(port?.[1] ?? this.port);
      return port !== null;
    });
    this.#control = new Redis({ port: this.port, protocol: 2 });
    this.#control.on('error', () => {});
  }

  async kill(): Promise<void> {
    this.#control.disconnect();
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    running.delete(process);
    const exit = once(process, 'exit');
    process.ref();
    process.kill('SIGKILL');
    await exit;
  }

  /** Without an answer until goOn(). */
  async stop(): Promise<void> {
    const process = this.#process;
    process?.kill('SIGSTOP');
    await until('the node stands still',
      () => readFileSync(`/proc/${process?.pid ?? 0}/stat`, 'utf8').includes(') T '));
  }

  goOn(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Closed when the test ends. */
  async client(kind: Kind, port = this.port): Promise<AnyClient> {
    if (kind.startsWith('ioredis')) {
      const client = new Redis({ port, protocol: kind.endsWith('3') ? 3 : 2,
        retryStrategy: () => 20 });
      client.on('error', () => {});
      this.#closers.push(() => client.disconnect());
      return client;
    }
    const client = createClient({ socket: { port, reconnectStrategy: 20 },
      RESP: kind.endsWith('3') ? 3 : 2 });
    client.on('error', () => {});
    await client.connect();
    this.#closers.push(() => client.destroy());
    return client;
  }

  /** Called when the test ends, before the node is killed. */
  onEnd(closer: () => unknown): void {
    this.#closers.push(closer);
  }

  call(...words: string[]): Promise<unknown> {
    return this.#control.call(words[0] as string, words.slice(1));
  }

  /** Another connection, closed when the test ends. */
  second(): Redis {
    const client = new Redis({ port: this.port, protocol: 2, retryStrategy: () => null });
    client.on('error', () => {});
    this.#closers.push(() => client.disconnect());
    return client;
  }

  advance(milliseconds: number): Promise<unknown> {
    return this.call('SEMEL.CLOCK', 'ADVANCE', String(milliseconds));
  }

  async state(namespace: string, key: string): Promise<string> {
    return (await this.call('SEMEL.GETCLAIM', namespace, key) as string[])[1] as string;
  }

  async #info(section: string, pattern: RegExp): Promise<number> {
    return Number(pattern.exec(await this.call('INFO', section) as string)?.[1] ?? 0);
  }

  waiters(): Promise<number> {
    return this.#info('clients', /blocked_clients:(\d+)/);
  }

  renewals(): Promise<number> {
    return this.#info('commandstats', /cmdstat_semel\.renew:calls=(\d+)/);
  }

  async proxy(): Promise<Proxy> {
    const proxy = new Proxy(this.port);
    await proxy.listen();
    this.#closers.push(() => proxy.close());
    return proxy;
  }
}

export function never(): string {
  assert.fail('it ran');
}

/** A promise, with the function that fulfils it. */
export function expected<T = void>(): { promise: Promise<T>; fulfil: (value: T) => void } {
  let fulfil!: (value: T) => void;
  const promise = new Promise<T>((resolve) => { fulfil = resolve; });
  return { promise, fulfil };
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Clients of a group, if the runner has one, with each option that says where calls go. */
export function clusters(): { name: string; open: () => Promise<[AnyClient, () => unknown]> }[] {
  const ports = (process.env['SEMEL_TEST_NODES'] ?? '').split(' ').filter(Boolean).map(Number);
  if (ports.length === 0) return [];
  const ioredis = [{}, { enableAutoPipelining: true }, { scaleReads: 'all' }, { scaleReads: 'slave' },
    { redisOptions: { protocol: 2, stringNumbers: true } }];
  const nodeRedis = [{}, { useReplicas: true }, { minimizeConnections: true }, { RESP: 2 },
    { defaults: { disableOfflineQueue: true } }];
  return [...ioredis.map((options) => ({
    name: `ioredis, cluster ${JSON.stringify(options)}`,
    async open(): Promise<[AnyClient, () => unknown]> {
      const client = new Cluster(ports.map((port) => ({ host: '127.0.0.1', port })),
        { clusterRetryStrategy: () => 20, ...options as object });
      client.on('error', () => {});
      await client.ping();
      return [client, () => client.disconnect()];
    },
  })), ...nodeRedis.map((options) => ({
    name: `node-redis, cluster ${JSON.stringify(options)}`,
    async open(): Promise<[AnyClient, () => unknown]> {
      const client = createCluster({ ...options as object,
        rootNodes: ports.map((port) => ({ socket: { host: '127.0.0.1', port } })) });
      client.on('error', () => {});
      await client.connect();
      return [client as unknown as AnyClient, () => client.destroy()];
    },
  }))];
}
