package semel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

// connections are those of clients, without the one that asks.
func (n *node) connections() int {
	count := 0
	text := n.call("INFO", "clients").(string)
	if _, rest, ok := strings.Cut(text, "connected_clients:"); ok {
		_, _ = fmt.Sscanf(rest, "%d", &count)
	}
	return count - 1
}

// free: a lock is held by nobody, and nobody waits for it.
func free(t *testing.T, n *node, locks *semel.Claims, key string) {
	t.Helper()
	until(t, "nobody waits", func() bool { return n.waiters() == 0 })
	until(t, "nobody owns it: "+fmt.Sprint(n.call("SEMEL.EXPLAIN", locks.Name(), key)),
		func() bool { return n.state(locks.Name(), key) == "absent" })
	lock, err := locks.TryLock(ctx, key)
	is(t, err, nil)
	is(t, lock.Unlock(), nil)
}

// 4,000 calls whose contexts end while their connections are made, while they wait, and after.
func TestOnceAgain22_ACallReturnsWhenItsContextEndsAndLeavesNoOwner(t *testing.T) {
	n := start(t)
	for _, policy := range []string{"lock", "fair-lock"} {
		locks := semel.New(n.client(), policy, semel.WithPolicy(semel.Policy{As: policy}))
		holder, err := locks.Lock(ctx, "k")
		is(t, err, nil)
		const seed = 7
		random := rand.New(rand.NewSource(seed))
		var latest atomic.Int64
		for burst := 0; burst < 2000; burst += 50 {
			var group sync.WaitGroup
			for range 50 {
				after := time.Duration(random.Int63n(int64(18 * time.Millisecond)))
				group.Add(1)
				go func() {
					defer group.Done()
					timed, cancel := context.WithTimeout(ctx, after)
					defer cancel()
					begun := time.Now()
					if _, err := locks.Lock(timed, "k"); err == nil {
						t.Error("two holders")
					} else if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v, seed %d", err, seed)
					}
					if late := int64(time.Since(begun) - after); late > latest.Load() {
						latest.Store(late)
					}
				}()
			}
			group.Wait()
		}
		if late := time.Duration(latest.Load()); late > 5*time.Second {
			t.Fatalf("a call returned %v after its context had ended", late)
		}
		is(t, holder.Unlock(), nil)
		free(t, n, locks, "k")
	}
	until(t, "waiting connections end", func() bool { return n.connections() <= 200 })
	until(t, "they do", func() bool { return n.waiters() == 0 })
}

// The lock becomes free in the moment in which waiters leave: each grant is used or released.
func TestOnceAgain22_AGrantToAWaiterThatLeavesGoesToTheNext(t *testing.T) {
	n := start(t)
	const seed = 11
	random := rand.New(rand.NewSource(seed))
	for _, policy := range []string{"lock", "fair-lock"} {
		locks := semel.New(n.client(), policy, semel.WithPolicy(semel.Policy{As: policy}))
		for range 60 {
			holder, err := locks.Lock(ctx, "k")
			is(t, err, nil)
			var group sync.WaitGroup
			var inside atomic.Int32
			for range 8 {
				after := time.Duration(random.Int63n(int64(6 * time.Millisecond)))
				group.Add(1)
				go func() {
					defer group.Done()
					timed, cancel := context.WithTimeout(ctx, after)
					defer cancel()
					lock, err := locks.Lock(timed, "k")
					if err != nil {
						return
					}
					if inside.Add(1) != 1 {
						t.Errorf("two holders, seed %d", seed)
					}
					inside.Add(-1)
					if err := lock.Unlock(); err != nil {
						t.Errorf("%v, seed %d", err, seed)
					}
				}()
			}
			_ = holder.Unlock()
			group.Wait()
		}
		free(t, n, locks, "k")
	}
}

func quick(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 }

