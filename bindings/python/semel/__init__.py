"""Semel: work that happens once, in this process.

    import semel

    with semel.Engine() as engine:
        orders = engine.claims('orders', 'call')
        receipt = orders.once('order-4711', lambda: charge(order))
        receipt.value       # ran now, or replayed

Keys and values are bytes, or text that becomes UTF-8. Source: docs/c-abi.md
"""

from ._claims import Claims, Tokens, guarded
from ._engine import KEEP_TTL, Engine, composite_key
from ._library import library as _loaded
from ._locks import Lock
from ._numbers import OutOfRange
from ._types import (Answer, Claim, Code, CompareResult, Consumed, DecrementResult, Failed,
                     NoResult, NotTaken, Once, OnceAnswer, OutcomeUnknown, Owned, OwnerAnswer,
                     Rejected, SemelError, SetResult, State, TokenState, TransitionResult, Verdict,
                     Versioned, View, Work)

__version__: str = _loaded.version().decode()

__all__ = [
    'Answer', 'Claim', 'Claims', 'Code', 'CompareResult', 'Consumed', 'DecrementResult',
    'Engine', 'Failed', 'KEEP_TTL', 'Lock', 'NoResult', 'NotTaken', 'Once', 'OnceAnswer',
    'OutOfRange', 'OutcomeUnknown', 'Owned', 'OwnerAnswer', 'Rejected', 'SemelError',
    'SetResult', 'State',
    'TokenState', 'Tokens', 'TransitionResult', 'Verdict', 'Versioned', 'View', 'Work',
    'composite_key', 'guarded',
]
