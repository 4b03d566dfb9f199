"""Work that is still to be done: coroutines, generators, futures and the like, which are neither
functions to be called once nor results."""

import collections.abc
import concurrent.futures
import contextlib
import enum
import functools
import inspect
import sys
import threading
import types
import typing
from typing import Any, Optional

from ._errors import Code, Unfinished
from ._state import base_of, fields_of

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
_FLAGS = (inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
          | inspect.CO_ITERABLE_COROUTINE)
_AWAITABLE = (collections.abc.Awaitable, collections.abc.Coroutine)
_LAZY = (collections.abc.Iterator, collections.abc.Generator, collections.abc.AsyncIterator,
         collections.abc.AsyncIterable, collections.abc.AsyncGenerator, collections.abc.Callable,
         concurrent.futures.Future, contextlib.AbstractContextManager,
         contextlib.AbstractAsyncContextManager)
# What runs later or beside its caller, by its module: always, and until it has ended.
_PENDING = (('multiprocessing.pool', 'ApplyResult'), ('asyncio.events', 'Handle'))
_RUNNING = (('subprocess', 'Popen', 'returncode'),
            ('asyncio.subprocess', 'Process', 'returncode'),
            ('multiprocessing.process', 'BaseProcess', 'exitcode'))
# Responses of frameworks can be called to be sent.
_RESPONSES = (('werkzeug.sansio.response', 'Response'), ('webob.response', 'Response'),
              ('starlette.responses', 'Response'))
_HELPERS = (contextlib.contextmanager(lambda: iter(())).__code__,  # what the two make
            contextlib.asynccontextmanager(lambda: iter(())).__code__)  # type: ignore


def refuse_lazy(function: Any, what: str, *, may_await: bool = False) -> None:
    """Raises Unfinished for a function that a call does not run to its end, as far as that is
    declared. `may_await`: the caller awaits what it returns."""
    if type(function) is types.FunctionType and not function.__code__.co_flags & _FLAGS and (
            not function.__annotations__ and not function.__dict__):
        return  # a plain function, as most are
    kind = kind_of_function(function, may_await)
    if kind is not None:
        raise Unfinished(Code.BAD_OPTION, f'{what}: {_named(function)} is {kind}, which a call '
                                          'does not run to its end' + (
            '; semel.aio takes those' if kind == 'an async function' else ''))


def kind_of_function(function: Any, may_await: bool) -> Optional[str]:
    inner = _unwrapped(function)
    if getattr(inner, '__code__', None) in _HELPERS:
        return 'a context manager'
    if inspect.isasyncgenfunction(inner):
        return 'an async generator function'
    if inspect.iscoroutinefunction(inner):
        return None if may_await else 'an async function'
    if inspect.isgeneratorfunction(inner):
        awaited = bool(inner.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE)
        return None if may_await and awaited else 'a generator function'
    return _declared(inner, may_await)


def _unwrapped(function: Any) -> Any:
    """What is called in the end: behind partials, methods, caches, and objects with __call__."""
    for _ in range(64):
        if isinstance(function, (functools.partial, functools.partialmethod)):
            function = function.func
        elif isinstance(function, (types.MethodType, staticmethod)):
            function = function.__func__
        elif isinstance(function, functools._lru_cache_wrapper):
            function = function.__wrapped__
        elif isinstance(function, (types.FunctionType, type)) or \
                inspect.iscoroutinefunction(function):
            break
        else:
            called = getattr(type(function), '__call__', None)
            if not isinstance(called, (types.FunctionType, functools.partialmethod)):
                break
            function = called
    return function


def _declared(function: Any, may_await: bool) -> Optional[str]:
    """By its annotation."""
    result = return_type(function)
    if result is None:
        return None
    others = [one for one in typing.get_args(result) if one is not type(None)]
    union = typing.get_origin(result) in (typing.Union, getattr(types, 'UnionType', typing.Union))
    for one in others if union else [result]:
        if not _is_lazy_type(one, may_await):
            return None
    return f'declared to return {result}'


def _is_lazy_type(result: Any, may_await: bool) -> bool:
    kind = typing.get_origin(result) or result
    if not isinstance(kind, type):
        return False
    asyncio = sys.modules.get('asyncio')
    if kind in _AWAITABLE or (asyncio is not None and issubclass(kind, asyncio.Future)):
        return not may_await
    return kind in _LAZY or issubclass(kind, concurrent.futures.Future) or any(
        _is_known(kind, *one) for one in _PENDING)


