package semel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

func goexit() { runtime.Goexit() }

func TestAContextThatEnds(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	ended, cancel := context.WithCancelCause(ctx)
	why := errors.New("the user left")
	cancel(why)
	_, err := semel.Once(ended, orders, "k", never(t))
	is(t, err, why)
	same(t, n.state("orders", "k"), "absent")
	_, err = orders.Lock(ended, "k")
	is(t, err, why)

	// While it waits: the place in the queue is gone, so that nobody is granted for nothing.
	release := busy(t, orders, "k", "paid")
	waiting, cancel := context.WithCancelCause(ctx)
	results := make(chan error)
	go func() {
		_, err := semel.Once(waiting, orders, "k", never(t), semel.WithWait(semel.Forever))
		results <- err
	}()
	until(t, "it waits", func() bool { return n.waiters() == 1 })
	cancel(why)
	is(t, <-results, why)
	until(t, "nobody waits", func() bool { return n.waiters() == 0 })
	release()

	// In the function: it is told, and what it returns counts.
	running, cancel := context.WithCancelCause(ctx)
	_, err = semel.Once(running, orders, "run", func(ctx context.Context, _ semel.Work) (int, error) {
		cancel(why)
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	is(t, err, why)
	same(t, n.state("orders", "run"), "absent")
	done, err := semel.Once(running, orders, "run", never(t))
	is(t, err, why)
	same(t, done.Replayed, false)
	finishing, cancel := context.WithCancelCause(ctx)
	_, err = semel.Once(finishing, orders, "run", func(context.Context, semel.Work) (int, error) {
		cancel(why)
		return 7, nil
	})
	is(t, err, nil)
	same(t, n.state("orders", "run"), "done")
}

// A waiter that left is not granted: the lock is free for the next at once.
func TestAWaiterThatLeftHoldsNothing(t *testing.T) {
	n := start(t)
	for _, policy := range []string{"lock", "fair-lock"} {
		locks := semel.New(n.client(), policy, semel.WithPolicy(semel.Policy{As: policy}))
		for range 20 {
			held, err := locks.TryLock(ctx, "k")
			is(t, err, nil)
			waiting, cancel := context.WithCancel(ctx)
			results := make(chan error)
			go func() {
				lock, err := locks.Lock(waiting, "k")
				if err == nil {
					err = lock.Unlock()
				}
				results <- err
			}()
			until(t, "it waits", func() bool { return n.waiters() == 1 })
			unlocked := make(chan error)
			go func() { unlocked <- held.Unlock() }()
			cancel()
			if err := <-results; err != nil {
				is(t, err, context.Canceled)
			}
			is(t, <-unlocked, nil)
			next, err := locks.Lock(ctx, "k", semel.WithWait(5*time.Second))
			is(t, err, nil)
			is(t, next.Unlock(), nil)
		}
	}
}

// The reply to the claim is lost, and the context ends before it can be asked again.
func TestAClaimOfACancelledCallIsGivenBack(t *testing.T) {
	n := start(t)
	p := n.proxy()
	orders := semel.New(n.client(p.through, func(o *redis.Options) { o.MaxRetries = -1 }), "orders")
	_, err := semel.Once(ctx, orders, "first", gives(1))
	is(t, err, nil)
	ended, cancel := context.WithCancel(ctx)
	p.cut("SEMEL.CLAIM", 1)
	go func() {
		for n.state("orders", "k") != "held" && ended.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err = semel.Once(ended, orders, "k", func(ctx context.Context, _ semel.Work) (int, error) {
		<-ctx.Done() // it was asked again sooner
		return 0, ctx.Err()
	})
	cancel()
	is(t, err, context.Canceled)
	until(t, "it is given back", func() bool { return n.state("orders", "k") == "absent" })
}

func TestLostRepliesAreAskedAgain(t *testing.T) {
	n := start(t)
	p := n.proxy()
	for _, retries := range []int{-1, 3} { // those of go-redis, too
		rdb := n.client(p.through, func(o *redis.Options) { o.MaxRetries = retries })
		orders := semel.New(rdb, "orders")
		for _, word := range []string{"SEMEL.NAMESPACE", "SEMEL.CLAIM", "SEMEL.COMPLETE"} {
			p.cut(word, 3)
			key := word + string(rune('a'+retries+1))
			done, err := semel.Once(ctx, orders, key, gives("x"))
			is(t, err, nil)
			same(t, done.Attempt, 1)
			same(t, n.state("orders", key), "done")
		}
		p.cut("SEMEL.FAIL", 2)
		_, err := semel.Once(ctx, orders, "f", func(context.Context, semel.Work) (int, error) {
			return 0, errors.New("no")
		})
		same(t, err.Error(), "no")
		same(t, n.state("orders", "f"), "absent")
		p.cut("SEMEL.RELEASE", 1)
		lock, err := orders.TryLock(ctx, "l")
		is(t, err, nil)
		is(t, lock.Unlock(), nil)
		same(t, n.state("orders", "l"), "absent")
	}
	// WAIT: the connection ends, and it waits again.
	orders := semel.New(n.client(p.through), "orders")
	release := busy(t, orders, "w", "paid")
	p.cut("SEMEL.WAIT", 1)
	results := make(chan error)
	go func() {
		_, err := semel.Once(ctx, orders, "w", never(t), semel.WithWait(semel.Forever))
		results <- err
	}()
	until(t, "it waits", func() bool { return n.waiters() == 1 })
	release()
	is(t, <-results, nil)
}

func TestTheLeaseIsRenewedWhileTheWorkRuns(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	_, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (int, error) {
		until(t, "three renewals", func() bool { return n.calls("SEMEL.RENEW") >= 3 })
		return 1, nil
	}, semel.WithLease(100*time.Millisecond))
	is(t, err, nil)
	// A lease shorter than a round trip may be lost, but nothing hangs, and the work is recorded or
	// the error says so.
	done, err := semel.Once(ctx, orders, "short", gives(1), semel.WithLease(time.Millisecond))
	if err != nil {
		is(t, err, semel.ErrLeaseLost)
	} else {
		same(t, done.Value, 1)
	}
}

func TestALostLeaseEndsTheContextOfTheWork(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders", semel.WithLease(150*time.Millisecond))
	loses := func(ctx context.Context, _ semel.Work) (string, error) {
		n.advance(time.Hour)
		<-ctx.Done()
		is(t, context.Cause(ctx), semel.ErrLeaseLost)
		return "late", nil
	}
	done, err := semel.Once(ctx, orders, "late", loses)
	is(t, err, nil)
	same(t, done.Late, true)

	n.call("SEMEL.NAMESPACE", "strict", "STRICT")
	strict := semel.New(n.client(), "strict", semel.WithLease(150*time.Millisecond))
	_, err = semel.Once(ctx, strict, "k", loses)
	is(t, err, semel.ErrLeaseLost)

	taken := func(ctx context.Context, work semel.Work) (string, error) {
		n.advance(time.Hour)
		second, err := semel.Once(context.Background(), orders, "taken", gives("second"))
		is(t, err, nil)
		same(t, second.Epoch > work.Epoch, true)
		<-ctx.Done()
		return "first", nil
	}
	_, err = semel.Once(ctx, orders, "taken", taken)
	is(t, err, semel.ErrLeaseLost)
	again, err := semel.Once(ctx, orders, "taken", never(t))
	is(t, err, nil)
	same(t, again.Value, "second")

	broken := errors.New("broken")
	_, err = semel.Once(ctx, orders, "both", func(ctx context.Context, w semel.Work) (string, error) {
		n.advance(time.Hour)
		_, err := semel.Once(context.Background(), orders, "both", gives("second"))
		is(t, err, nil)
		<-ctx.Done()
		return "", broken
	})
	is(t, err, semel.ErrLeaseLost)
	is(t, err, broken)
}

func TestWorkThatRunsTooLongIsToldSo(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	_, err := semel.Once(ctx, orders, "k", func(ctx context.Context, _ semel.Work) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}, semel.WithLease(60*time.Millisecond), semel.WithRunMax(100*time.Millisecond))
	is(t, err, semel.ErrLeaseLost)
}

func TestANodeThatIsKilled(t *testing.T) {
	n := start(t)
	short := semel.WithPatience(200 * time.Millisecond)
	quick := func(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 }
	orders := semel.New(n.client(quick), "orders", short, semel.WithLease(300*time.Millisecond))
	done, err := semel.Once(ctx, orders, "k", func(ctx context.Context, _ semel.Work) (string, error) {
		n.kill()
		<-ctx.Done()
		is(t, context.Cause(ctx), semel.ErrLeaseLost)
		return "paid", nil
	})
	is(t, err, semel.ErrUnrecorded)
	is(t, err, semel.ErrUnavailable)
	same(t, done.Value, "paid")

	_, err = semel.Once(ctx, orders, "k", never(t))
	is(t, err, semel.ErrUnavailable)
	_, err = orders.Lock(ctx, "k")
	is(t, err, semel.ErrUnavailable)
	same(t, semel.ConsumeOnce(ctx, orders, "k", nil).Verdict, semel.Retry)
	is(t, semel.NewTokens(orders).Consume(ctx, "t"), semel.ErrUnavailable)

	// It is back, without its memory, and goes down while somebody waits and somebody holds.
	n.run()
	orders = semel.New(n.client(quick), "orders", short, semel.WithLease(300*time.Millisecond))
	lock, err := orders.Lock(ctx, "l")
	is(t, err, nil)
	waits := make(chan error)
	go func() {
		_, err := orders.Lock(ctx, "l")
		waits <- err
	}()
	until(t, "it waits", func() bool { return n.waiters() == 1 })
	n.kill()
	is(t, <-waits, semel.ErrUnavailable)
	<-lock.Context().Done()
	is(t, context.Cause(lock.Context()), semel.ErrLeaseLost)
	is(t, lock.Unlock(), semel.ErrUnavailable)
}

func TestANodeThatIsRestartedWhileTheWorkRuns(t *testing.T) {
	storage := t.TempDir()
	n := start(t, "--storage-enabled", "yes", "--dir", storage, "--durability", "logged")
	orders := semel.New(n.client(), "orders", semel.WithPolicy(semel.Policy{As: "call"}))
	done, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (string, error) {
		n.kill()
		n.run()
		return "paid", nil
	})
	is(t, err, nil)
	same(t, done.Value, "paid")
	again, err := semel.Once(ctx, orders, "k", never(t))
	is(t, err, nil)
	same(t, again.Value, "paid")
}

