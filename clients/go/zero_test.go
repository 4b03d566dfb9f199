package semel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

func TestOnceAgain09_TheZeroOfEveryAnswerIsNoAnswer(t *testing.T) {
	var verdict semel.Verdict
	same(t, verdict != semel.Ack && verdict != semel.Retry && verdict != semel.DeadLetter, true)
	same(t, verdict.String(), "not answered")
	same(t, semel.Verdict(7).String(), "Verdict(7)")
	same(t, semel.Consumed{}.Verdict, verdict)
	var done semel.Done[int]
	same(t, done.Ran || done.Replayed, false)

	n := start(t)
	orders := semel.New(n.client(), "orders")
	first, err := semel.Once(ctx, orders, "k", gives(1))
	is(t, err, nil)
	again, err := semel.Once(ctx, orders, "k", gives(1))
	is(t, err, nil)
	same(t, first.Ran && !first.Replayed && !again.Ran && again.Replayed, true)
	broken := errors.New("broken")
	failed, err := semel.Once(ctx, orders, "f", func(context.Context, semel.Work) (int, error) {
		return 0, broken
	})
	is(t, err, broken)
	same(t, failed.Ran, true)
	none, err := semel.Once(ctx, orders, "", gives(1))
	is(t, err, semel.ErrKey)
	same(t, none, semel.Done[int]{})

	var lock *semel.Lock
	for _, each := range []*semel.Lock{lock, {}} {
		same(t, each.Token(), 0)
		same(t, each.Lost(), false)
		same(t, each.Context().Err() != nil, true)
		same(t, each.Unlock() != nil, true)
	}
}

// record keeps the words of each claim.
type claimHook struct {
	mu     sync.Mutex
	claims []string
}

func (r *claimHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (r *claimHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *claimHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.mu.Lock()
		if cmd.Args()[0] == "SEMEL.CLAIM" {
			r.claims = append(r.claims, fmt.Sprintln(cmd.Args()...))
		}
		r.mu.Unlock()
		return next(ctx, cmd)
	}
}

func TestOnceAgain11_ZeroIsZeroAndATimeIsATime(t *testing.T) {
	n := start(t)
	rdb := n.client()
	orders := semel.New(rdb, "orders")
	_, err := semel.Once(ctx, orders, "k", gives(1))
	is(t, err, nil)
	seen := &claimHook{}
	rdb.AddHook(seen)
	wrong := map[string]semel.Option{
		"WithLease(0s)": semel.WithLease(0), "WithLease(-1s)": semel.WithLease(-time.Second),
		"WithLease(1ns)": semel.WithLease(1), "WithLease(999": semel.WithLease(time.Millisecond - 1),
		"WithLease(2562047h": semel.WithLease(math.MaxInt64), "WithWait(-2": semel.WithWait(-2 * time.Second),
		"WithWait(1ns)": semel.WithWait(1), "WithPatience(0s)": semel.WithPatience(0),
		"WithPatience(-1": semel.WithPatience(-1), "WithRunMax(-1": semel.WithRunMax(-1),
		"WithRunMax(1ns)": semel.WithRunMax(1), "WithFirstSent": semel.WithFirstSent(time.Time{}),
		"WithCodec(nil)": semel.WithCodec(nil), "WithFailure": semel.WithFailure("MAYBE"),
		`WithFailure("")`: semel.WithFailure(""), "WithPolicy": semel.WithPolicy(semel.Policy{As: "lock"}),
	}
	for name, option := range wrong {
		_, err := semel.Once(ctx, orders, "k2", never(t), option)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "WithPolicy" { // which New takes
			err := semel.New(rdb, "orders", option).Err()
			same(t, err != nil && strings.Contains(err.Error(), name), true)
		}
		_, err = orders.TryLock(ctx, "k2", option)
		same(t, err != nil, true)
		same(t, semel.ConsumeOnce(ctx, orders, "k2", nil, option).Err != nil, true)
	}
	for _, policy := range []semel.Policy{{Lease: -1}, {ResultTTL: 1}, {Window: -time.Second},
		{AttemptsMax: -1}, {UniqueTTL: math.MaxInt64}} {
		c := semel.New(rdb, "wrong", semel.WithPolicy(policy))
		_, err := semel.Once(ctx, c, "k2", never(t))
		same(t, err != nil && c.Err() != nil, true)
	}
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	_, err = semel.Once(ctx, semel.New(ring, "orders"), "k2", never(t))
	same(t, err != nil && strings.Contains(err.Error(), "Ring"), true)
	_, err = semel.Once(ctx, semel.New(nil, "orders"), "k2", never(t))
	same(t, err != nil, true)
	tokens := semel.NewTokens(semel.New(rdb, "tokens"))
	for _, ttl := range []time.Duration{0, -1, 1, time.Millisecond - 1, math.MaxInt64} {
		token, err := tokens.Issue(ctx, ttl)
		same(t, token == "" && err != nil, true)
		_, err = tokens.IssueAs(ctx, "t", ttl)
		same(t, err != nil, true)
	}
	same(t, len(seen.claims), 0)
	same(t, n.state("orders", "k2"), "absent")

	// 1970 is a time, and so is one before it.
	n.call("SEMEL.NAMESPACE", "window", "WINDOW", "1000")
	window := semel.New(rdb, "window")
	_, err = semel.Once(ctx, window, "k", never(t), semel.WithFirstSent(time.UnixMilli(0)))
	same(t, strings.Contains(seen.claims[0], "FIRST-SENT 0"), true)
	if err != nil {
		is(t, err, semel.ErrOutsideWindow)
	}

	// Off is 0 where As has another time.
	payments := semel.New(rdb, "payments", semel.WithPolicy(semel.Policy{As: "payment", Window: semel.Off}))
	_, err = semel.Once(ctx, payments, "k", gives(1), semel.WithFirstSent(time.UnixMilli(1)))
	is(t, err, nil)

	// 0 is no wait, for a lock as well.
	holder, err := orders.Lock(ctx, "lock")
	is(t, err, nil)
	_, err = orders.Lock(ctx, "lock", semel.WithWait(0))
	is(t, err, semel.ErrInFlight)
	is(t, holder.Unlock(), nil)
	_, err = semel.Once(ctx, orders, "never renewed", func(ctx context.Context, _ semel.Work) (int, error) {
		<-ctx.Done()
		is(t, context.Cause(ctx), semel.ErrLeaseLost)
		return 1, nil
	}, semel.WithRunMax(0))
	is(t, err, nil) // nobody has taken over
}

