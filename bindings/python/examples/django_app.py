"""Idempotency-Key for Django: a middleware for every request with the header, over one engine.

    MIDDLEWARE = [.., 'django.contrib.auth.middleware.AuthenticationMiddleware',
                  'django_app.IdempotencyMiddleware']   # behind what says who the user is
    SEMEL_STORAGE = '/var/lib/shop/semel'               # one process at a time: docs/python.md

The first request runs, a repeat gets its answer, one that comes meanwhile 409, and one with another
body under the same key 422. An answer of 500 or more, or an exception, is no answer: the next
repeat runs again.
"""

import base64
import json
from typing import Any, Callable, Dict, List

import semel
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

# Opened by the first request, so in the worker and not in what has forked it.
engine = semel.PerProcess(lambda: semel.Engine(getattr(settings, 'SEMEL_STORAGE', None)))


class ServerFailed(semel.Failed):
    """An answer that is not kept."""

    def __init__(self, response: HttpResponseBase) -> None:
        super().__init__(f'status {response.status_code}')
        self.response = response


def encode(response: HttpResponse) -> bytes:
    kept: Dict[str, Any] = {'status': response.status_code, 'type': response['Content-Type'],
                            'body': base64.b64encode(response.content).decode()}
    return json.dumps(kept).encode()


def decode(kept: bytes) -> HttpResponse:
    known = json.loads(kept)
    response = HttpResponse(base64.b64decode(known['body']), status=known['status'],
                            content_type=known['type'])
    response['Idempotency-Replayed'] = 'true'
    return response


class IdempotencyMiddleware:
    methods = ('POST', 'PATCH')

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.codec = semel.Codec(encode, decode)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        key = request.headers.get('Idempotency-Key')
        if request.method not in self.methods or key is None:
            return self.get_response(request)
        if not 0 < len(key) <= 255:
            return JsonResponse({'error': 'Idempotency-Key: 1..255 characters'}, status=400)
        return self.once(request, key)

    def once(self, request: HttpRequest, key: str) -> HttpResponseBase:
        failed: List[HttpResponseBase] = []

        def run() -> HttpResponseBase:
            response = self.get_response(request)
            if response.status_code >= 500 or response.streaming:
                failed.append(response)
                raise ServerFailed(response)
            return response

        # A key is unique for its user only: without the user another could read the answer.
        user = str(getattr(getattr(request, 'user', None), 'pk', None) or '')
        name = semel.composite_key(user, request.method or '', request.path, key)
        try:
            response: HttpResponseBase = engine().claims('http', 'call').once(
                name, run, codec=self.codec,
                fingerprint=semel.fingerprint(request.body, sha256=True)).require()
            return response
        except semel.RunFailed:
            return failed[0]
        except semel.Mismatch:
            return JsonResponse({'error': 'this key was used with another request'}, status=422)
        except (semel.InFlight, semel.InDoubt) as busy:
            response = JsonResponse({'error': 'a request with this key is running'}, status=409)
            response['Retry-After'] = str(max(1, busy.retry_after_ms // 1000))
            return response
        except (semel.NoResult, semel.Full) as refused:
            return JsonResponse({'error': str(refused)}, status=503)
