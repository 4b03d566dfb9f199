package semel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	semel "semel/client"
)

// heard collects what an observer was told.
type heard struct {
	mu  sync.Mutex
	all []semel.Observed
}

func (h *heard) add(seen semel.Observed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, seen)
}

// words are the events since the last call, in their order.
func (h *heard) words() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var words []string
	for _, each := range h.all {
		words = append(words, string(each.Event))
	}
	h.all = nil
	return strings.Join(words, " ")
}

func paid(context.Context, semel.Work) (string, error) { return "paid", nil }

func TestAnObserverHearsOfCallsThatDidNotRun(t *testing.T) {
	n := start(t)
	rdb := n.client()
	var h heard
	calls := semel.New(rdb, "calls", semel.WithPolicy(semel.Policy{As: "call"}),
		semel.WithObserver(h.add))
	for range 2 {
		_, err := semel.Once(ctx, calls, "k", paid, semel.WithOperation("pay"))
		same(t, err, nil)
	}
	h.mu.Lock()
	seen := append([]semel.Observed(nil), h.all...)
	h.mu.Unlock()
	if len(seen) != 1 || seen[0].Namespace != "calls" || seen[0].Key != "k" || seen[0].Took <= 0 {
		t.Errorf("%+v", seen)
	}
	same(t, h.words(), "replayed")

	_, err := semel.Once(ctx, calls, "k", paid, semel.WithOperation("refund"))
	is(t, err, semel.ErrMismatch)
	same(t, h.words(), "mismatch")

	_, err = semel.Once(ctx, calls, "failed", func(context.Context, semel.Work) (string, error) {
		return "", errors.New("the function's own")
	}, semel.WithFailure(semel.Keep))
	same(t, h.words(), "") // it ran
	_, err = semel.Once(ctx, calls, "failed", paid)
	is(t, err, semel.ErrKeptFailure)
	same(t, h.words(), "kept_failure")

	_, err = semel.Once(ctx, calls, "doubt", func(context.Context, semel.Work) (string, error) {
		return "", semel.ErrOutcomeUnknown
	}, semel.WithFailure(semel.InDoubt))
	_, err = semel.Once(ctx, calls, "doubt", paid)
	is(t, err, semel.ErrInDoubt)
	same(t, h.words(), "in_doubt")

	_, err = semel.Once(ctx, calls, "outer", func(context.Context, semel.Work) (string, error) {
		_, err := semel.Once(ctx, calls, "outer", paid)
		is(t, err, semel.ErrInFlight)
		_, err = semel.Once(ctx, calls, "outer", paid, semel.WithWait(5*time.Millisecond))
		is(t, err, semel.ErrInFlight)
		return "", nil
	})
	same(t, h.words(), "rejected rejected") // one of each call, however often it asked

	for _, wrong := range []semel.Option{semel.WithLease(0), semel.WithScope(semel.Scope{})} {
		_, err = semel.Once(ctx, calls, "k", paid, wrong)
		is(t, err, semel.ErrOption)
	}
	_, err = semel.Once(ctx, calls, "", paid)
	is(t, err, semel.ErrKey)
	same(t, h.words(), "")
}

func TestAnObserverHearsOfMessagesLocksTokensAndSilence(t *testing.T) {
	n := start(t)
	var h heard
	observer := semel.WithObserver(h.add)
	mails := semel.New(n.client(), "mails", semel.WithPolicy(semel.Policy{As: "message"}), observer)
	handle := func(context.Context, semel.Work) error { return nil }
	same(t, semel.ConsumeOnce(ctx, mails, "m", handle).Verdict, semel.Ack)
	same(t, semel.ConsumeOnce(ctx, mails, "m", handle).Duplicate, true)
	same(t, h.words(), "replayed")
	semel.ConsumeOnce(ctx, mails, "", handle) // unguarded: it ran
	same(t, h.words(), "")

	locks := semel.New(n.client(), "locks", semel.WithPolicy(semel.Policy{As: "lock"}), observer)
	lock, err := locks.TryLock(ctx, "k")
	same(t, err, nil)
	_, err = locks.TryLock(ctx, "k")
	is(t, err, semel.ErrInFlight)
	permit, err := locks.TryAcquire(ctx, "k", 1)
	same(t, err, nil)
	_, err = locks.Acquire(ctx, "k", 1, semel.WithWait(20*time.Millisecond))
	is(t, err, semel.ErrInFlight)
	same(t, h.words(), "rejected rejected")
	same(t, lock.Unlock(), nil)
	same(t, permit.Release(), nil)

	issued := semel.New(n.client(), "issued", semel.WithPolicy(semel.Policy{As: "token"}), observer)
	_, err = semel.Once(ctx, issued, "forged", paid)
	is(t, err, semel.ErrUnknown)
	same(t, h.words(), "unknown_token")

	n.kill()
	_, err = semel.Once(ctx, mails, "n", paid, semel.WithPatience(20*time.Millisecond))
	is(t, err, semel.ErrUnavailable)
	same(t, h.words(), "unreachable")
	left, cancel := context.WithCancel(ctx)
	cancel()
	_, err = semel.Once(left, mails, "n", paid)
	is(t, err, context.Canceled)
	same(t, h.words(), "") // a caller that has gone
}

// What an observer does is not what the call does.
func TestAnObserverThatPanicsOrLeaves(t *testing.T) {
	n := start(t)
	panics := semel.New(n.client(), "calls", semel.WithPolicy(semel.Policy{As: "call"}),
		semel.WithObserver(func(semel.Observed) { panic("the observer's own") }))
	for i := range 3 {
		done, err := semel.Once(ctx, panics, "k", paid)
		same(t, err, nil)
		same(t, done.Value, "paid")
		same(t, done.Replayed, i > 0)
	}
	_, err := semel.Once(ctx, panics, "k", paid, semel.WithObserver(nil))
	is(t, err, semel.ErrOption)

	// One that ends its goroutine leaves no claim behind.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = semel.Once(ctx, panics, "k", paid,
			semel.WithObserver(func(semel.Observed) { runtime.Goexit() }))
	}()
	<-ended
	done, err := semel.Once(ctx, panics, "k", paid)
	same(t, err, nil)
	same(t, done.Replayed, true)

	// One that closes the client, and calls the very claims that call it.
	rdb := n.client()
	var calls *semel.Claims
	inner := ""
	calls = semel.New(rdb, "calls", semel.WithObserver(func(seen semel.Observed) {
		if inner == "" {
			inner = "once"
			done, err := semel.Once(ctx, calls, "k", paid)
			inner = fmt.Sprint(done.Replayed, err)
		}
		_ = rdb.Close()
	}))
	done, err = semel.Once(ctx, calls, "k", paid)
	same(t, err, nil)
	same(t, done.Value, "paid")
	same(t, inner, "true <nil>")
}

func TestSeveralCallsObserveAtOnce(t *testing.T) {
	n := start(t)
	var all, inside atomic.Int32
	both := make(chan struct{})
	calls := semel.New(n.client(), "calls", semel.WithPolicy(semel.Policy{As: "call"}),
		semel.WithObserver(func(semel.Observed) {
			all.Add(1)
			if inside.Add(1) == 2 {
				close(both)
			}
			<-both // neither holds what the other needs
		}))
	_, err := semel.Once(ctx, calls, "k", paid)
	same(t, err, nil)
	var group sync.WaitGroup
	for range 2 {
		group.Add(1)
		go func() {
			defer group.Done()
			_, err := semel.Once(ctx, calls, "k", paid)
			same(t, err, nil)
		}()
	}
	group.Wait()
	same(t, all.Load(), 2)
}
