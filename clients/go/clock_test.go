package semel

import (
	"testing"
	"time"
)

// A process that stood still has no goroutine that noticed the end of its leases: the first that asks
// is told by the clock.
func TestALeaseThatIsOverByTheClockIsLost(t *testing.T) {
	for name, each := range map[string]struct {
		left           time.Duration
		given, refused bool
		lost           bool
	}{
		"it runs":                          {left: time.Hour},
		"it is over":                       {left: -time.Millisecond, lost: true},
		"it is over, and was given back":   {left: -time.Millisecond, given: true},
		"it runs, and the node refused it": {left: time.Hour, refused: true, lost: true},
		"given back, after a refusal":      {left: time.Hour, given: true, refused: true, lost: true},
	} {
		lock := &Lock{held: &held{}}
		lock.self = lock
		lock.held.until.set(time.Now().Add(each.left))
		lock.held.isOver.Store(each.given)
		lock.held.isLost.Store(each.refused)
		locks := &Locks{all: map[string]*Lock{"k": lock}}
		locks.self = locks
		permit := &Permit{lock: Lock{held: lock.held}}
		permit.lock.self = &permit.lock
		if lock.Lost() != each.lost || locks.Lost() != each.lost || permit.Lost() != each.lost {
			t.Errorf("%s: %v, %v", name, lock.Lost(), locks.Lost())
		}
	}
}
