"""Idempotency-Key for FastAPI: a dependency whose `run` does the work once.

    @app.post('/orders')
    async def order(body: Order, once: Once = Depends(idempotent)) -> dict:
        return await once.run(lambda: charge(body))

The work is written down as done before the answer leaves. While it runs the loop is free, and a
repeat waits for the answer of the first, for five seconds at most.
"""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Optional

import semel
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from pydantic import BaseModel
from semel import aio

charged: Dict[str, int] = {}  # what the bank has


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Opened in the worker, after any fork. With a storage: one process at a time."""
    with semel.Engine() as engine:
        app.state.orders = engine.claims('orders', 'call')
        yield


app = FastAPI(lifespan=lifespan)


@dataclass
class Once:
    claims: semel.Claims
    key: bytes
    fingerprint: semel.Fingerprint

    async def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        try:
            outcome = await aio.once(self.claims, self.key, work, codec=semel.JSON,
                                     fingerprint=self.fingerprint, wait=5)
            return outcome.require()
        except semel.Mismatch as wrong:
            raise HTTPException(422, 'this key was used with another request') from wrong
        except (semel.InFlight, semel.InDoubt) as busy:
            wait = max(1, busy.retry_after_ms // 1000)
            raise HTTPException(409, 'a request with this key is running',
                                {'Retry-After': str(wait)}) from busy
        except (semel.NoResult, semel.Full) as refused:
            raise HTTPException(503, str(refused)) from refused


async def idempotent(request: Request, idempotency_key: str = Header(min_length=1, max_length=255),
                     authorization: Optional[str] = Header(None)) -> Once:
    # A key is unique for its user only. Take the user from what has checked the credentials.
    name = semel.composite_key(authorization or '', request.url.path, idempotency_key)
    body = await request.body()
    return Once(request.app.state.orders, name, semel.fingerprint(body, sha256=True))


class Order(BaseModel):
    id: str
    cents: int


async def charge(order: Order) -> Dict[str, Any]:
    charged[order.id] = charged.get(order.id, 0) + 1
    return {'order': order.id, 'charged': order.cents}


@app.post('/orders')
async def create(order: Order, once: Once = Depends(idempotent)) -> Any:
    return await once.run(lambda: charge(order))
