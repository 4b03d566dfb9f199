"""A proxy in front of a node that does to a request what its key asks for, the first time: `lost
claim` swallows the reply and cuts, `late claim` holds the reply back, `busy claim` and `tryagain
claim` answer an error twice, `down claim` cuts and refuses the next connections. `oom complete`
answers an error each time, but not to the mark of a result that is not kept. `claim` is SEMEL.CLAIM
or SEMEL.WAIT, `complete` SEMEL.COMPLETE.

The fault is found by the key alone, so doors need no line of their own for it: the key "lost-claim"
of any namespace meets `lost claim`.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from relay import Relay  # noqa: E402
from resp import words_of  # noqa: E402

LATE_SECONDS = 2.5  # a door of the stories has a patience of 1 s
DOWN_CONNECTIONS = 2  # refused; a count, so that no door races with a clock
TIMES = 2  # errors before an answer
ERRORS = {'busy': b'-BUSY Redis is busy running a script. You can only call SCRIPT KILL or '
                  b'SHUTDOWN NOSAVE.\r\n',
          'tryagain': b'-TRYAGAIN the group has no leader\r\n',
          'oom': b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"}
MARK_BYTES = 1  # of a result that is not kept
KINDS = {b'SEMEL.CLAIM': 'claim', b'SEMEL.WAIT': 'claim', b'SEMEL.COMPLETE': 'complete'}


class Proxy(Relay):
    """Listens on a port of 127.0.0.1; `with Proxy(port_of_node, stories) as proxy: proxy.port`."""

    def __init__(self, node_port, stories):
        self.faults = {story['name'].encode(): story['wire'].split()
                       for story in stories if 'wire' in story}
        self.counts = {}
        self.refused = 0  # connections to be refused from here on
        super().__init__(node_port)
        self.fault = self.fault_of

    def welcome(self, near):
        with self.lock:
            is_down = self.refused > 0
            self.refused -= is_down
        if is_down:
            near.close()
        else:
            super().welcome(near)

    def fault_of(self, request):
        what = self.story_of(words_of(request))
        if what == 'down':
            with self.lock:
                self.refused = DOWN_CONNECTIONS
            return 'request'
        return {'lost': 'reply', 'late': LATE_SECONDS, **ERRORS}.get(what)

    def has_met(self, namespace, name):
        """Whether a request of the namespace met the fault of the story."""
        return (namespace.encode(), name.encode()) in self.counts

    def story_of(self, words):
        """What happens to the request, or none. Each namespace, a door's, meets a fault anew."""
        kind = KINDS.get(words[0].upper()) if words else None
        for name, (what, when) in self.faults.items():
            # The gateway writes the client's scope in front of a key, with a '|'.
            key = next((word for word in words[1:] if word.split(b'|')[-1] == name), None)
            if key is None or when != kind or what == 'oom' and len(words[4]) <= MARK_BYTES:
                continue
            met = (words[1], name)
            with self.lock:
                count = self.counts[met] = self.counts.get(met, 0) + 1
            if what == 'oom' or count <= (TIMES if what in ERRORS else 1):
                return what
        return None
