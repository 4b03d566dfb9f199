package semel_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

func TestASemaphoreHasAsManyHoldersAsPermits(t *testing.T) {
	n := start(t)
	for name, rdb := range map[string]*redis.Client{"s2": n.client(resp2), "s3": n.client()} {
		seats := semel.New(rdb, name, semel.WithPolicy(semel.Policy{As: "lock"}))
		first, err := seats.TryAcquire(ctx, "k", 2)
		same(t, err, nil)
		second, err := seats.Acquire(ctx, "k", 2)
		same(t, err, nil)
		same(t, [2]int{first.Slot(), second.Slot()}, [2]int{0, 1})
		_, err = seats.TryAcquire(ctx, "k", 2)
		is(t, err, semel.ErrInFlight)
		_, err = seats.Acquire(ctx, "k", 2, semel.WithWait(30*time.Millisecond))
		is(t, err, semel.ErrInFlight)

		token := first.Token()
		same(t, first.Release(), nil)
		same(t, first.Release(), nil)
		_, err = seats.TryAcquire(ctx, "k", 1) // one is held: fewer permits count it
		is(t, err, semel.ErrInFlight)
		next, err := seats.TryAcquire(ctx, "k", 2)
		same(t, err, nil)
		same(t, next.Slot(), 0)
		if next.Token() <= token {
			t.Errorf("token %d after %d", next.Token(), token)
		}
		third, err := seats.TryAcquire(ctx, "k", 3)
		same(t, err, nil)
		for _, each := range []*semel.Permit{second, next, third} {
			same(t, each.Release(), nil)
			is(t, context.Cause(each.Context()), context.Canceled)
		}
	}
}

func TestWrongPermitsAreRefused(t *testing.T) {
	n := start(t)
	seats := semel.New(n.client(), "s", semel.WithPolicy(semel.Policy{As: "lock"}))
	for _, permits := range []int{-1, 0, 1025} {
		_, err := seats.TryAcquire(ctx, "k", permits)
		is(t, err, semel.ErrOption)
	}
	_, err := seats.TryAcquire(ctx, "", 1)
	is(t, err, semel.ErrKey)
	var none semel.Permit
	same(t, none.Token(), 0)
	if none.Release() == nil || (*semel.Permit)(nil).Release() == nil {
		t.Error("nothing was released")
	}
	held, err := seats.TryAcquire(ctx, "k", 1)
	same(t, err, nil)
	same(t, held.Release(), nil)
}

func TestAPermitThatWasLostIsSaidToBeLost(t *testing.T) {
	n := start(t)
	rdb := n.client()
	seats := semel.New(rdb, "s", semel.WithPolicy(semel.Policy{As: "lock"}))
	held, err := seats.TryAcquire(ctx, "k", 1, semel.WithLease(300*time.Millisecond))
	same(t, err, nil)
	same(t, rdb.Do(ctx, "SEMEL.FORGET", "s", "{k}#0").Err(), nil)
	select {
	case <-held.Context().Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the loss is not noticed")
	}
	is(t, context.Cause(held.Context()), semel.ErrLeaseLost)
	is(t, held.Release(), semel.ErrLeaseLost)
}

func TestWaitersForPermitsGetThem(t *testing.T) {
	n := start(t)
	seats := semel.New(n.client(), "s", semel.WithPolicy(semel.Policy{As: "lock"}))
	const permits = 3
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 12 {
		all.Add(1)
		go func() {
			defer all.Done()
			held, err := seats.Acquire(ctx, "k", permits)
			if err != nil {
				t.Error(err)
				return
			}
			now := inside.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			inside.Add(-1)
			same(t, held.Release(), nil)
		}()
	}
	all.Wait()
	if most.Load() > permits {
		t.Errorf("%d held %d permits", most.Load(), permits)
	}
}

func TestACallerWhoLeavesHoldsNoPermit(t *testing.T) {
	n := start(t)
	rdb := n.client()
	seats := semel.New(rdb, "s", semel.WithPolicy(semel.Policy{As: "lock"}))
	held, err := seats.TryAcquire(ctx, "k", 1)
	same(t, err, nil)
	leaves, cancel := context.WithCancelCause(ctx)
	left := errors.New("left")
	done := make(chan error)
	go func() {
		_, err := seats.Acquire(leaves, "k", 1)
		done <- err
	}()
	cancel(left)
	is(t, <-done, left)
	same(t, held.Release(), nil)
	until(t, "nobody has a permit", func() bool {
		found, err := rdb.Do(ctx, "SEMEL.PERMITS", "s", "k").Slice()
		return err == nil && len(found) == 0
	})
}
