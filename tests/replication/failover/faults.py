"""The faults, one function each: it ends when the fault has, and what it has found is reported by
the world. `KINDS` has what each of them needs (FaultyGroup.skipped)."""
import os
import shutil
import signal
import time

from group import ELECTION_MS, PATIENCE
from resp import Failed

HOUR_NS = 3600 * 10**9
TURNS = 16
LATE_S = 0.1  # less than the time after which a leader that hears nobody leads no longer
STEPS_NS = [sign * hours * HOUR_NS for sign in (-1, 1) for hours in (1, 10 * 365 * 24)]


class Situation:
    def __init__(self, world, chance, is_long):
        self.world = world
        self.group = world.group
        self.chance = chance
        self.is_long = is_long
        self.leader = self.group.wait_leader()
        self.others = [node for node in self.group.nodes if node is not self.leader]
        self.follower = chance.choice(self.others)

    def any_node(self):
        """The leader as often as not."""
        return self.chance.choice((self.leader, self.follower))

    def pause(self, shortest, longest):
        time.sleep(self.chance.uniform(shortest, longest))

    def await_end_of(self, node, seconds):
        """The exit code; None: it does not end."""
        end = time.monotonic() + seconds
        while node.process.poll() is None:
            if time.monotonic() > end:
                return None
            time.sleep(0.005)
        return node.process.returncode


def kill(situation, *victims, pause=(0, 0.6)):
    for victim in victims:
        victim.kill()
    situation.pause(*pause)
    for victim in victims:
        victim.start()


def kill_leader(situation):
    kill(situation, situation.leader)


def kill_follower(situation):
    kill(situation, situation.follower)


def kill_two(situation):
    kill(situation, situation.leader, situation.follower, pause=(0, 0.3))


def kill_all(situation):
    kill(situation, *situation.group.nodes, pause=(0, 0.1))


def stop(situation):
    """A node stands still, and goes on as if nothing had been."""
    node = situation.any_node()
    longest = 30 if situation.is_long and situation.chance.random() < 0.1 else 2
    node.pause()
    situation.pause(0.2, longest)
    node.resume()


def transfer(situation):
    """Planned: another node leads."""
    hand_over(situation.leader, situation.follower)
    situation.pause(0.05, 0.3)


def hand_over(leader, to):
    try:
        leader.ask('SEMEL.GROUP', 'TRANSFER', to.number + 1)
    except (OSError, Failed):
        pass  # too early, or not the leader any more


def await_lead(node):
    """Without a read, which would bring an entry of its own with the time."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            if node.ask('ROLE', seconds=0.5)[0] == b'master':
                return True
        except (OSError, Failed):
            pass
        time.sleep(0.002)
    return False


def be_late(former, leader):
    """The leader's first entry with a time comes late to the former one."""
    try:
        with leader.client(seconds=2) as connection:
            former.pause()
            try:
                connection.send('SET', 'late', former.number)
                time.sleep(LATE_S)
            finally:
                former.resume()
            connection.reply()
    except (OSError, Failed):
        pass  # it leads no longer


def hand_to_and_fro(situation):
    """Two nodes lead in turns, and the one before hears of the next one late. Then one leads that
    has missed it all: what it knows of the time is of the first of them. What clients hold is of
    the last one."""
    network, world = situation.group.network, situation.world
    first, second = situation.leader, situation.follower
    third = next(node for node in situation.others if node is not second)
    network.cut(network.around(third.number))
    world.may_ask.clear()
    try:
        for _ in range(TURNS):
            hand_over(first, second)
            if await_lead(second):
                be_late(first, second)
                first, second = second, first
    finally:
        world.may_ask.set()
        network.heal()
    situation.pause(0.3, 0.5)
    for _ in range(20):
        hand_over(situation.group.wait_leader(), third)
        if situation.group.wait_leader() is third:
            break
        situation.pause(0.05, 0.1)
    situation.pause(1, 2)


def end_leader(situation):
    """It is asked to end: it hands over, and ends by itself."""
    node = situation.leader
    node.signal(signal.SIGTERM)
    code = situation.await_end_of(node, PATIENCE)
    if code != 0:
        situation.world.find(f'a node that was asked to end ended with {code}')
        node.kill()
    situation.pause(0, 0.5)
    node.start()


# --- partitions -----------------------------------------------------------------------------------

