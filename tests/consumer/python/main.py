"""A program in Python on the shared library: an order is paid, the engine ends, and the next one on
the same storage replays what was paid."""

import sys

import semel

charged = []


def charge():
    charged.append('order-4711')
    return b'paid'


def live(directory):
    """One life of the process: what it is answered for the order."""
    with semel.Engine(directory, durability='synced') as engine:
        return engine.claims('orders', 'call').once('order-4711', charge)


first = live(sys.argv[1])
second = live(sys.argv[1])
print(f'semel {semel.__version__} from Python: {first.answer.name}, then {second.answer.name}')
if first.answer != semel.OnceAnswer.RAN or second.answer != semel.OnceAnswer.REPLAYED:
    sys.exit('it ran twice, or not at all')
if second.value != b'paid' or charged != ['order-4711']:
    sys.exit(f'replayed {second.value!r}, charged {charged}')