// Without a storage it has forgotten the claim: the work is done, and the caller is told that it is
// not recorded.
func TestANodeThatForgetsIsNotMistaken(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders", semel.WithPolicy(semel.Policy{As: "call"}))
	_, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (string, error) {
		n.kill()
		n.run()
		return "paid", nil
	})
	is(t, err, semel.ErrUnrecorded)
	// The next call declares the namespace again.
	_, err = semel.Once(ctx, orders, "k", gives("again"))
	is(t, err, nil)
}

// A node that stands still answers nothing: a context still ends a call.
func TestANodeThatStandsStill(t *testing.T) {
	n := start(t)
	rdb := n.client(func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond })
	orders := semel.New(rdb, "orders")
	_, err := semel.Once(ctx, orders, "k", gives(1))
	is(t, err, nil)
	n.stop()
	timed, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = semel.Once(timed, orders, "other", never(t))
	is(t, err, context.DeadlineExceeded)
	n.goOn()
}

// fillMemory until the node takes no key of 1,000 bytes.
func fillMemory(n *node) {
	rdb := redis.NewClient(&redis.Options{Addr: n.address(), Protocol: 2})
	defer rdb.Close()
	for _, size := range []int{100_000, 1000} {
		value := strings.Repeat("x", size)
		for i := 0; rdb.Set(ctx, fmt.Sprintf("filler%d-%d", size, i), value, 0).Err() == nil; i++ {
		}
	}
}

