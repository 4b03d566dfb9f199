package semel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

var ctx = context.Background()

type receipt struct {
	Number int
	Text   string
}

func TestOnceRunsAndReplays(t *testing.T) {
	n := start(t)
	for protocol, rdb := range map[string]*redis.Client{"2": n.client(resp2), "3": n.client()} {
		orders := semel.New(rdb, "orders"+protocol, semel.WithPolicy(semel.Policy{As: "call"}))
		for _, key := range []string{"order-4711", "préfix:ключ:鍵", "\x00\xff\r\n$3", "a b"} {
			first, err := semel.Once(ctx, orders, key, gives(receipt{12, "crème"}))
			is(t, err, nil)
			same(t, first.Value, receipt{12, "crème"})
			same(t, first.Replayed || first.Epoch == 0 || first.Attempt != 1, false)
			again, err := semel.Once(ctx, orders, key, gives(receipt{13, ""}))
			is(t, err, nil)
			same(t, again.Value, receipt{12, "crème"})
			same(t, again.Replayed, true)
		}
	}
	other := semel.New(n.client(), "orders2", semel.WithPolicy(semel.Policy{As: "payment"}))
	_, err := semel.Once(ctx, other, "k", never(t))
	same(t, err != nil && strings.Contains(err.Error(), "declared with other terms"), true)
}

func TestOnceOfManyWorkersRunsOncePerKey(t *testing.T) {
	n := start(t)
	const keys, workers = 100, 16
	var ran [keys]atomic.Int32
	var group sync.WaitGroup
	clients := []*redis.Client{n.client(), n.client(resp2)}
	errs := make(chan error, keys*workers)
	for worker := range workers {
		orders := semel.New(clients[worker%2], "orders")
		group.Add(1)
		go func() {
			defer group.Done()
			for key := range keys {
				done, err := semel.Once(ctx, orders, fmt.Sprint(key),
					func(context.Context, semel.Work) (int32, error) {
						return 10 * ran[key].Add(1), nil
					}, semel.WithWait(semel.Forever))
				if err != nil || done.Value != 10 {
					errs <- fmt.Errorf("%v: %v", done, err)
				}
			}
		}()
	}
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	for key := range keys {
		same(t, ran[key].Load(), 1)
	}
}

