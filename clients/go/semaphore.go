package semel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	permitsMax = 1024
	// Between two attempts that nothing ends a wait for: the first pause, and the longest.
	permitPause    = 2 * time.Millisecond
	permitPauseMax = 50 * time.Millisecond
)

// Permit is one of the permits of a semaphore. Its lease is renewed until Release, until it is lost,
// or for the time of WithRunMax. A copy of it, and &Permit{}, own nothing.
type Permit struct{ lock Lock }

// Acquire waits for one of so many permits of a key, 1 to 1024, until ctx ends, or for the time of
// WithWait; then the error is ErrInFlight. Who came first gets the permit that becomes free. ctx is for
// getting the permit: one that ends later does not release it.
//
// Each caller states how many permits there are. With fewer than before, no permit is given while
// there are as many holders as permits. Declare the namespace as "lock".
func (c *Claims) Acquire(ctx context.Context, key string, permits int,
	options ...Option) (*Permit, error) {
	s := c.settings(options)
	if !s.waitGiven {
		s.wait = Forever
	}
	return c.permit(ctx, key, permits, s)
}

// TryAcquire does not wait: ErrInFlight says that all permits are held.
func (c *Claims) TryAcquire(ctx context.Context, key string, permits int,
	options ...Option) (*Permit, error) {
	s := c.settings(options)
	s.wait = 0
	return c.permit(ctx, key, permits, s)
}

func (c *Claims) permit(ctx context.Context, key string, permits int, s settings) (*Permit, error) {
	if permits < 1 || permits > permitsMax {
		return nil, fmt.Errorf("%w: %d permits, 1 to %d are possible", ErrOption, permits, permitsMax)
	}
	s.permits = permits
	lock, err := c.lock(ctx, key, s)
	if err != nil {
		return nil, err
	}
	permit := &Permit{lock: Lock{held: lock.held}}
	permit.lock.self = &permit.lock
	return permit, nil
}

// jittered is half of a pause to all of it, so that waiters do not ask all at once.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2) }

// Slot is 0 to permits - 1: no other holder has it. It may name one of as many things.
func (p *Permit) Slot() int {
	if p == nil || !p.lock.own() {
		return 0
	}
	return p.lock.held.slot
}

// Token is the fencing token: it grows with each holder of this slot. What the holders write to
// should keep one for each slot, and refuse a smaller one. 0, of a copy, is nobody's.
func (p *Permit) Token() int64 {
	if p == nil {
		return 0
	}
	return p.lock.Token()
}

// Context ends when the permit is lost or released; context.Cause says ErrLeaseLost if lost.
func (p *Permit) Context() context.Context {
	if p == nil {
		return endedContext
	}
	return p.lock.Context()
}

// Lost says whether the permit is known to be lost, or its lease is over by the clock.
func (p *Permit) Lost() bool { return p != nil && p.lock.Lost() }

// Release gives the permit back. ErrLeaseLost: it was not held any more. ErrUnavailable: the node did
// not answer; it is given back as soon as it does, or its lease ends it. A second call returns what
// the first one did.
func (p *Permit) Release() error {
	if p == nil {
		return errNoLock
	}
	return p.lock.Unlock()
}
