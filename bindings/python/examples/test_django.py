"""django_app.py, as clients of a shop meet it."""

import threading
import unittest

try:
    import django
    from django.conf import settings
except ImportError as missing:
    raise unittest.SkipTest('Django is not installed') from missing

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'], SECRET_KEY='test',
                   MIDDLEWARE=['django_app.IdempotencyMiddleware'])
django.setup()

import django_app  # noqa: E402
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path  # noqa: E402

charged = []
entered, leave = threading.Event(), threading.Event()


def charge(request):
    charged.append(request.body)
    return JsonResponse({'charged': len(charged)}, status=201)


def fail(request):
    charged.append(request.body)
    return HttpResponse('down', status=500)


def slow(request):
    entered.set()
    leave.wait(60)
    return charge(request)


def stream(request):
    charged.append(request.body)
    return StreamingHttpResponse([b'a', b'b'])


urlpatterns = [path('charge', charge), path('fail', fail), path('slow', slow),
               path('stream', stream)]


class DjangoTest(unittest.TestCase):
    def setUp(self):
        charged.clear()
        self.client = Client()
        self.addCleanup(django_app.engine.close)

    def post(self, where, key='k', body='{}', **more):
        headers = {} if key is None else {'HTTP_IDEMPOTENCY_KEY': key}
        return self.client.post(where, body, content_type='application/json', **headers, **more)

    def test_a_repeat_gets_the_answer_of_the_first(self):
        first, again = self.post('/charge'), self.post('/charge')
        self.assertEqual((first.status_code, again.status_code), (201, 201))
        self.assertEqual(first.json(), again.json())
        self.assertEqual((again['Idempotency-Replayed'], again['Content-Type']),
                         ('true', 'application/json'))
        self.assertEqual(len(charged), 1)
        self.assertEqual(self.post('/charge', 'other').json(), {'charged': 2})
        self.assertEqual(self.post('/charge', None).json(), {'charged': 3})
        self.assertEqual(self.client.get('/charge', HTTP_IDEMPOTENCY_KEY='k').status_code, 201)
        self.assertEqual(len(charged), 4)

    def test_another_body_under_the_same_key(self):
        self.post('/charge', body='{"cents":1}')
        self.assertEqual(self.post('/charge', body='{"cents":2}').status_code, 422)
        self.assertEqual(len(charged), 1)

    def test_what_failed_runs_again(self):
        for _ in range(2):
            self.assertEqual(self.post('/fail').content, b'down')
        self.assertEqual(len(charged), 2)

    def test_what_streams_is_not_kept(self):
        for _ in range(2):
            self.assertEqual(b''.join(self.post('/stream').streaming_content), b'ab')
        self.assertEqual(len(charged), 2)

    def test_one_that_comes_meanwhile(self):
        entered.clear()
        leave.clear()
        answers = []
        runs = threading.Thread(target=lambda: answers.append(self.post('/slow')))
        runs.start()
        self.addCleanup(runs.join, 60)
        self.addCleanup(leave.set)
        self.assertTrue(entered.wait(60))
        busy = Client().post('/slow', '{}', content_type='application/json',
                             HTTP_IDEMPOTENCY_KEY='k')
        self.assertEqual((busy.status_code, busy['Retry-After']), (409, '1'))
        leave.set()
        runs.join(60)
        self.assertEqual([one.status_code for one in answers], [201])

    def test_keys_that_are_none(self):
        for key in ('', 'k' * 256):
            self.assertEqual(self.post('/charge', key).status_code, 400)
        self.assertEqual(self.post('/charge', 'k' * 255).status_code, 201)


if __name__ == '__main__':
    unittest.main()