// busy holds a claim until its release is called.
func busy(t *testing.T, c *semel.Claims, key string, value string) (release func()) {
	begun, go_on, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := semel.Once(ctx, c, key, func(context.Context, semel.Work) (string, error) {
			close(begun)
			<-go_on
			return value, nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-begun
	release = sync.OnceFunc(func() { close(go_on); <-ended })
	t.Cleanup(release)
	return release
}

func TestInFlightIsAnErrorOrAWait(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders", semel.WithOwner("me"))
	release := busy(t, orders, "k", "paid")
	_, err := semel.Once(ctx, orders, "k", never(t))
	is(t, err, semel.ErrInFlight)
	var details *semel.InFlightError
	same(t, errors.As(err, &details), true)
	same(t, details.Owner, "me")
	same(t, details.RetryAfter > 0 && details.Remaining > 0, true)

	_, err = semel.Once(ctx, orders, "k", never(t), semel.WithWait(time.Millisecond))
	is(t, err, semel.ErrInFlight)

	waited := make(chan semel.Done[string])
	// As many waits as the pool has connections, and it still serves.
	small := semel.New(n.client(func(o *redis.Options) { o.PoolSize = 2 }), "orders")
	for range 4 {
		go func() {
			done, _ := semel.Once(ctx, small, "k", never(t), semel.WithWait(semel.Forever))
			waited <- done
		}()
	}
	until(t, "four wait", func() bool { return n.waiters() == 4 })
	_, err = semel.Once(ctx, small, "other", gives("x"))
	is(t, err, nil)
	release()
	for range 4 {
		done := <-waited
		same(t, done.Value, "paid")
		same(t, done.Replayed, true)
	}
}

func TestAWaiterRunsWhatTheOtherGaveBack(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	lock, err := orders.Lock(ctx, "k")
	is(t, err, nil)
	results := make(chan error)
	go func() {
		_, err := semel.Once(ctx, orders, "k", gives("mine"), semel.WithWait(time.Minute))
		results <- err
	}()
	until(t, "it waits", func() bool { return n.waiters() == 1 })
	is(t, lock.Unlock(), nil)
	is(t, <-results, nil)
	same(t, n.state("orders", "k"), "done")
}

func TestAFailureGivesTheKeyBackOrIsKept(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	broken := errors.New("KEEP") // also a word of the command
	fails := func(context.Context, semel.Work) (string, error) { return "", broken }
	_, err := semel.Once(ctx, orders, "k", fails)
	is(t, err, broken)
	same(t, n.state("orders", "k"), "absent")
	done, err := semel.Once(ctx, orders, "k", gives("now"))
	is(t, err, nil)
	same(t, done.Attempt, 1) // given back as if it had not run

	_, err = semel.Once(ctx, orders, "kept", fails, semel.WithFailure(semel.Keep))
	is(t, err, broken)
	_, err = semel.Once(ctx, orders, "kept", never(t))
	is(t, err, semel.ErrKeptFailure)
	var kept *semel.KeptFailureError
	same(t, errors.As(err, &kept) && kept.Failure == "KEEP" && !kept.Poison, true)

	long := errors.New(strings.Repeat("é", 5000))
	_, err = semel.Once(ctx, orders, "long", func(context.Context, semel.Work) (string, error) {
		return "", long
	}, semel.WithFailure(semel.Keep))
	is(t, err, long)
	_, err = semel.Once(ctx, orders, "long", never(t))
	same(t, errors.As(err, &kept) && kept.Failure == strings.Repeat("é", 512), true)
}

func panics(t *testing.T, c *semel.Claims, key string) {
	defer func() { same(t, fmt.Sprint(recover()), "ouch") }()
	_, _ = semel.Once(ctx, c, key, func(context.Context, semel.Work) (int, error) { panic("ouch") })
	t.Error("the panic ended")
}

func TestAPanicGoesOnAndThePolicySaysWhatItMeans(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	panics(t, orders, "k")
	same(t, n.state("orders", "k"), "absent")
	exits := make(chan struct{})
	go func() {
		defer close(exits)
		_, _ = semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (int, error) {
			// As t.FailNow does.
			goexit()
			return 0, nil
		})
	}()
	<-exits
	same(t, n.state("orders", "k"), "absent")

	payments := semel.New(n.client(), "payments", semel.WithPolicy(semel.Policy{As: "payment"}))
	sent := semel.WithFirstSent(time.Now())
	_, err := semel.Once(ctx, payments, "fine", gives(1), sent)
	is(t, err, nil)
	panics(t, semel.New(n.client(), "payments", sent), "panic")
	_, err = semel.Once(ctx, payments, "panic", never(t), sent)
	is(t, err, semel.ErrInDoubt)
	_, err = semel.Once(ctx, payments, "504", func(context.Context, semel.Work) (int, error) {
		return 0, fmt.Errorf("504 from the bank: %w", semel.ErrOutcomeUnknown)
	}, sent)
	is(t, err, semel.ErrOutcomeUnknown)
	same(t, n.state("payments", "504"), "in_doubt")
	_, err = semel.Once(ctx, payments, "no", func(context.Context, semel.Work) (int, error) {
		return 0, errors.New("no such card")
	}, sent)
	same(t, err.Error(), "no such card")
	same(t, n.state("payments", "no"), "absent")
	_, err = semel.Once(ctx, payments, "old", never(t), semel.WithFirstSent(time.Unix(1, 0)))
	is(t, err, semel.ErrOutsideWindow)
}

func TestAResultThatCannotBeKept(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	done, err := semel.Once(ctx, orders, "k", gives[any](math.NaN()))
	is(t, err, semel.ErrResultNotKept)
	same(t, done.Value != nil, true)
	_, err = semel.Once(ctx, orders, "k", never(t))
	is(t, err, semel.ErrNoResult)

	huge := strings.Repeat("x", 17<<20)
	text, err := semel.Once(ctx, orders, "huge", gives(huge))
	is(t, err, semel.ErrResultNotKept)
	same(t, len(text.Value), len(huge))
	same(t, n.state("orders", "huge"), "done")

	_, err = semel.Once(ctx, orders, "number", gives(7))
	is(t, err, nil)
	_, err = semel.Once(ctx, orders, "number", never(t))
	same(t, err != nil && !errors.Is(err, semel.ErrNoResult), true) // a number is no string
	_, err = semel.Once(ctx, orders, "bytes", gives([]byte{0}), semel.WithCodec(semel.Bytes))
	is(t, err, nil)
	raw, err := semel.Once(ctx, orders, "bytes", gives([]byte{1}), semel.WithCodec(semel.Bytes))
	is(t, err, nil)
	same(t, string(raw.Value), "\x00")
	_, err = semel.Once(ctx, orders, "expired", gives("x"))
	is(t, err, nil)
	n.advance(25 * time.Hour)
	done2, err := semel.Once(ctx, orders, "expired", gives("again"))
	is(t, err, nil)
	same(t, done2.Value, "again")
}

func TestKeysAndOptionsThatAreWrong(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	for _, key := range []string{"", strings.Repeat("k", 70_000)} {
		_, err := semel.Once(ctx, orders, key, never(t))
		is(t, err, semel.ErrKey)
	}
	_, err := semel.Once(ctx, orders, "k", never(t), semel.WithLease(time.Microsecond))
	same(t, err != nil, true)
	_, err = semel.Once(ctx, orders, "k", never(t), semel.WithFingerprintOf(make(chan int)))
	same(t, err != nil, true)
	_, err = semel.Once(ctx, orders, "k", never(t), semel.WithOwner(strings.Repeat("o", 65)))
	same(t, err != nil, true)
	_, err = semel.Once(ctx, semel.New(n.client(), "no such"), "k", never(t))
	same(t, err != nil, true)

	_, err = semel.Once(ctx, orders, "f", gives("x"), semel.WithFingerprintOf(map[string]int{"a": 1}))
	is(t, err, nil)
	_, err = semel.Once(ctx, orders, "f", never(t), semel.WithFingerprintOf(map[string]int{"a": 2}))
	is(t, err, semel.ErrMismatch)
	n.call("SET", "orders:text", "x")
	_, err = semel.Once(ctx, orders, "text", never(t))
	same(t, redis.HasErrorPrefix(err, "WRONGTYPE"), true)
}
