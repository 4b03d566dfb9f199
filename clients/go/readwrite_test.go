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

func TestAReadWriteLockHasManyReadersOrOneWriter(t *testing.T) {
	n := start(t)
	for name, rdb := range map[string]*redis.Client{"w2": n.client(resp2), "w3": n.client()} {
		locks := semel.New(rdb, name, semel.WithPolicy(semel.Policy{As: "lock"}))
		one, err := locks.TryReadLock(ctx, "k")
		same(t, err, nil)
		other, err := locks.ReadLock(ctx, "k")
		same(t, err, nil)
		_, err = locks.TryWriteLock(ctx, "k")
		is(t, err, semel.ErrInFlight)
		_, err = locks.WriteLock(ctx, "k", semel.WithWait(30*time.Millisecond))
		is(t, err, semel.ErrInFlight)
		third, err := locks.TryReadLock(ctx, "k") // the writer that gave up is not next any more
		same(t, err, nil)
		read := other.Token()
		for _, each := range []*semel.Access{one, other, third} {
			same(t, each.Release(), nil)
			same(t, each.Release(), nil)
			is(t, context.Cause(each.Context()), context.Canceled)
		}
		writer, err := locks.TryWriteLock(ctx, "k")
		same(t, err, nil)
		if writer.Token() <= read {
			t.Errorf("token %d of a writer after %d", writer.Token(), read)
		}
		_, err = locks.TryReadLock(ctx, "k")
		is(t, err, semel.ErrInFlight)
		same(t, writer.Release(), nil)
		last, err := locks.TryReadLock(ctx, "k")
		same(t, err, nil)
		if last.Token() < writer.Token() {
			t.Errorf("token %d of a reader after %d", last.Token(), writer.Token())
		}
		same(t, last.Release(), nil)
	}
}

func TestAWriterThatWaitsIsNotStarved(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(), "w", semel.WithPolicy(semel.Policy{As: "lock"}))
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for !stop.Load() {
				held, err := locks.ReadLock(ctx, "k", semel.WithWait(50*time.Millisecond))
				if err == nil {
					time.Sleep(5 * time.Millisecond)
					err = held.Release()
				}
				if err != nil && !errors.Is(err, semel.ErrInFlight) {
					t.Error(err)
				}
			}
		}()
	}
	for range 5 {
		writer, err := locks.WriteLock(ctx, "k", semel.WithWait(time.Minute))
		same(t, err, nil)
		same(t, writer.Release(), nil)
	}
	stop.Store(true)
	readers.Wait()
}

func TestAWaitForAReadWriteLockThatIsCancelledHoldsNothing(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(), "w", semel.WithPolicy(semel.Policy{As: "lock"}))
	reader, err := locks.ReadLock(ctx, "k")
	same(t, err, nil)
	waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = locks.WriteLock(waiting, "k")
	is(t, err, context.DeadlineExceeded)
	same(t, reader.Release(), nil)
	writer, err := locks.WriteLock(ctx, "k", semel.WithWait(time.Minute))
	same(t, err, nil)
	same(t, writer.Release(), nil)
	_, err = locks.TryReadLock(ctx, "")
	is(t, err, semel.ErrKey)
	var none *semel.Access
	same(t, none.Token(), 0)
	same(t, none.Lost(), false)
	copied := semel.Access{}
	same(t, copied.Token(), 0)
	if copied.Release() == nil || none.Release() == nil {
		t.Error("what owns nothing was released")
	}
}

func TestWhoLeavesWhileHeWaitsForAReadWriteLockStopsNobody(t *testing.T) {
	n := start(t)
	r := n.relay()
	policy := semel.WithPolicy(semel.Policy{As: "lock"})
	direct := semel.New(n.client(), "locks", policy)
	locks := semel.New(n.client(r.through, quick), "locks", policy)
	reader, err := direct.ReadLock(ctx, "k")
	same(t, err, nil)
	held := func() int { return len(n.call("SEMEL.RWLOCKS", "locks", "k").([]any)) }
	leaves := func(before func()) {
		leaving, leave := context.WithCancel(ctx)
		left := make(chan error)
		go func() {
			_, err := locks.WriteLock(leaving, "k")
			left <- err
		}()
		until(t, "the writer is next", func() bool { return held() == 2 })
		before()
		leave()
		is(t, <-left, context.Canceled)
	}
	ways := map[string]func(){
		"between two attempts": func() { leaves(func() {}) },
		"in an attempt": func() {
			rule := r.hold(t, "SEMEL.RWLOCK", "", 1)
			leaves(func() { <-rule.met })
			close(rule.open)
		},
		"without an answer": func() {
			silent := r.add(&rule{word: "SEMEL.RWLOCK", left: 0, answer: scriptRuns})
			waiting, stop := context.WithCancel(ctx)
			defer stop()
			left := make(chan error)
			go func() {
				_, err := locks.WriteLock(waiting, "k", semel.WithPatience(100*time.Millisecond))
				left <- err
			}()
			until(t, "the writer is next", func() bool { return held() == 2 })
			r.mu.Lock()
			silent.left = 1 << 30
			r.mu.Unlock()
			is(t, <-left, semel.ErrUnavailable)
			r.end(silent)
		},
	}
	for way, leave := range ways {
		const times = 4
		begun := time.Now()
		for range times {
			leave()
			until(t, "nobody is next", func() bool { return held() == 1 })
			other, err := direct.TryReadLock(ctx, "k")
			same(t, err, nil)
			same(t, other.Release(), nil)
		}
		// The place in front ends by itself after a second.
		if took := time.Since(begun); took > times*500*time.Millisecond {
			t.Errorf("%s: %v", way, took)
		}
	}
	same(t, reader.Release(), nil)
}
