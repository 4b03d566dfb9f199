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

/** The part of node-redis' cluster. */
export interface NodeRedisCluster {
  sendCommand(key: Word | undefined, isReadonly: boolean, words: readonly Word[],
    options?: object): Promise<unknown>;
  readonly masters: readonly unknown[];
  nodeClient(node: never): unknown;
}

export type AnyClient = Ioredis | IoredisCluster | NodeRedis | NodeRedisCluster | Driver;

function has<K extends string>(client: object, name: K): client is Record<K, unknown> {
  return name in client && (client as Record<string, unknown>)[name] !== undefined;
}

/** The driver for a client of ioredis or node-redis; a Driver is taken as it is. */
export function driverOf(client: AnyClient): Driver {
  if (has(client, 'callBuffer')) return ofIoredis(client as Ioredis | IoredisCluster);
  if (has(client, 'masters')) return ofNodeRedisCluster(client as NodeRedisCluster);
  if (has(client, 'sendCommand')) return ofNodeRedis(client as NodeRedis);
  if (has(client, 'send') && has(client, 'open')) return client as Driver;
  throw new TypeError('neither a client of ioredis or node-redis, nor a Driver');
}

const silent = (): void => {}; // the calls fail as well

function call(client: Ioredis | IoredisCluster, words: readonly Word[]): Promise<unknown> {
  return client.callBuffer(String(words[0]), words.slice(1) as (string | Buffer)[]);
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

function ofNodeRedisCluster(cluster: NodeRedisCluster): Driver {
  return {
    losses: () => 0, // it repeats what was redirected, and nothing else
    send(words) {
      // NAMESPACE has no key, and every node knows who takes it.
      const key = words.length > 2 ? words[2] : undefined;
      return cluster.sendCommand(key, false, words, { typeMapping });
    },
    async open() {
      const master = cluster.masters[0];
      if (master === undefined) throw new Error('the cluster has no master that is known');
      return connected(await cluster.nodeClient(master as never) as NodeRedis);
    },
  };
}