def cut(situation, pairs, clients_of=None):
    network = situation.group.network
    network.cut(pairs)
    if clients_of is not None:
        network.cut_clients(clients_of)
    situation.pause(0.2, 2)
    network.heal()
    if clients_of is not None:
        network.cut_clients(clients_of, is_whole=True)


def cut_leader(situation):
    """The leader is with the minority, and its clients with it."""
    cut(situation, situation.group.network.around(situation.leader.number))


def cut_follower(situation):
    cut(situation, situation.group.network.around(situation.follower.number))


def cut_off(situation):
    """From the other nodes and from clients."""
    number = situation.any_node().number
    cut(situation, situation.group.network.around(number), clients_of=number)


def cut_one_way(situation):
    """A node hears and is not heard, or the other way round."""
    is_deaf = situation.chance.random() < 0.5
    number = situation.any_node().number
    cut(situation, situation.group.network.around(number, to=is_deaf, of=not is_deaf))


def cut_between(situation):
    """Two nodes do not reach each other, and the third one both."""
    one, other = situation.leader.number, situation.follower.number
    cut(situation, [(one, other), (other, one)])


# --- disks ----------------------------------------------------------------------------------------

def write_much(situation):
    """More than a segment of the log has, in pieces that do not keep a busy leader from others."""
    value = os.urandom(1 << 16)
    left = 320
    end = time.monotonic() + 2 * PATIENCE  # a machine that is busy elects leaders all the time
    while left > 0 and time.monotonic() < end:
        try:
            with situation.group.wait_leader().client(seconds=5) as connection:
                while left > 0:
                    connection.all([('SET', f'much:{number}', value) for number in range(8)])
                    left -= 8
        except (OSError, Failed):
            time.sleep(0.01)
    if left > 0:
        situation.world.find(f'with one disk full {left} of 320 writes are not taken in '
                             f'{2 * PATIENCE} s')


def is_behind(situation, node):
    """What does not fit on the disk of a node is not counted as being there."""
    status = situation.world.insist('SEMEL.GROUP', 'STATUS')
    answer = dict(zip(status[::2], status[1::2]))
    for each in answer[b'members']:
        member = dict(zip(each[::2], each[1::2]))
        if member[b'id'] == node.number + 1 and member[b'match'] >= answer[b'commit']:
            situation.world.find('a disk that is full has everything')


def disk_full(situation):
    group, node = situation.group, situation.group.small
    group.fill_disk()
    try:
        write_much(situation)
        if situation.chance.random() < 0.5:
            node.kill()
            node.start()
            situation.await_end_of(node, 0.5)  # it may not begin without space
            write_much(situation)
    finally:
        is_behind(situation, node)
        group.size_disk()
    if node.is_alive():
        return
    if node.process.returncode < 0:
        situation.world.find(f'with a full disk a node ended by signal {-node.process.returncode}')
    node.start()


def await_failure(situation, node, before):
    end = time.monotonic() + PATIENCE
    while node.faults.failed_syncs() == before:
        if time.monotonic() > end:
            situation.world.find('no sync was made')
            return False
        time.sleep(0.002)
    return True


def failed_sync(situation):
    """One sync of data fails, and those after it succeed: the node must end, and say so."""
    node = situation.any_node()
    before = node.faults.failed_syncs()
    node.faults.fail_syncs(1)
    if not await_failure(situation, node, before):
        return
    code = situation.await_end_of(node, 10)
    if code is None or code <= 0:
        situation.world.find(f'a node whose sync has failed ended with {code}')
        if code is None:
            node.kill()
    situation.pause(0, 0.5)
    node.start()


def failed_start(situation):
    """A sync of a name or of a new file fails when a node starts. It ends, or makes it again."""
    node = situation.any_node()
    node.kill()
    before = node.faults.failed_syncs()
    node.faults.fail_fsyncs(situation.chance.randint(1, 3))
    node.start()
    if not await_failure(situation, node, before):
        return
    situation.await_end_of(node, 0.5)
    node.faults.fail_fsyncs(0)
    if not node.is_alive():
        if node.process.returncode <= 0:
            situation.world.find(f'a node that cannot start ended with {node.process.returncode}')
        node.start()


def slow_disk(situation):
    node = situation.any_node()
    node.faults.slow_syncs(situation.chance.randint(20, 700) * 10**6)
    situation.pause(0.5, 2)
    node.faults.slow_syncs(0)


