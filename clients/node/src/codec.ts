/** Turns results into bytes and back. */
export interface Codec {
  encode(value: unknown): Uint8Array;
  decode(bytes: Buffer): unknown;
}

/** JSON, the default. `undefined` is no bytes at all; a function is an error, as is a bigint. */
export const json: Codec = {
  encode(value) {
    if (value === undefined) return Buffer.alloc(0);
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined) throw new TypeError(`a ${typeof value} is no JSON`);
    return Buffer.from(text);
  },
  decode(bytes) {
    return bytes.length === 0 ? undefined : JSON.parse(bytes.toString());
  },
};

/** Bytes as they are: a Uint8Array or a string; a Buffer is what comes back. */
export const bytes: Codec = {
  encode(value) {
    if (typeof value === 'string') return Buffer.from(value);
    if (value instanceof Uint8Array) return value;
    throw new TypeError(`a ${typeof value} is neither a Uint8Array nor a string`);
  },
  decode: (found) => found,
};

/**
 * Stored where a result could not be: a byte that is no JSON text. All clients of Semel use it.
 */
export const notKept = Buffer.from([0]);
