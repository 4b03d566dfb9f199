package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const locksMax = 1024 // each of them is renewed by itself

// Locks are the locks of several keys that this process got at once, and holds until Unlock. The lease
// of each is renewed until then, until it is lost, or for the time of WithRunMax. A copy of it, and
// &Locks{}, own nothing.
type Locks struct {
	all    map[string]*Lock
	self   *Locks
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (l *Locks) own() bool { return l != nil && l.all != nil && l.self == l }

// LockAll waits until it gets the locks of all keys in one step, and holds none before: two callers who
// name the same keys in another order do not wait for each other for ever. It waits until ctx ends, or
// for the time of WithWait; then the error is ErrInFlight. Waiters have no order. There are 1 to 1,024
// keys; a key that is named twice counts once. All else is as of Lock.
func (c *Claims) LockAll(ctx context.Context, keys []string, options ...Option) (*Locks, error) {
	s := c.settings(options)
	if !s.waitGiven {
		s.wait = Forever
	}
	return c.lockAll(ctx, keys, s)
}

// TryLockAll does not wait: ErrInFlight says that another holds one of the locks, and this caller none.
func (c *Claims) TryLockAll(ctx context.Context, keys []string, options ...Option) (*Locks, error) {
	s := c.settings(options)
	s.wait = 0
	return c.lockAll(ctx, keys, s)
}

func (c *Claims) lockAll(ctx context.Context, keys []string, s settings) (*Locks, error) {
	began := time.Now()
	s.detached = true // the locks outlive the context that got them
	held, obstacle, err := c.acquireAll(ctx, keys, s)
	if err != nil {
		c.observe(s, obstacle, began, err)
		return nil, err
	}
	locks := &Locks{all: make(map[string]*Lock, len(held))}
	locks.self = locks
	locks.ctx, locks.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, h := range held {
		h.start(ctx)
		lock := &Lock{held: h}
		lock.self = lock
		locks.all[h.key] = lock
		context.AfterFunc(h.ctx, func() { locks.cancel(context.Cause(h.ctx)) })
	}
	return locks, nil
}

// acquireAll claims all keys or none. `obstacle` is the key that an error is about.
func (c *Claims) acquireAll(ctx context.Context, keys []string, s settings) (held []*held,
	obstacle string, err error) {
	if s.err != nil {
		return nil, "", s.err
	}
	distinct := make([]string, 0, len(keys))
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if key == "" {
			return nil, "", fmt.Errorf("%w: it is empty", ErrKey)
		}
		if !seen[key] {
			seen[key] = true
			distinct = append(distinct, key)
		}
	}
	if len(distinct) == 0 || len(distinct) > locksMax {
		return nil, "", fmt.Errorf("%w: %d keys, 1 to %d are possible", ErrOption, len(distinct),
			locksMax)
	}
	if ctx.Err() != nil {
		return nil, distinct[0], context.Cause(ctx)
	}
	held, obstacle, err = c.askedForAll(ctx, distinct, s)
	if ctx.Err() != nil {
		for _, h := range held {
			c.abandon(abandoned{request: request{key: h.key, lease: h.lease}, epoch: h.work.Epoch})
		}
		if err == nil || !isReply(err) {
			err = context.Cause(ctx)
		}
		return nil, obstacle, err
	}
	return held, obstacle, err
}

func (c *Claims) askedForAll(ctx context.Context, keys []string, s settings) ([]*held, string, error) {
	known, err := c.ready(ctx)
	if err != nil {
		return nil, keys[0], err
	}
	lease := s.lease
	if lease == 0 {
		lease = known.lease
	}
	words, err := s.claimWords(lease)
	if err != nil {
		return nil, keys[0], err
	}
	r := requestOfAll{c.name, keys, words, lease}
	end := time.Now().Add(min(s.wait, waitMax))
	for delay := permitPause; ; delay = min(2*delay, permitPauseMax) {
		asked := time.Now()
		claims, granted, err := c.claimAll(ctx, s.patience, r)
		if err != nil {
			return nil, keys[0], err
		}
		if granted {
			held := make([]*held, len(keys))
			for i, found := range claims {
				held[i] = c.heldOf(keys[i], s, known, lease, asked, found)
			}
			return held, "", nil
		}
		i, err := obstacleIn(claims)
		late := s.wait != Forever && !time.Now().Before(end)
		if !errors.Is(err, ErrInFlight) || s.wait == 0 || late {
			return nil, keys[i], err
		}
		next := jittered(delay)
		if s.wait != Forever {
			next = min(next, time.Until(end))
		}
		if err := pause(ctx, next); err != nil {
			return nil, keys[i], err
		}
	}
}