// The reply to the claim comes after the patience, after the context, or never.
func TestOnceAgain22_AGrantWhoseReplyComesLateIsReleased(t *testing.T) {
	n := start(t)
	r := n.relay()
	rdb := n.client(r.through, quick)
	orders := semel.New(rdb, "orders", semel.WithPatience(500*time.Millisecond))
	_, err := semel.Once(ctx, orders, "first", gives(1))
	is(t, err, nil)

	held := r.hold(t, "SEMEL.CLAIM", "patience", 1)
	_, err = semel.Once(ctx, orders, "patience", never(t))
	is(t, err, semel.ErrUnavailable)
	until(t, "it is released by its id", func() bool {
		return n.state("orders", "patience") == "absent"
	})
	close(held.open)

	// Nor can it be asked for again before its own reply comes.
	held = r.hold(t, "SEMEL.CLAIM", "late", 1)
	looks := r.hold(t, "SEMEL.GETCLAIM", "late", 1)
	_, err = semel.Once(ctx, orders, "late", never(t))
	is(t, err, semel.ErrUnavailable)
	<-looks.met
	same(t, n.state("orders", "late"), "held")
	close(held.open)
	until(t, "it is released on its connection, or by its id", func() bool {
		return n.state("orders", "late") == "absent"
	})
	close(looks.open)

	held = r.hold(t, "SEMEL.CLAIM", "context", 1)
	timed, cancel := context.WithCancel(ctx)
	results := make(chan error)
	go func() {
		_, err := semel.Once(timed, orders, "context", never(t),
			semel.WithPatience(time.Minute))
		results <- err
	}()
	<-held.met
	same(t, n.state("orders", "context"), "held")
	cancel()
	is(t, <-results, context.Canceled)
	until(t, "it is released", func() bool { return n.state("orders", "context") == "absent" })
	close(held.open)
}

// What stands between cuts, delays and doubles the replies at each step of getting a lock.
func TestOnceAgain22_NoStepOfALockLeavesAnOwner(t *testing.T) {
	n := start(t)
	words := []string{"HELLO", "SEMEL.NAMESPACE", "SEMEL.CLAIM", "SEMEL.WAIT", "SEMEL.RELEASE",
		"SEMEL.GETCLAIM"}
	for i, word := range words {
		for kind, treat := range map[string]func(*relay) *rule{
			"cut":   func(r *relay) *rule { return r.cut(word, 1) },
			"held":  func(r *relay) *rule { return r.hold(t, word, "", 1) },
			"twice": func(r *relay) *rule { return r.twice(word, 1) },
		} {
			for _, waits := range []bool{true, false} {
				name := fmt.Sprintf("%s-%d-%v", kind, i, waits)
				r := n.relay()
				holder, err := semel.New(n.client(), name).TryLock(ctx, "k")
				is(t, err, nil)
				treated := treat(r)
				locks := semel.New(n.client(r.through, quick), name,
					semel.WithPatience(400*time.Millisecond), semel.WithLease(time.Hour))
				timed, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
				results := make(chan error)
				go func() {
					lock, err := locks.Lock(timed, "k")
					if err == nil {
						err = lock.Unlock()
					}
					results <- err
				}()
				if !waits { // the lock becomes free while it is asked for
					_ = holder.Unlock()
				}
				begun := time.Now()
				err = <-results
				cancel()
				if late := time.Since(begun); late > 5*time.Second {
					t.Fatalf("%s: it returned after %v", name, late)
				}
				if waits {
					if err == nil {
						t.Fatalf("%s: two holders", name)
					}
					_ = holder.Unlock()
				}
				free(t, n, semel.New(n.client(), name), "k")
				if treated.open != nil { // go-redis' Close waits for who reads
					close(treated.open)
				}
			}
		}
	}
}

// The node is killed while a call waits, while one holds, and while one is given up.
func TestOnceAgain22_ANodeThatIsKilledAndStartedAgainHasNoOwnerLeft(t *testing.T) {
	n := start(t)
	r := n.relay()
	rdb := n.client(r.through, quick)
	locks := semel.New(rdb, "locks", semel.WithPatience(10*time.Second))
	holder, err := locks.Lock(ctx, "k")
	is(t, err, nil)
	results := make(chan error)
	go func() {
		lock, err := locks.Lock(ctx, "k")
		if err == nil {
			err = lock.Unlock()
		}
		results <- err
	}()
	until(t, "it waits", func() bool { return n.waiters() == 1 })
	n.kill()
	n.run()
	is(t, <-results, nil) // the node has forgotten the holder
	err = holder.Unlock()
	is(t, err, semel.ErrLeaseLost)
	free(t, n, locks, "k")

	// Given up while the node stands still: released when it goes on.
	n.stop()
	hasty := semel.New(rdb, "locks", semel.WithPatience(500*time.Millisecond))
	_, err = hasty.TryLock(ctx, "stopped")
	is(t, err, semel.ErrUnavailable)
	n.goOn()
	free(t, n, locks, "stopped")
}

