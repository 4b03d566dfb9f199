"""Semel: work that happens once, in this process.

    import semel

    with semel.Engine() as engine:
        orders = engine.claims('orders', 'call')

        @semel.idempotent(orders, 'order:{order}')
        def charge(order, cents):
            return bank.charge(order, cents)    # runs once; later calls get its result

Keys and values are bytes,
or text that becomes UTF-8. Durations are timedeltas or seconds; what ends
in _ms is whole milliseconds. Source: docs/python.md
"""

from ._accesses import Access
from ._claims import Claims
from ._codecs import BYTES, JSON, PICKLE, TEXT, Codec, codec_for
from ._debounce import Debounce, Debounced
from ._engine import KEEP_TTL, Engine, composite_key
from ._errors import (AlreadyDone, Busy, Closed, Code, Conflict, Error, Expired, Failed, Forked,
                      Full, InDoubt, InFlight, InvalidKey, InvalidType, KeptFailure, LeaseLost,
                      Mismatch, NoResult, NotCanonical, NotHeld, NotRecorded, NotTaken,
                      OutcomeUnknown, Rejected, ResultNotKept, RunFailed, SemelError, StaleOwner,
                      StorageError, Superseded, TimedOut, TooNew, TooOld, Unfinished, UnknownKey,
                      WrongKind)
from ._guarded import ARGUMENTS, guarded, idempotent
from ._holding import Holding
from ._identity import Identity, identity
from ._keeping import Keeper
from ._library import library as _loaded
from ._lock_all import Locks
from ._locks import Lock
from ._numbers import OutOfRange
from ._observer import Event, Observed, Observer
from ._permits import Permit
from ._policy import IN_DOUBT, KEEP, RELEASE, Policy
from ._process import PerProcess
from ._rates import Rate, RateLimiter
from ._replay import Replayed, ReplayGuard, signature_of
from ._requests import Fingerprint, fingerprint
from ._steps import ClaimSteps, Steps
from ._tokens import Tokens
from ._trailing import (TrailingAnswer, TrailingCall, TrailingDebounce, TrailingRun, TrailingState,
                        TrailingView)
from ._types import (Answer, Call, Claim, CompareResult, Consumed, Decision, DecrementResult, Once,
                     OnceAnswer, Owned, OwnerAnswer, SetResult, State, TokenState,
                     TransitionResult, Verdict, Versioned, View, Work)

__version__: str = _loaded.version().decode()

__all__ = [
    'ARGUMENTS', 'BYTES', 'IN_DOUBT', 'JSON', 'KEEP', 'KEEP_TTL', 'PICKLE', 'RELEASE', 'TEXT',
    'Access', 'AlreadyDone', 'Answer', 'Busy', 'Call', 'Claim', 'ClaimSteps', 'Claims', 'Closed',
    'Code', 'Codec', 'CompareResult', 'Conflict', 'Consumed', 'Debounce', 'Debounced', 'Decision',
    'DecrementResult', 'Engine', 'Error', 'Event', 'Expired', 'Failed', 'Fingerprint', 'Forked',
    'Full', 'Holding', 'Identity', 'InDoubt', 'InFlight', 'InvalidKey', 'InvalidType', 'Keeper',
    'KeptFailure', 'LeaseLost', 'Lock', 'Locks', 'Mismatch', 'NoResult', 'NotCanonical', 'NotHeld',
    'NotRecorded', 'NotTaken', 'Observed', 'Observer', 'Once', 'OnceAnswer', 'OutOfRange',
    'OutcomeUnknown', 'Owned', 'OwnerAnswer', 'PerProcess', 'Permit', 'Policy', 'Rate',
    'RateLimiter', 'Rejected', 'ReplayGuard', 'Replayed', 'ResultNotKept', 'RunFailed',
    'SemelError', 'SetResult', 'StaleOwner', 'State', 'Steps', 'StorageError', 'Superseded',
    'TimedOut', 'TokenState', 'Tokens', 'TooNew', 'TooOld', 'TrailingAnswer', 'TrailingCall',
    'TrailingDebounce', 'TrailingRun', 'TrailingState', 'TrailingView', 'TransitionResult',
    'Unfinished', 'UnknownKey', 'Verdict', 'Versioned', 'View', 'Work', 'WrongKind', 'codec_for',
    'composite_key', 'fingerprint', 'guarded', 'idempotent', 'identity', 'signature_of',
]