def return_type(function: Any) -> Any:
    """What it is annotated to return; None: nothing, or what cannot be told."""
    notes = getattr(function, '__annotations__', None)
    result = notes.get('return') if isinstance(notes, dict) else None
    if result is None or isinstance(result, type):
        return result
    alone = types.SimpleNamespace(__annotations__={'return': result})
    try:
        return typing.get_type_hints(alone, getattr(function, '__globals__', {})).get('return')
    except Exception:  # a name that only a type checker knows
        return None


def _named(function: Any) -> str:
    return str(getattr(function, '__qualname__', None) or repr(function))


def kind_of_value(value: Any) -> Optional[str]:
    """What a value is, if it stands for work that is still to be done. Data is none, whatever else
    it offers: texts, numbers, containers, enums, records and what is derived from them, and
    responses of web frameworks. Any other object is work if it can be awaited or called, if it is
    an iterator, or if iterating over it or entering it is all that it is for."""
    if inspect.iscoroutine(value):
        return 'a coroutine'
    if inspect.isgenerator(value):
        return 'a generator'
    if inspect.isasyncgen(value):
        return 'an async generator'
    kind = type(value)
    if isinstance(value, _FUNCTIONS):
        return 'a function'
    if hasattr(kind, '__await__') or _has(kind, 'add_done_callback') or _has(kind, 'then'):
        return f'a future ({kind.__name__})'
    if hasattr(kind, '__next__') or hasattr(kind, '__anext__') or hasattr(kind, '__aiter__'):
        return f'an iterator ({kind.__name__})'
    if _is_pending(value):
        return f'work that has not ended ({kind.__name__})'
    if base_of(kind) is not None or issubclass(kind, enum.Enum) or fields_of(kind) is not None:
        return None
    if callable(value):
        return None if _is_response(value) else f'a callable ({kind.__name__})'
    if (hasattr(kind, '__enter__') or hasattr(kind, '__aenter__')) and _offers_no_more(kind):
        return f'a context manager ({kind.__name__})'
    if hasattr(kind, '__iter__') and not hasattr(kind, '__len__') and _offers_no_more(kind):
        return f'an iterable ({kind.__name__})'
    return None


def _is_pending(value: Any) -> bool:
    """Whether it runs, or will run, without its caller."""
    kind = type(value)
    if any(_is_known(kind, *one) for one in _PENDING):
        return True
    if isinstance(value, threading.Thread):
        return value.ident is None or value.is_alive()
    for module, name, ended in _RUNNING:
        if _is_known(kind, module, name):
            if _has(kind, 'poll'):
                value.poll()
            return getattr(value, ended) is None
    return False


def _is_known(kind: type, module: str, name: str) -> bool:
    known = getattr(sys.modules.get(module), name, None)
    return isinstance(known, type) and issubclass(kind, known)


def _is_response(value: Any) -> bool:
    """Whether it is a response of a web framework that has its body."""
    return any(_is_known(type(value), *one) for one in _RESPONSES) and not (
        hasattr(value, 'body_iterator') or getattr(value, 'is_streamed', False))


def _offers_no_more(kind: type) -> bool:
    """Whether a class has no attributes but those of its protocols, or says that it is one of
    contextlib's."""
    above = kind.__mro__
    return contextlib.AbstractContextManager in above or (
        contextlib.AbstractAsyncContextManager in above) or all(
            name.startswith('_') or name in ('close', 'aclose') for one in above
            for name in vars(one))


def _has(kind: type, name: str) -> bool:
    return callable(getattr(kind, name, None))


def finished(value: Any) -> Any:
    """The value, if it is one. Raises Unfinished, and closes a coroutine or generator, for what
    stands for work that is still to be done."""
    kind = kind_of_value(value)
    if kind is None:
        return value
    discard(value)
    raise Unfinished(Code.BAD_OPTION, f'the function returned {kind}, so its work is not done')


def discard(value: Any) -> None:
    """Ends what has not begun, without the warning that it was never awaited."""
    if inspect.iscoroutine(value) or inspect.isgenerator(value):
        value.close()
