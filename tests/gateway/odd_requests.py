"""Requests out of a seed, plain and odd ones, as bytes, with what they mean if they mean anything.

Each has a proof of its own in the field X-Proof. A body may have another request in it, whose proof
nobody has sent: who reads it has been smuggled to.
"""

import dataclasses
import hashlib

FORGED = 'forged'  # a value that a client must not get through
INNER = b'POST /payments/77 HTTP/1.1\r\nHost: shop\r\nX-Proof: inner\r\nContent-Length: 0\r\n\r\n'
GUARDED = ('/payments', '/payments/7', '/payments/7%20a')
OPEN = ('/', '/other', '/items', '/other/%C3%A9', '/a/b?q=1&r=%2f', '/payment')
# Others are refused before the gateway has to decide anything.
METHODS = ('GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'POST', 'POST', 'PUT', 'DELETE',
           'PATCH')
ODD_METHODS = ('post', 'Post', 'POSt', 'pUT', 'get', 'FOO', 'P\tOST', 'POST ', 'PRI', 'CONNECT',
               'TRACE', '"POST"', 'POST\0', '')
ODD_PATHS = ('/Payments', '/PAYMENTS/7', '/payments/', '//payments', '/payments//7',
             '/payments;v=1', '/payments;v=1/7', '/;a=b/payments/7', '/payments/7;x',
             '/payments/;7', '/%70ayments', '/%50ayments', '/payments%2f7', '/payments%5c7',
             '/payments%00', '/payments%09', '/payments%3b', '/payments%20', '/payments/.',
             '/./payments',
             '/x/../payments', '/x/%2e%2e/payments', '/x/..;/payments', '/%2e/payments',
             '/payments\\7', '/payments#7', '/%2570ayments', '/payments%', '/items/;x', '/items//x',
             '/items/7/', '/Items/7', '/payments?/../x', '/payments/%2e7', '/pay\xdfments',
             '/payments%C2%A0', '/payments%0d%0aX-Proof:%20x')
# Of another form, or with a blank.
REFUSED_PATHS = ('http://shop/payments', 'http://other/payments', '//other/payments/../..', '*',
                 'payments', 'shop:80', '/pay ments', '')
# Read as HTTP/1.1 by somebody, or with another end of the body.
ODD_VERSIONS = ('HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 ', 'HTTP/01.1', 'HTTP/1',
                'HTTP/1.10', 'XTTP/1.1', '')
OVERRIDES = ('X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override',
             'X_HTTP_Method_Override')
FIELDS = (('X_Limit', FORGED), ('Idempotency_Key', FORGED), ('Semel_Fencing_Token', FORGED),
          ('Semel-Fencing-Token', FORGED), ('X-Forwarded-For', FORGED), ('X_Forwarded_For', FORGED),
          ('X-Real-IP', FORGED), ('Forwarded', FORGED), ('X.Limit', FORGED), ('Cookie', 'a=b'),
          ('Content_Length', FORGED), ('Transfer_Encoding', 'chunked'),
          ('Content-Type', 'text/plain'),
          ('Connection', 'keep-alive'), ('Connection', 'X-Limit'), ('Connection', 'Authorization'),
          ('Connection', 'close, X-Proof'), ('Connection', 'Content-Length'), ('TE', 'trailers'),
          ('Connection', 'Transfer-Encoding'), ('Upgrade', 'h2c'), ('Upgrade', 'websocket'),
          ('Trailer', 'X-Limit'), ('Keep-Alive', '1'), ('Proxy-Connection', 'keep-alive'),
          ('Expect', '100-continue'), ('Expect', '200-ok'), ('Range', 'bytes=0-1'),
          ('HTTP2-Settings', 'AAMAAABkAAQAAP__'), ('X-Original-URL', '/payments'),
          ('X-Forwarded-Host', FORGED), ('X-Forwarded-Proto', FORGED))