def change_members(situation, *words):
    try:
        situation.world.insist('SEMEL.GROUP', *words)
    except Failed:
        pass  # it was done, and the answer was lost


def wiped_member(situation):
    """A voter that was added loses its disk, and is started by the same command. It counts for
    nothing, also for a leader that comes after that: of four with one away there is no majority."""
    group = situation.group
    node = group.grow()
    try:
        node.start()
        change_members(situation, 'ADD', 4, node.addresses())
        change_members(situation, 'PROMOTE', 4)
        situation.pause(0, 0.5)
        node.kill()
        shutil.rmtree(node.directory)
        node.start()
        first_ones = group.nodes[:group.founders]
        leader = group.wait_leader()
        hand_over(leader, situation.chance.choice([each for each in first_ones
                                                   if each is not leader]))
        situation.pause(0.5, 1)
        away = situation.chance.choice(first_ones)
        group.network.cut(group.network.around(away.number))
        wants_nothing_taken(situation, [each for each in group.nodes if each is not away])
        group.network.heal()
        change_members(situation, 'REMOVE', 4)
    finally:
        group.network.heal()
        group.shrink()


def wants_nothing_taken(situation, nodes):
    end = time.monotonic() + 10 * ELECTION_MS / 1000
    while time.monotonic() < end:
        for node in nodes:
            try:
                if node.ask('SET', 'alone', node.number, seconds=0.2) == b'OK':
                    situation.world.find('a write is taken by half of the voters and one that has '
                                         'lost its disk')
                    return
            except (OSError, Failed):
                pass
        time.sleep(0.01)


# --- clocks ---------------------------------------------------------------------------------------

def clock_step(situation):
    """The wall clock of one node steps while it runs, and steps back."""
    node = situation.any_node()
    node.faults.step_clock(situation.chance.choice(STEPS_NS))
    situation.pause(0.3, 1.5)
    node.faults.step_clock(0)


def clock_start(situation):
    """A node starts with a wall clock that is off, and leads."""
    node = situation.follower
    node.kill()
    if situation.chance.random() < 0.5:
        node.faults.boot_machine()
    node.faults.step_clock(situation.chance.choice(STEPS_NS))
    node.start()
    situation.pause(0.5, 1)
    if situation.chance.random() < 0.5:
        situation.leader.kill()
        situation.pause(0.2, 0.6)
        situation.leader.start()
    else:
        situation.follower = node
        transfer(situation)
    node.faults.step_clock(0)


def clock_start_all(situation):
    """All nodes start with a wall clock that is an hour or ten years off: the same one, or that
    of one node, on machines that were booted or not."""
    nodes = situation.group.nodes
    wrong = nodes if situation.chance.random() < 0.5 else [situation.chance.choice(nodes)]
    step = situation.chance.choice(STEPS_NS)
    for node in nodes:
        node.kill()
    if len(wrong) == 1 and situation.chance.random() < 0.5:
        for node in nodes:
            node.faults.boot_machine()
    for node in wrong:
        node.faults.step_clock(step)
    for node in nodes:
        node.start()
    situation.group.wait_leader()
    situation.pause(0.2, 0.5)
    for node in wrong:
        node.faults.step_clock(0)


def boot_all(situation):
    """All machines boot at once. Their wall clocks are right, and the group's time is behind them
    by what hand-overs have taken from it."""
    for node in situation.group.nodes:
        node.kill()
        node.faults.boot_machine()
    situation.pause(0, 0.5)
    for node in situation.group.nodes:
        node.start()
    situation.group.wait_leader()


KILLS = (kill_leader, kill_follower, kill_two, kill_all)
CUTS = (cut_leader, cut_follower, cut_off, cut_one_way, cut_between)
OTHERS = (stop, transfer, hand_to_and_fro, end_leader, wiped_member, disk_full, failed_sync,
          failed_start, slow_disk, clock_step, clock_start, clock_start_all, boot_all)
NEEDS = {**{kind: 'network' for kind in (*CUTS, hand_to_and_fro, wiped_member)}, disk_full: 'disk',
         failed_sync: 'preload', failed_start: 'preload', slow_disk: 'preload',
         clock_step: 'preload', clock_start: 'preload', clock_start_all: 'preload',
         boot_all: 'preload'}