// They were refused by the node at the first call, as errors that a consumer took for Retry.
func TestOnceAgain11_AnOptionBeyondALimitOfTheNodeIsRefusedWhenTheObjectIsMade(t *testing.T) {
	n := start(t)
	rdb := n.client()
	orders := semel.New(rdb, "orders")
	label := strings.Repeat("x", 65)
	text := strings.Repeat("n", 65)
	for limit, option := range map[string]semel.Option{
		"limit is 64": semel.WithOwner(label), "1ms to": semel.WithLease(100*366*24*time.Hour + 1),
		"WithFirstSent(1969": semel.WithFirstSent(time.Unix(-1, 0).UTC()),
		"63 bits":            semel.WithFirstSent(time.Unix(math.MaxInt64/1000, 0)),
		"limit is 512":       semel.WithOperation(strings.Repeat("o", 513)),
		"operation is empty": semel.WithOperation("")} {
		made := semel.New(rdb, "orders", option)
		is(t, made.Err(), semel.ErrOption)
		same(t, strings.Contains(made.Err().Error(), limit), true)
		none := semel.ConsumeOnce(ctx, made, "k", nothing(t))
		same(t, none.Verdict, semel.Verdict(0)) // it says nothing of the message
		is(t, none.Err, semel.ErrOption)

		_, err := semel.Once(ctx, orders, "k", never(t), option)
		same(t, strings.Contains(fmt.Sprint(err), limit), true)
		same(t, errors.Is(err, semel.ErrOption) || errors.Is(err, semel.ErrKey), true)
		verdict := semel.Retry // the consumer's fault, and no message's
		if errors.Is(err, semel.ErrKey) {
			verdict = semel.DeadLetter
		}
		same(t, semel.ConsumeOnce(ctx, orders, "k", nothing(t), option).Verdict, verdict)
	}
	for _, name := range []string{"", "bad name!", "é", "a/b", "a:b", "\x00", "\xff", text} {
		made := semel.New(rdb, name)
		is(t, made.Err(), semel.ErrOption)
		same(t, strings.Contains(made.Err().Error(), "1 to 64 bytes of A-Za-z0-9_.-"), true)
		same(t, strings.Contains(made.Err().Error(), fmt.Sprintf("%q", name)), true)
		_, err := made.TryLock(ctx, "k")
		is(t, err, semel.ErrOption)
		_, err = semel.NewTokens(made).Issue(ctx, time.Minute)
		is(t, err, semel.ErrOption)
	}
	same(t, n.state("orders", "k"), "absent")

	longest := semel.New(rdb, "A-z_0."+text[:58], semel.WithOwner(label[:64]),
		semel.WithLease(100*366*24*time.Hour), semel.WithOperation(strings.Repeat("o", 512)),
		semel.WithFirstSent(time.UnixMilli(0)))
	is(t, longest.Err(), nil)
	_, err := semel.Once(ctx, longest, "k", gives(1))
	is(t, err, nil)
}