# What an upstream must see as it was sent.
IDENTIFYING = ('authorization', 'idempotency-key', 'cookie', 'x-limit', 'content-type', 'host')


@dataclasses.dataclass
class Request:
    proof: str
    method: str
    target: str
    fields: list  # (name, value)
    body: bytes
    data: bytes = b''
    must_be_refused: bool = False  # no reader may take it for a request
    key: str = ''
    version: str = 'HTTP/1.1'

    @property
    def digest(self):
        return hashlib.sha1(self.body).hexdigest()

    @property
    def is_repeatable(self):
        return self.method in ('GET', 'HEAD', 'OPTIONS') and not self.body

    def values(self, name):
        return [value for each, value in self.fields if each.lower() == name]


def chunked(rng, body):
    """The body in chunks, in all the forms that RFC 9112 has for them."""
    out = b''
    while body:
        size = rng.randrange(1, len(body) + 1)
        digits = b'%x' % size
        digits = rng.choice((digits, digits.upper(), b'0' + digits))
        extension = rng.choice((b'', b'', b';a=b', b';a="b;c"'))
        out += digits + extension + b'\r\n' + body[:size] + b'\r\n'
        body = body[size:]
    return out + b'0\r\n' + rng.choice((b'', b'', b'X-Limit: 9\r\n')) + b'\r\n'


# In place of the line before a chunk.
ODD_CHUNK_LINES = (b'-%x\r\n', b'+%x\r\n', b'0x%x\r\n', b' %x\r\n', b'%xg\r\n', b'\r\n%x\r\n',
                   b'10000000000000%04x\r\n', b'%x;a=b\rc\r\n', b'%x\0\r\n', b'\v%x\r\n')


def odd_chunks(rng, body):
    """Chunks whose length two readers may see differently."""
    body = body or INNER
    line = rng.choice(ODD_CHUNK_LINES)
    good = b'%x\r\n' % len(body) + body
    end = b'0\r\n\r\n'
    return rng.choice((
        line % len(body) + body + b'\r\n' + end,
        good + rng.choice((b'', b'\r', b'xx')) + end,
        b'%x\r\n' % (len(body) - 1) + body + b'\r\n' + end,
        good + b'\r\n' + line % 0 + INNER))