// OOM was repeated with the same result until patience ended, and the claim was left to its lease.
func TestOnceAgain22_WorkWhoseResultHasNoRoomIsDoneAndRunsOnce(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders", semel.WithPatience(300*time.Millisecond),
		semel.WithPolicy(semel.Policy{As: "call", Lease: 3 * time.Second}))
	n.call("CONFIG", "SET", "maxmemory", "64mb")
	done, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (string, error) {
		fillMemory(n)
		return strings.Repeat("y", 5_000_000), nil
	})
	is(t, err, semel.ErrResultNotKept)
	same(t, strings.Contains(err.Error(), "OOM"), true)
	same(t, len(done.Value), 5_000_000)
	same(t, n.state("orders", "k"), "done")
	n.advance(time.Minute)
	again, err := semel.Once(ctx, orders, "k", never(t))
	is(t, err, semel.ErrNoResult)
	same(t, again.Replayed, true)
}

// The first try has recorded the result, its reply is lost, and the second finds no memory.
func TestOnceAgain22_AResultThatWasKeptIsNotCalledDropped(t *testing.T) {
	n := start(t)
	relay := n.relay()
	relay.cut("SEMEL.COMPLETE", 1)
	relay.answer("SEMEL.COMPLETE", 1, "-OOM command not allowed\r\n")
	orders := semel.New(n.client(relay.through), "orders")
	_, err := semel.Once(ctx, orders, "k", gives("paid"))
	is(t, err, nil)
	again, err := semel.Once(ctx, orders, "k", never(t))
	is(t, err, nil)
	same(t, again.Value, "paid")
}
