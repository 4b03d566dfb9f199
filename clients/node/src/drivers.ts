// The drivers, ioredis and node-redis, single and cluster, as the little that is needed of them.
// Only types are described here: neither package is imported, so that neither is required.

export type Word = string | Buffer;

/** A connection of its own. */
export interface Connection {
  send(words: readonly Word[]): Promise<unknown>;
  /** Ends it; what waits for a reply is rejected. */
  close(): void;
}

/** What this package needs of a client. Bulk strings of replies are Buffers. */
export interface Driver {
  send(words: readonly Word[]): Promise<unknown>;
  /** For a command that blocks: to the node that takes writes, with the client's options. */
  open(): Promise<Connection>;
  /**
   * How often it has lost a connection, after which it repeats commands by itself; undefined if it
   * does that and cannot tell.
   */
  losses?(): number | undefined;
}

/** The part of ioredis' Redis. */
export interface Ioredis {
  callBuffer(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
  duplicate(override?: object): Ioredis;
  connect(): Promise<void>;
  disconnect(): void;
  on(event: 'error' | 'close', listener: (error: Error) => void): unknown;
}

/** The part of ioredis' Cluster. */
export interface IoredisCluster {
  callBuffer(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
  nodes(role: 'master'): Ioredis[];
}

/** The part of node-redis' client. */
export interface NodeRedis {
  sendCommand(words: readonly Word[], options?: object): Promise<unknown>;
  duplicate(override?: object): NodeRedis;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  readonly options?: { socket?: object } | undefined;
}

/** The part of node-redis' pool of clients. */
export interface NodeRedisPool {
  sendCommand(words: readonly Word[], options?: object): Promise<unknown>;
  execute(fn: (client: never) => unknown): Promise<unknown>;
  connect(): Promise<unknown>;
}

/** The part of node-redis' cluster. */
export interface NodeRedisCluster {
  sendCommand(key: Word | undefined, isReadonly: boolean, words: readonly Word[],
    options?: object): Promise<unknown>;
  readonly masters: readonly unknown[];
  nodeClient(node: never): unknown;
}

export type AnyClient = Ioredis | IoredisCluster | NodeRedis | NodeRedisPool | NodeRedisCluster
  | Driver;

function has<K extends string>(client: object, name: K): client is Record<K, unknown> {
  return name in client && (client as Record<string, unknown>)[name] !== undefined;
}

/**
 * The driver for a client of ioredis or node-redis; a Driver is taken as it is. Throws a TypeError
 * that names the option for a client that cannot be used.
 */
export function driverOf(client: AnyClient): Driver {
  if (typeof client !== 'object' || client === null) throw new TypeError('there is no client');
  refuseOptions(client);
  if (has(client, 'callBuffer')) return ofIoredis(client as Ioredis | IoredisCluster);
  if (has(client, 'masters')) return ofNodeRedisCluster(client as NodeRedisCluster);
  if (has(client, 'execute') && has(client, 'sendCommand')) {
    return ofNodeRedisPool(client as NodeRedisPool);
  }
  if (has(client, 'sendCommand')) return ofNodeRedis(client as NodeRedis);
  if (has(client, 'send') && has(client, 'open')) return client as Driver;
  throw new TypeError('neither a client of ioredis or node-redis, nor a Driver');
}

type Loose = Record<string, unknown> | undefined | null;

/** Refuses what would be taken and then not be kept. */
function refuseOptions(client: object): void {
  const of = client as { [name: string]: Loose };
  const options = [of['options'], of['options']?.['redisOptions'] as Loose, of['_options'],
    { keyPrefix: of['_keyPrefix'] as unknown }];
  const commands = [of['_commandOptions'], of['options']?.['commandOptions'] as Loose,
    of['_options']?.['commandOptions'] as Loose];
  const given = (name: string): boolean => options.some((each) => Boolean(each?.[name]));
  const refuse = (name: string, why: string): never => {
    throw new TypeError(`${name}: ${why}`);
  };
  if (given('keyPrefix')) {
    refuse('keyPrefix', 'the keys of a namespace have no prefix; give a client without one');
  }
  if (given('monitor')) refuse('monitor', 'such a client sends no commands');
  if (given('sentinels')) refuse('sentinels', 'a Semel node has none; name the nodes of a cluster');
  if (options.some((each) => each?.['commandQueue'] === false)) {
    refuse('commandQueue', 'without it no reply is read');
  }
  if (commands.some((each) => Boolean(each?.['abortSignal']))) {
    refuse('abortSignal', 'it would end calls of owners too; give the signal to the calls');
  }
  const { isPipeline } = client as { isPipeline?: unknown };
  if (isPipeline === true || has(client, 'addCommand')) {
    refuse('pipeline() or multi()', 'it sends nothing by itself; give the client');
  }
  if (has(client, 'sendCommand') && has(client, 'acquire') && has(client, 'use')) {
    refuse('createSentinel', 'a Semel node has no sentinels; use createClient or createCluster');
  }
  if (has(client, 'sendCommand') && !['duplicate', 'execute', 'masters', 'callBuffer']
    .some((name) => has(client, name))) {
    refuse('legacy()', 'it gives no promises; give the client itself');
  }
}

const silent = (): void => {}; // the calls fail as well

/**
 * With enableAutoPipelining callBuffer() of ioredis throws outside of its promise. Called on this, it
 * makes the same command and sends it by itself.
 */
function unpipelined(client: Ioredis | IoredisCluster): Pick<Ioredis, 'callBuffer'> {
  const { options, sendCommand } = client as unknown as {
    options?: Loose; sendCommand?: (command: unknown) => unknown;
  };
  if (options?.['enableAutoPipelining'] !== true || sendCommand === undefined) return client;
  return {
    callBuffer: client.callBuffer,
    options: { ...options, enableAutoPipelining: false },
    sendCommand: (command: unknown) => sendCommand.call(client, command),
  } as Pick<Ioredis, 'callBuffer'>;
}

function call(client: Ioredis | IoredisCluster, words: readonly Word[]): Promise<unknown> {
  return unpipelined(client).callBuffer(String(words[0]), words.slice(1) as (string | Buffer)[]);
}

const lossesOf = new WeakMap<object, { count: number }>();

/** Counts the connections that a client loses, however many drivers it has. */
function countedLosses(client: Ioredis): { count: number } {
  const known = lossesOf.get(client);
  if (known !== undefined) return known;
  const losses = { count: 0 };
  lossesOf.set(client, losses);
  client.on('close', () => { ++losses.count; });
  return losses;
}

function ofIoredis(client: Ioredis | IoredisCluster): Driver {
  const losses = 'nodes' in client ? undefined : countedLosses(client);
  return {
    losses: () => losses?.count,
    send: (words) => call(client, words),
    async open() {
      const node = 'nodes' in client ? client.nodes('master')[0] : client;
      if (node === undefined) throw new Error('the cluster has no master that is known');
      const own = node.duplicate({
        lazyConnect: true,
        commandTimeout: undefined,
        socketTimeout: undefined,
        blockingTimeout: undefined,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false,
        retryStrategy: () => null,
        reconnectOnError: null,
        enableAutoPipelining: false,
        keepAlive: 10_000,
        stringNumbers: true,
      });
      own.on('error', silent);
      try {
        await own.connect();
      } catch (error) {
        own.disconnect();
        throw error;
      }
      return { send: (words) => call(own, words), close: () => own.disconnect() };
    },
  };
}

// RESP_TYPES of node-redis: integers become text, because an epoch may be beyond 2^53, and bulk
// strings Buffers.
const typeMapping = { 58: String, 36: Buffer, 40: String };

async function connected(client: NodeRedis): Promise<Connection> {
  const own = client.duplicate({
    socket: { ...client.options?.socket, reconnectStrategy: false, socketTimeout: undefined },
    commandOptions: {},
    clientSideCache: undefined,
    pingInterval: undefined,
  });
  own.on('error', silent);
  try {
    await own.connect();
  } catch (error) {
    close(own);
    throw error;
  }
  return { send: (words) => own.sendCommand(words, { typeMapping }), close: () => close(own) };
}

function close(client: NodeRedis): void {
  try {
    client.destroy();
  } catch {
    // It is closed.
  }
}

function ofNodeRedis(client: NodeRedis): Driver {
  return {
    losses: () => 0, // it repeats nothing
    send: (words) => client.sendCommand(words, { typeMapping }),
    open: () => connected(client),
  };
}

function ofNodeRedisPool(pool: NodeRedisPool): Driver {
  return {
    losses: () => 0,
    send: (words) => pool.sendCommand(words, { typeMapping }),
    async open() {
      return connected(await pool.execute((client: NodeRedis) => Promise.resolve(client)) as NodeRedis);
    },
  };
}

function ofNodeRedisCluster(cluster: NodeRedisCluster): Driver {
  return {
    losses: () => 0, // it repeats what was redirected, and nothing else
    send(words) {
      // NAMESPACE has no key, and every node knows who takes it. The others have a namespace before
      // their key, but for LIMIT.
      const key = words.length > 2 ? words[words[0] === 'SEMEL.LIMIT' ? 1 : 2] : undefined;
      return cluster.sendCommand(key, false, words, { typeMapping });
    },
    async open() {
      const master = cluster.masters[0];
      if (master === undefined) throw new Error('the cluster has no master that is known');
      return connected(await cluster.nodeClient(master as never) as NodeRedis);
    },
  };
}