def framed(rng, request, odd):
    """The lines about the body, and its bytes."""
    body = request.body
    size = len(body)
    if odd == 'chunks':
        request.must_be_refused = True
        return ['Transfer-Encoding: chunked'], odd_chunks(rng, body)
    if odd == 'framing':
        request.must_be_refused = True
        return rng.choice((
            ([f'Content-Length: {size}', f'Content-Length: {size + 1}'], body),
            ([f'Content-Length: {size}', f'Content-Length: {size}'], body),
            ([f'Content-Length: {size}, {size}'], body),
            ([f'Content-Length: +{size}'], body),
            ([f'Content-Length: 0x{size:x}'], body),
            ([f'Content-Length: {size}.'], body),
            (['Content-Length: '], body),
            ([f'Content-Length: {size + (1 << 64)}'], body),
            ([f'Content-Length : {size}'], body),
            ([f'Content-Length\t: {size}'], body),
            ([f'Content-Length: {size}', 'Transfer-Encoding: chunked'], chunked(rng, body)),
            (['Transfer-Encoding: chunked', 'Content-Length: 0'], chunked(rng, body)),
            (['Transfer-Encoding: gzip, chunked'], chunked(rng, body)),
            (['Transfer-Encoding: chunked, identity'], chunked(rng, body)),
            (['Transfer-Encoding: chunked, chunked'], chunked(rng, body)),
            (['Transfer-Encoding: identity', f'Content-Length: {size}'], body),
            (['Transfer-Encoding: xchunked'], chunked(rng, body)),
            (['Transfer-Encoding: \vchunked'], chunked(rng, body)),
            (['Transfer-Encoding: "chunked"'], chunked(rng, body)),
            (['Transfer-Encoding : chunked'], chunked(rng, body)),
            (['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunked(rng, body)),
            (['X: a', ' Transfer-Encoding: chunked'], body),
            (['Idempotency-Key:', ' folded', f'Content-Length: {size}'], body),
            (['X: a\rContent-Length: 9'], body),
            (['X: a\nContent-Length: 9'], body),
            (['X: \0'], body),
            (['X'], body),
            ([': a'], body),
            (['X(): a'], body),
            (['Host: other', f'Content-Length: {size}'], body)))
    if body and request.version == 'HTTP/1.1' and rng.random() < 0.4:
        return ['Transfer-Encoding: chunked'], chunked(rng, body)
    if body or request.method in ('POST', 'PUT', 'PATCH'):
        return [f'Content-Length: {size}'], body
    return [], b''


class Generator:
    def __init__(self, rng, name):
        self.rng, self.name = rng, name
        self.count = 0
        self.keyed = []  # requests that may come again

    def body(self):
        kind = self.rng.randrange(4)
        if kind == 0:
            return b''
        if kind == 1:
            return INNER
        if kind == 2:
            return b'0\r\n\r\n' + INNER
        return self.rng.randbytes(self.rng.choice((1, 10, 100, 1000)))

    def next(self, is_plain=False):
        rng = self.rng
        self.count += 1
        proof = f'{self.name}-{self.count}'
        odd = None if is_plain else rng.choice((
            None, None, None, 'method', 'path', 'target', 'fields', 'override', 'framing', 'chunks',
            'version', 'again'))
        if odd == 'again' and self.keyed:
            first = rng.choice(self.keyed)
            return self.made(proof, first.method, first.target, first.fields, first.body, None)
        target = rng.choice(GUARDED if rng.random() < 0.5 else OPEN + ('/items/7',))
        method = rng.choice(METHODS)
        if odd == 'method':
            method = rng.choice(ODD_METHODS)
        elif odd == 'path':
            target, method = rng.choice(ODD_PATHS), rng.choice(('POST', 'POST', 'PUT', 'GET'))
        elif odd == 'target':
            target = rng.choice(REFUSED_PATHS)
            method = 'POST' if target == '*' else method
        elif odd == 'chunks':
            method = rng.choice(('POST', 'PUT', 'PATCH'))  # no server may skip its body
        fields = [('Host', 'shop'), ('Authorization', f'user-{rng.randrange(3)}'),
                  ('X-Limit', str(rng.randrange(100)))]
        if rng.random() < 0.8:
            fields.append(('Idempotency-Key', f'key-{proof}'))
        if odd == 'override':
            fields.append((rng.choice(OVERRIDES), rng.choice(('POST', 'PUT', 'post'))))
        if odd == 'fields':
            fields += rng.sample(FIELDS, rng.randrange(1, 4))
        request = self.made(proof, method, target, fields, self.body(), odd)
        is_payment = method == 'POST' and target in GUARDED and request.values('idempotency-key')
        if is_payment and odd is None and len(self.keyed) < 200:
            self.keyed.append(request)
        return request

    def made(self, proof, method, target, fields, body, odd):
        fields = [each for each in fields if each[0] != 'X-Proof'] + [('X-Proof', proof)]
        request = Request(proof, method, target, fields, body)
        if odd == 'version':
            request.version = self.rng.choice(('HTTP/1.0', self.rng.choice(ODD_VERSIONS)))
        request.must_be_refused = odd in ('method', 'target') or request.version in ODD_VERSIONS
        lines, tail = framed(self.rng, request, odd)
        if odd == 'fields':
            self.rng.shuffle(fields)
        head = [f'{method} {target} {request.version}',
                *(f'{name}: {value}' for name, value in fields), *lines, '', '']
        start = '\r\n'.join(head).encode('latin-1')
        request.data = start + tail
        return request
