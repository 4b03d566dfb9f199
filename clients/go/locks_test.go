package semel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

func newLocks(rdb redis.UniversalClient, options ...semel.Option) *semel.Claims {
	return semel.New(rdb, "locks", append(options, semel.WithPolicy(semel.Policy{As: "lock"}))...)
}

func isFree(n *node, keys ...string) bool {
	for _, key := range keys {
		if n.state("locks", key) != "absent" {
			return false
		}
	}
	return true
}

func TestLocksOfSeveralKeysAreAllOrNone(t *testing.T) {
	n := start(t)
	for _, rdb := range []*redis.Client{n.client(), n.client(resp2)} {
		var h heard
		locks := newLocks(rdb, semel.WithObserver(h.add))
		both, err := locks.LockAll(ctx, []string{"b", "a", "b"})
		same(t, err, nil)
		if both.Token("a") == 0 || both.Token("b") == 0 || both.Token("c") != 0 {
			t.Error(both.Token("a"), both.Token("b"), both.Token("c"))
		}
		_, err = locks.TryLockAll(ctx, []string{"c", "a", "d"})
		is(t, err, semel.ErrInFlight)
		same(t, h.all[0].Key, "a") // the key that is in the way
		same(t, h.words(), "rejected")
		_, err = locks.LockAll(ctx, []string{"c", "a"}, semel.WithWait(20*time.Millisecond))
		is(t, err, semel.ErrInFlight)
		same(t, isFree(n, "c", "d"), true)
		_, err = locks.TryLock(ctx, "b")
		is(t, err, semel.ErrInFlight)
		same(t, both.Lost(), false)
		same(t, both.Unlock(), nil)
		same(t, both.Unlock(), nil)
		is(t, context.Cause(both.Context()), context.Canceled)
		same(t, isFree(n, "a", "b"), true)
	}
}

func TestWrongKeysOfLocksAreRefused(t *testing.T) {
	n := start(t)
	locks := newLocks(n.client())
	many := make([]string, 1025)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, keys := range [][]string{nil, {}, many} {
		_, err := locks.TryLockAll(ctx, keys)
		is(t, err, semel.ErrOption)
	}
	for _, keys := range [][]string{{"a", ""}, {"a", strings.Repeat("k", 70_000)}} {
		_, err := locks.TryLockAll(ctx, keys)
		is(t, err, semel.ErrKey)
	}
	same(t, isFree(n, "a"), true)
	all, err := locks.TryLockAll(ctx, many[:1024])
	same(t, err, nil)
	same(t, all.Unlock(), nil)
	var none semel.Locks
	copied := *all
	for _, each := range []*semel.Locks{nil, &none, &copied} {
		same(t, each.Token("0"), 0)
		same(t, each.Lost(), false)
		if each.Unlock() == nil || each.Context().Err() == nil {
			t.Error("a copy owns something")
		}
	}
	// What is finished is no lock, and no wait ends that: it is said before what a wait ends.
	_, err = semel.Once(ctx, semel.New(n.client(), "locks"), "done", paid)
	same(t, err, nil)
	held, err := locks.TryLock(ctx, "held")
	same(t, err, nil)
	_, err = locks.LockAll(ctx, []string{"held", "done"})
	if err == nil || !strings.Contains(err.Error(), "finished work") {
		t.Error(err)
	}
	same(t, held.Unlock(), nil)
}

func TestLocksThatAreLostSaySo(t *testing.T) {
	n := start(t)
	locks := newLocks(n.client())
	both, err := locks.TryLockAll(ctx, []string{"a", "b"}, semel.WithLease(300*time.Millisecond))
	same(t, err, nil)
	n.call("SEMEL.FORGET", "locks", "b")
	select {
	case <-both.Context().Done():
	case <-time.After(patience):
		t.Fatal("the loss is not noticed")
	}
	is(t, context.Cause(both.Context()), semel.ErrLeaseLost)
	same(t, both.Lost(), true)
	other, err := locks.TryLock(ctx, "b")
	same(t, err, nil)
	is(t, both.Unlock(), semel.ErrLeaseLost)
	is(t, both.Unlock(), semel.ErrLeaseLost)
	same(t, isFree(n, "a"), true) // the rest was given back, and the next holder's was not
	same(t, other.Unlock(), nil)
}

// Callers who name the same keys in all orders, and shared objects that two of them unlock.
func TestLocksOfSeveralKeysDoNotDeadlock(t *testing.T) {
	n := start(t)
	locks := newLocks(n.client())
	keys := []string{"a", "b", "c"}
	var inside atomic.Int32
	var group sync.WaitGroup
	for i := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			mine := append(slices.Clone(keys[i%3:]), keys[:i%3]...)
			for range 5 {
				held, err := locks.LockAll(ctx, mine)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				inside.Add(-1)
				other := make(chan error)
				go func() { other <- held.Unlock() }()
				if err := errors.Join(held.Unlock(), <-other); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	same(t, isFree(n, keys...), true)
}

func TestALostReplyToAClaimOfSeveralKeys(t *testing.T) {
	n := start(t)
	p := n.proxy()
	locks := newLocks(n.client(p.through))
	p.cut("SEMEL.CLAIMALL", 2)
	both, err := locks.TryLockAll(ctx, []string{"a", "b"}) // asked again by its id
	same(t, err, nil)
	same(t, n.calls("semel.claimall"), 3)
	same(t, both.Lost(), false)
	same(t, both.Unlock(), nil)
	p.cut("SEMEL.CLAIMALL", 1000)
	_, err = locks.TryLockAll(ctx, []string{"a", "b"}, semel.WithPatience(50*time.Millisecond))
	is(t, err, semel.ErrUnavailable)
	until(t, "nobody has a lock", func() bool { return isFree(n, "a", "b") })
}

func TestACallerWhoLeavesHoldsNoneOfTheLocks(t *testing.T) {
	n := start(t)
	locks := newLocks(n.client())
	held, err := locks.TryLock(ctx, "b")
	same(t, err, nil)
	for range 20 {
		leaves, cancel := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			_, err := locks.LockAll(leaves, []string{"a", "b"})
			done <- err
		}()
		cancel()
		is(t, <-done, context.Canceled)
	}
	same(t, held.Unlock(), nil)
	until(t, "nobody has a lock", func() bool { return isFree(n, "a", "b") })

	// The node stands still until patience is over, and grants them afterwards.
	rdb := n.client()
	locks = newLocks(rdb)
	both, err := locks.TryLockAll(ctx, []string{"a", "b"})
	same(t, err, nil)
	same(t, both.Unlock(), nil)
	n.stop()
	_, err = locks.TryLockAll(ctx, []string{"a", "b"}, semel.WithPatience(100*time.Millisecond))
	is(t, err, semel.ErrUnavailable)
	n.goOn()
	until(t, "nobody has a lock", func() bool { return isFree(n, "a", "b") })
	both, err = locks.LockAll(ctx, []string{"a", "b"})
	same(t, err, nil)
	same(t, both.Unlock(), nil)
	same(t, rdb.Close(), nil)
	_, err = locks.LockAll(ctx, []string{"a", "b"})
	is(t, err, redis.ErrClosed)
}