// obstacleIn is why not all were granted: an error that waiting does not change comes before one that
// it does.
func obstacleIn(claims []fields) (at int, err error) {
	for i, found := range claims {
		var here error
		switch outcome := found.text("outcome"); outcome {
		case "free", "granted", "regranted":
			continue
		case "error":
			here = explained(nodeError(found.text("message")))
		case "replay":
			here = errFinished
		case "unprotected":
			here = &BusyError{"the namespace fails open, which is no lock"}
		default:
			here = refusal(found)
		}
		if !errors.Is(here, ErrInFlight) {
			return i, here
		}
		if err == nil {
			at, err = i, here
		}
	}
	if err == nil {
		err = errors.New("semel: not granted, and the node does not say why")
	}
	return at, err
}

var errFinished = errors.New("semel: the key is that of finished work, not of a lock")

// nodeError is an error of the node within a reply.
type nodeError string

func (e nodeError) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (nodeError) RedisError() {}

var _ redis.Error = nodeError("")

// requestOfAll is one claim of several keys. All its tries have the same CLAIM-ID.
type requestOfAll struct {
	namespace string
	keys      []string
	words     []any
	lease     time.Duration
}

func (r requestOfAll) command() []any {
	words := append([]any{"SEMEL.CLAIMALL", r.namespace}, r.words...)
	words = append(words, "KEYS", len(r.keys))
	for _, key := range r.keys {
		words = append(words, key)
	}
	return words
}

// single asks for one of the keys with the common CLAIM-ID: it meets the grant that all of them got.
func (r requestOfAll) single(key string) request {
	return request{key: key, words: append([]any{r.namespace, key}, r.words...), lease: r.lease}
}

// claimAll asks until the node has answered. What is granted after it has returned is released.
func (c *Claims) claimAll(ctx context.Context, patience time.Duration, r requestOfAll) (claims []fields,
	granted bool, err error) {
	late := func(value any) {
		if claims, granted, err := claimsOf(value, len(r.keys)); err == nil && granted {
			for i, found := range claims {
				c.abandon(abandoned{request: r.single(r.keys[i]), epoch: found.number("epoch")})
			}
		}
	}
	reply, unread, err := c.insist(ctx, patience, r.command(), late)
	if err == nil {
		return claimsOf(reply, len(r.keys))
	}
	if unread && !isReply(err) {
		for _, key := range r.keys {
			c.abandon(abandoned{request: r.single(key), again: true})
		}
	}
	return nil, false, err
}

func claimsOf(reply any, count int) (claims []fields, granted bool, err error) {
	found, err := fieldsOf(reply)
	if err != nil {
		return nil, false, err
	}
	parts, _ := found["claims"].([]any)
	if len(parts) != count {
		return nil, false, fmt.Errorf("semel: %d claims in the reply to %d keys", len(parts), count)
	}
	for _, part := range parts {
		each, err := fieldsOf(part)
		if err != nil {
			return nil, false, err
		}
		claims = append(claims, each)
	}
	return claims, found.text("outcome") == "granted", nil
}

// Token is the fencing token of a key: it grows with each holder of that key. 0 is nobody's: of a copy,
// or of a key that is not among them.
func (l *Locks) Token(key string) int64 {
	if !l.own() {
		return 0
	}
	return l.all[key].Token()
}

// Context ends when one of the locks is lost, or all are unlocked; context.Cause says ErrLeaseLost if
// lost.
func (l *Locks) Context() context.Context {
	if !l.own() {
		return endedContext
	}
	return l.ctx
}

// Lost says whether one of the locks is known to be lost, or its lease is over by the clock.
func (l *Locks) Lost() bool {
	if !l.own() {
		return false
	}
	for _, lock := range l.all {
		if lock.Lost() {
			return true
		}
	}
	return false
}

// Unlock gives all locks back, each as Lock.Unlock does, at the same time. The error joins theirs:
// ErrLeaseLost if one was not held any more. A second call returns what the first one did.
func (l *Locks) Unlock() error {
	if !l.own() {
		return errNoLock
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var all []error
	for key, lock := range l.all {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := lock.Unlock(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Errorf("%q: %w", key, err))
			}
		}()
	}
	group.Wait()
	return errors.Join(all...)
}