func TestOnceAgain22_AnUnlockThatTheNodeDidNotAnswerIsRepeated(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(quick), "locks", semel.WithLease(time.Hour),
		semel.WithPatience(time.Second))
	lock, err := locks.Lock(ctx, "k")
	is(t, err, nil)
	n.stop()
	err = lock.Unlock()
	n.goOn()
	is(t, err, semel.ErrUnavailable)
	free(t, n, locks, "k")
}

func TestOnceAgain26_ATransientErrorIsRepeatedWhilePatienceIsLeft(t *testing.T) {
	n := start(t)
	r := n.relay()
	orders := semel.New(n.client(r.through), "orders")
	for _, word := range []string{"BUSY Redis is busy running a script.", "TRYAGAIN applied",
		"LOADING the dataset", "MASTERDOWN link", "CLUSTERDOWN the cluster", "READONLY a replica",
		"MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1", "OOM limit", "MISCONF the disk"} {
		for _, command := range []string{"SEMEL.NAMESPACE", "SEMEL.CLAIM", "SEMEL.COMPLETE"} {
			key := command + word[:4]
			r.answer(command, 2, "-"+word+"\r\n")
			done, err := semel.Once(ctx, semel.New(n.client(r.through), "orders"), key, gives("x"))
			if word == "OOM limit" && command == "SEMEL.COMPLETE" { // the second is of the mark
				is(t, err, semel.ErrResultNotKept)
			} else {
				is(t, err, nil)
			}
			same(t, done.Attempt, 1)
			same(t, n.state("orders", key), "done")
		}
		r.answer("SEMEL.RELEASE", 2, "-"+word+"\r\n")
		lock, err := orders.TryLock(ctx, "l")
		is(t, err, nil)
		is(t, lock.Unlock(), nil)
		release := busy(t, orders, "w"+word[:4], "paid")
		r.answer("SEMEL.WAIT", 2, "-"+word+"\r\n")
		waited := make(chan error)
		go func() {
			_, err := semel.Once(ctx, orders, "w"+word[:4], never(t), semel.WithWait(time.Minute))
			waited <- err
		}()
		until(t, "it waits", func() bool { return n.waiters() == 1 })
		release()
		is(t, <-waited, nil)
	}
	// Others that begin alike are answers.
	r.answer("SEMEL.CLAIM", 1, "-BUSYKEY no\r\n")
	_, err := semel.Once(ctx, orders, "k", never(t))
	same(t, redis.HasErrorPrefix(err, "BUSYKEY"), true)
}

// A script of another client keeps the node, longer than a try takes.
func TestOnceAgain26_AScriptThatRunsDelaysACompletion(t *testing.T) {
	n := start(t)
	n.call("CONFIG", "SET", "busy-reply-threshold", "20")
	orders := semel.New(n.client(), "orders", semel.WithPatience(15*time.Second))
	script := make(chan error, 1)
	done, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (string, error) {
		rdb := n.client(func(o *redis.Options) { o.ReadTimeout = -1 })
		go func() { script <- rdb.Eval(ctx, "while true do end", nil).Err() }()
		probe := n.client()
		until(t, "the node is busy", func() bool {
			return redis.HasErrorPrefix(probe.Get(ctx, "x").Err(), "BUSY")
		})
		time.AfterFunc(300*time.Millisecond, func() { _ = probe.ScriptKill(ctx).Err() })
		return "paid", nil
	})
	is(t, err, nil)
	same(t, done.Value, "paid")
	<-script
	same(t, n.state("orders", "k"), "done")
}

func TestOnceAgain27_TheLongestWaitIsAWait(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	for _, wait := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 200 * 365 * 24 * time.Hour,
		semel.Forever} {
		key := fmt.Sprint(int64(wait))
		release := busy(t, orders, key, "paid")
		results := make(chan error)
		go func() {
			_, err := semel.Once(ctx, orders, key, never(t), semel.WithWait(wait))
			results <- err
		}()
		until(t, "it waits", func() bool { return n.waiters() == 1 })
		release()
		is(t, <-results, nil)
	}
}
