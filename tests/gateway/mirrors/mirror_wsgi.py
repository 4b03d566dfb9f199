"""A shop in Flask that writes down each request as its server has parsed it: a line of JSON in
the file MIRROR_LOG. GET, HEAD and OPTIONS are answered without a look at their bodies. A method
override is honoured, as many frameworks do; the record has the request's own method. Run by itself
it serves with Werkzeug; gunicorn takes `served`.
"""

import hashlib
import io
import json
import os
import sys
import threading

import flask

LOG = os.open(os.environ['MIRROR_LOG'], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
OVERRIDES = ('HTTP_X_HTTP_METHOD_OVERRIDE', 'HTTP_X_HTTP_METHOD', 'HTTP_X_METHOD_OVERRIDE')
app = flask.Flask('mirror')


def handled(name):
    return flask.jsonify(handler=name), 200, {'X-Handler': name}


@app.post('/payments')
@app.post('/payments/<path:rest>')
def pay(rest=None):
    return handled('pay')


@app.put('/items/<item>')
def put(item):
    return handled('put')


@app.errorhandler(404)
@app.errorhandler(405)
def other(_):
    return handled('other')


def served(environ, start_response):
    own_method = environ['REQUEST_METHOD']
    for name in OVERRIDES:
        if environ.get(name):
            environ['REQUEST_METHOD'] = environ[name]
    method = environ['REQUEST_METHOD']
    body = None
    if method.upper() not in ('GET', 'HEAD', 'OPTIONS'):
        length = environ.get('CONTENT_LENGTH')
        is_chunked = environ.get('HTTP_TRANSFER_ENCODING') == 'chunked'
        body = b'' if not is_chunked and not length else environ['wsgi.input'].read(
            *([int(length)] if length else []))
        if length and len(body) != int(length):
            raise ConnectionError('the body ended early')
        environ['wsgi.input'] = io.BytesIO(body)
    handler = ['other']

    def start(status, fields, exc_info=None):
        handler[0] = dict(fields).get('X-Handler', 'other')
        # A proxy in front may have its own opinion of the path.
        if environ.get('HTTP_X_PROXY_ROUTE') == 'pay' and method.upper() == 'POST':
            handler[0] = 'pay'
        fields = [(name, value) for name, value in fields if name != 'Location']
        return start_response(status, [*fields, ('X-Mirror', environ.get('HTTP_X_PROOF', '-'))])
    reply = app.wsgi_app(environ, start)
    fields = {name[5:]: value for name, value in environ.items() if name.startswith('HTTP_')}
    if 'CONTENT_TYPE' in environ:
        fields['CONTENT_TYPE'] = environ['CONTENT_TYPE']
    record = {'id': environ.get('HTTP_X_PROOF'), 'method': own_method, 'path': environ['PATH_INFO'],
              'handler': handler[0],
              'body': None if body is None else hashlib.sha1(body).hexdigest(),
              'fields': {name.replace('_', '-').lower(): value for name, value in fields.items()}}
    os.write(LOG, (json.dumps(record) + '\n').encode())
    return reply


def main():
    import logging
    from werkzeug.serving import WSGIRequestHandler, make_server
    logging.getLogger('werkzeug').setLevel(logging.CRITICAL)
    WSGIRequestHandler.protocol_version = 'HTTP/1.1'
    server = make_server('127.0.0.1', 0, served, threaded=True)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # ends with whoever has started it


if __name__ == '__main__':
    main()
