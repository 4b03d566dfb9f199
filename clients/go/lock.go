package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Lock is a lock that this process holds: one acquisition, which several goroutines may share. Its
// lease is renewed until Unlock, until it is lost, or for the time of WithRunMax. A copy of it, and
// &Lock{}, own nothing.
type Lock struct {
	held   *held
	self   *Lock // a copy has another address
	unlock sync.Once
	err    error
}

var errNoLock = errors.New("semel: a copy of a lock, or a zero one, owns nothing")

var endedContext = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLock)
	return ctx
}()

// own: it is the lock that was given out.
func (l *Lock) own() bool { return l != nil && l.held != nil && l.self == l }

// Lock waits for a lock until ctx ends, or for the time of WithWait; then the error is ErrInFlight.
// ctx is for getting the lock: one that ends later does not unlock it.
//
// Declare the namespace as "lock", or as "fair-lock" for locks in the order of arrival.
func (c *Claims) Lock(ctx context.Context, key string, options ...Option) (*Lock, error) {
	s := c.settings(options)
	if !s.waitGiven {
		s.wait = Forever
	}
	return c.lock(ctx, key, s)
}

// TryLock does not wait: ErrInFlight says that another holds the lock.
func (c *Claims) TryLock(ctx context.Context, key string, options ...Option) (*Lock, error) {
	s := c.settings(options)
	s.wait = 0
	return c.lock(ctx, key, s)
}

func (c *Claims) lock(ctx context.Context, key string, s settings) (*Lock, error) {
	s.detached = true // the lock outlives the context that got it
	found, err := c.acquire(ctx, key, s)
	if err != nil {
		return nil, err
	}
	if found.held == nil {
		return nil, errFinished
	}
	lock := &Lock{held: found.held}
	lock.self = lock
	return lock, nil
}

// Token is the fencing token: it grows with each holder. What the holder writes to should refuse a
// token smaller than one it has seen. 0, of a copy, is nobody's.
func (l *Lock) Token() int64 {
	if !l.own() {
		return 0
	}
	return l.held.work.Epoch
}

// Context ends when the lock is lost or unlocked; context.Cause says ErrLeaseLost if lost.
func (l *Lock) Context() context.Context {
	if !l.own() {
		return endedContext
	}
	return l.held.ctx
}

// Lost says whether the lock is known to be lost, or its lease is over by the clock of this process,
// also where the process stood still and no renewal was tried. Context tells of a loss as it is found.
func (l *Lock) Lost() bool {
	if !l.own() {
		return false
	}
	h := l.held
	return h.isLost.Load() || !h.isOver.Load() && h.until.isPast()
}

// Unlock gives the lock back. ErrLeaseLost: it was not held any more, also if another owner has come
// and gone, or its context has ended before (WithRunMax). ErrUnavailable: the node did not answer; the
// lock is given back as soon as it does, or its lease ends it; both are possible. A second call
// returns what the first one did.
func (l *Lock) Unlock() error {
	if !l.own() {
		return errNoLock
	}
	l.unlock.Do(func() {
		h := l.held
		h.stop()
		<-h.done
		found, repeated, silent := h.owner("SEMEL.RELEASE")
		err := silent
		// An earlier try may have taken effect. While the lease runs, nobody else can have had the lock
		// before that.
		ours := repeated && !h.until.isPast()
		if outcome := found.text("outcome"); err == nil && outcome != "ok" && !ours {
			h.lose(outcome)
			err = lost(outcome)
		} else if err != nil {
			h.claims.abandon(abandoned{request: request{key: h.key}, epoch: h.work.Epoch,
				until: h.until.time()})
		}
		h.isOver.Store(true)
		if h.isLost.Load() { // what its holder did since then was not protected
			err = context.Cause(h.ctx)
			if silent != nil {
				err = fmt.Errorf("%w: %w", err, silent)
			}
		}
		l.err = err
		h.cancel(nil)
	})
	return l.err
}
