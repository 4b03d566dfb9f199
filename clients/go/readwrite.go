package semel

import (
	"context"
	"time"
)

// nextTime is how long a caller who waits, and dies, stops the others.
const nextTime = time.Second

// Access is a hold of a read/write lock, as one of its readers or its writer. Its lease is renewed
// until Release, until it is lost, or for the time of WithRunMax. A copy of it, and &Access{}, own
// nothing.
type Access struct{ lock Lock }

// ReadLock waits to be one of the readers of a key, 128 at most, until ctx ends, or for the time of
// WithWait; then the error is ErrInFlight. The waiter in front is not overtaken. ctx is for getting in:
// one that ends later does not end the hold. There is no upgrade: a caller that has to write asks for
// WriteLock, and may read. Declare the namespace as "lock".
func (c *Claims) ReadLock(ctx context.Context, key string, options ...Option) (*Access, error) {
	return c.access(ctx, key, "READ", true, options)
}

// TryReadLock does not wait: ErrInFlight says that a writer is in, or another caller waits in front.
func (c *Claims) TryReadLock(ctx context.Context, key string, options ...Option) (*Access, error) {
	return c.access(ctx, key, "READ", false, options)
}

// WriteLock waits to be the only writer of a key, while there is no reader; all else is as of ReadLock.
func (c *Claims) WriteLock(ctx context.Context, key string, options ...Option) (*Access, error) {
	return c.access(ctx, key, "WRITE", true, options)
}

// TryWriteLock does not wait: ErrInFlight says that others are in, or another caller waits in front.
func (c *Claims) TryWriteLock(ctx context.Context, key string, options ...Option) (*Access, error) {
	return c.access(ctx, key, "WRITE", false, options)
}

func (c *Claims) access(ctx context.Context, key, access string, waits bool,
	options []Option) (*Access, error) {
	s := c.settings(options)
	s.access = access
	if !waits {
		s.wait = 0
	} else if !s.waitGiven {
		s.wait = Forever
	}
	lock, err := c.lock(ctx, key, s)
	if err != nil {
		return nil, err
	}
	held := &Access{lock: Lock{held: lock.held}}
	held.lock.self = &held.lock
	return held, nil
}

// Token is the fencing token: that of a reader is at least that of every writer before it, and smaller
// than that of every writer after it. 0, of a copy, is nobody's.
func (a *Access) Token() int64 {
	if a == nil || !a.lock.own() {
		return 0
	}
	return a.lock.held.token
}

// Context ends when the hold is lost or released; context.Cause says ErrLeaseLost if lost.
func (a *Access) Context() context.Context {
	if a == nil {
		return endedContext
	}
	return a.lock.Context()
}

// Lost says whether the hold is known to be lost, or its lease is over by the clock.
func (a *Access) Lost() bool { return a != nil && a.lock.Lost() }

// Release gives the hold back, as Permit.Release gives back a permit.
func (a *Access) Release() error {
	if a == nil {
		return errNoLock
	}
	return a.lock.Unlock()
}

// waitForAccess asks again until it is granted, and says when the last attempt began.
func (c *Claims) waitForAccess(ctx context.Context, s settings, r request) (found fields,
	asked time.Time, err error) {
	end := time.Now().Add(min(s.wait, waitMax))
	for delay := permitPause; ; delay = min(2*delay, permitPauseMax) {
		next := jittered(delay)
		if s.wait != Forever {
			next = min(next, time.Until(end))
		}
		if err := pause(ctx, next); err != nil {
			c.abandon(abandoned{request: r}) // or the place in front would stop the others
			return nil, asked, err
		}
		asked = time.Now()
		late := s.wait != Forever && !asked.Before(end)
		r.isNext = r.isNext && !late
		found, err = c.claim(ctx, s.patience, r)
		if err != nil || found.text("outcome") != "in_flight" || late {
			return found, asked, err
		}
	}
}
