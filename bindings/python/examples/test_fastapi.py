"""fastapi_app.py, as clients of a shop meet it; requests run in one loop, without sockets."""

import asyncio
import unittest

try:
    import httpx
    import fastapi  # noqa: F401
except ImportError as missing:
    raise unittest.SkipTest('FastAPI or httpx is not installed') from missing

import fastapi_app
from fastapi_app import app, charged


class FastApiTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        charged.clear()
        opened = fastapi_app.lifespan(app)
        await opened.__aenter__()
        self.addAsyncCleanup(opened.__aexit__, None, None, None)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app),
                                        base_url='http://shop')
        self.addAsyncCleanup(self.client.aclose)

    async def order(self, key='k', cents=5, user='ann', order='o'):
        headers = {'Authorization': user}
        if key is not None:
            headers['Idempotency-Key'] = key
        return await self.client.post('/orders', json={'id': order, 'cents': cents},
                                      headers=headers)

    async def test_of_many_at_once_one_runs_and_all_have_its_answer(self):
        answers = await asyncio.gather(*(self.order() for _ in range(20)))
        self.assertEqual({one.status_code for one in answers}, {200})
        self.assertEqual({one.text for one in answers}, {answers[0].text})
        self.assertEqual(charged, {'o': 1})

    async def test_another_body_another_user_no_key(self):
        await self.order()
        self.assertEqual((await self.order(cents=6)).status_code, 422)
        self.assertEqual((await self.order(user='bob')).status_code, 200)
        for key in (None, '', 'k' * 256):
            self.assertEqual((await self.order(key)).status_code, 422)
        self.assertEqual(charged, {'o': 2})

    async def test_a_client_that_goes_away_leaves_no_key_behind(self):
        inside, charge = asyncio.Event(), fastapi_app.charge

        async def stuck(order):
            inside.set()
            await asyncio.Event().wait()

        fastapi_app.charge = stuck
        self.addCleanup(setattr, fastapi_app, 'charge', charge)
        request = asyncio.ensure_future(self.order())
        await inside.wait()
        request.cancel()  # as a server cancels the handler
        await asyncio.wait([request])
        fastapi_app.charge = charge
        self.assertEqual((await self.order()).status_code, 200)
        self.assertEqual(charged, {'o': 1})

    async def test_the_loop_is_free_while_it_runs(self):
        inside, go, charge = asyncio.Event(), asyncio.Event(), fastapi_app.charge

        async def slow(order):
            inside.set()
            await go.wait()
            return await charge(order)

        fastapi_app.charge = slow
        self.addCleanup(setattr, fastapi_app, 'charge', charge)
        first, second = (asyncio.ensure_future(self.order()) for _ in range(2))
        await inside.wait()
        fastapi_app.charge = charge
        self.assertEqual((await self.order('other', order='p')).status_code, 200)
        self.assertFalse(first.done() or second.done())
        go.set()
        self.assertEqual((await first).text, (await second).text)
        self.assertEqual(charged, {'o': 1, 'p': 1})


if __name__ == '__main__':
    unittest.main()