func nothing(t *testing.T) func(context.Context, semel.Work) error {
	return func(context.Context, semel.Work) error {
		t.Error("it ran")
		return nil
	}
}

func TestOnceAgain12_ALockIsOneAcquisitionAndACopyOwnsNothing(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(), "locks", semel.WithPolicy(semel.Policy{As: "lock"}))
	lock, err := locks.Lock(ctx, "k")
	is(t, err, nil)
	// What go vet forbids to write.
	copied := copyOf(lock)
	same(t, copied.Token(), 0)
	same(t, copied.Unlock() != nil, true)
	same(t, copied.Context().Err() != nil, true)
	same(t, n.state("locks", "k"), "held")
	is(t, lock.Context().Err(), nil)

	// Goroutines that share it give it back once, and get one answer.
	var group sync.WaitGroup
	for range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			_, _ = lock.Token(), lock.Lost()
			if err := lock.Unlock(); err != nil {
				t.Error(err)
			}
			if lock.Context().Err() == nil {
				t.Error("it is unlocked, and its context goes on")
			}
		}()
	}
	group.Wait()
	same(t, n.calls("SEMEL.RELEASE"), 1)
	// The next holder is not touched by what is left of the first.
	next, err := locks.TryLock(ctx, "k")
	is(t, err, nil)
	is(t, lock.Unlock(), nil)
	same(t, n.state("locks", "k"), "held")
	// A second acquisition in the same process waits as any other.
	_, err = locks.TryLock(ctx, "k")
	is(t, err, semel.ErrInFlight)
	is(t, next.Unlock(), nil)
}

// copyOf copies field by field what go vet would find.
func copyOf(lock *semel.Lock) *semel.Lock {
	made := new(semel.Lock)
	reflectCopy(made, lock)
	return made
}

func TestOnceAgain10_WorkIsToldWhenItsRenewalEnds(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	begun := time.Now()
	_, err := semel.Once(ctx, orders, "k", func(ctx context.Context, _ semel.Work) (int, error) {
		<-ctx.Done() // not at the next renewal, which is after 20 s
		return 0, context.Cause(ctx)
	}, semel.WithLease(time.Minute), semel.WithRunMax(50*time.Millisecond))
	is(t, err, semel.ErrLeaseLost)
	same(t, time.Since(begun) < 10*time.Second, true)
	consumed := semel.ConsumeOnce(ctx, orders, "m", func(ctx context.Context, _ semel.Work) error {
		until(t, "it is renewed by default", func() bool { return n.calls("SEMEL.RENEW") >= 2 })
		<-ctx.Done()
		return context.Cause(ctx)
	}, semel.WithLease(300*time.Millisecond), semel.WithRunMax(1500*time.Millisecond))
	same(t, consumed.Verdict, semel.Retry)
	is(t, consumed.Err, semel.ErrLeaseLost)
}

// Unlock was nil where the record was this holder's still, whatever its context had said.
func TestOnceAgain10_UnlockOfALockThatIsLostSaysSo(t *testing.T) {
	n := start(t)
	relay := n.relay()
	locks := semel.New(n.client(relay.through), "locks", semel.WithPolicy(semel.Policy{As: "lock"}),
		semel.WithPatience(time.Second))
	long, err := locks.Lock(ctx, "long", semel.WithLease(time.Minute), semel.WithRunMax(20*time.Millisecond))
	is(t, err, nil)
	<-long.Context().Done()
	is(t, context.Cause(long.Context()), semel.ErrLeaseLost)
	same(t, n.state("locks", "long"), "held")
	is(t, long.Unlock(), semel.ErrLeaseLost)
	is(t, long.Unlock(), semel.ErrLeaseLost)
	same(t, strings.Contains(long.Unlock().Error(), "ran longer than"), true)
	same(t, long.Lost(), true)
	same(t, n.state("locks", "long"), "absent") // it is given back all the same

	// No renewal reaches the node.
	relay.answer("SEMEL.RENEW", 1000, "-TRYAGAIN no leader\r\n")
	short, err := locks.Lock(ctx, "short", semel.WithLease(50*time.Millisecond))
	is(t, err, nil)
	<-short.Context().Done()
	is(t, short.Unlock(), semel.ErrLeaseLost)

	// Another owner has come and gone, and the answer comes after the lease: what was repeated until
	// then is no proof.
	gone, err := locks.Lock(ctx, "gone", semel.WithLease(300*time.Millisecond))
	is(t, err, nil)
	n.advance(time.Minute)
	other, err := semel.New(n.client(), "locks").TryLock(ctx, "gone")
	is(t, err, nil)
	is(t, other.Unlock(), nil)
	relay.answer("SEMEL.RELEASE", 7, "-TRYAGAIN no leader\r\n")
	is(t, gone.Unlock(), semel.ErrLeaseLost)
}

func reflectCopy(into, from *semel.Lock) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
}
