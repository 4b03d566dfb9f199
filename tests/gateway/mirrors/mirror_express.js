// A shop in Express that writes down each request as Node.js has parsed it; see mirror_wsgi.py.
const crypto = require('crypto');
const express = require('express');
const fs = require('fs');

const log = fs.openSync(process.env.MIRROR_LOG, 'a');
const app = express();

app.use((request, response, next) => {
  request.ownMethod = request.method;
  for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
    if (request.headers[name]) request.method = request.headers[name].toUpperCase();
  }
  request.digest = null;
  if (['GET', 'HEAD', 'OPTIONS'].includes(request.method)) return next();
  const digest = crypto.createHash('sha1');
  request.on('data', (bytes) => digest.update(bytes));
  request.on('end', () => {
    request.digest = digest.digest('hex');
    next();
  });
});

const mirror = (handler) => (request, response) => {
  const record = {id: request.headers['x-proof'] ?? null, method: request.ownMethod,
    path: decodeURIComponent(request.path), handler, body: request.digest,
    fields: request.headers};
  fs.writeSync(log, JSON.stringify(record) + '\n');
  response.set('X-Mirror', record.id ?? '-').json({handler});
};
app.post('/payments', mirror('pay'));
app.post('/payments/:id', mirror('pay'));
app.put('/items/:item', mirror('put'));
app.use(mirror('other'));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
