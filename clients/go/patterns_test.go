package semel_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

func TestAMessageIsHandledOnceAndTheBrokerGetsAVerdict(t *testing.T) {
	n := start(t)
	for name, rdb := range map[string]*redis.Client{"m2": n.client(resp2), "m3": n.client()} {
		messages := semel.New(rdb, name,
			semel.WithPolicy(semel.Policy{As: "message", AttemptsMax: 2}))
		handled := 0
		handles := func(context.Context, semel.Work) error { handled++; return nil }
		first := semel.ConsumeOnce(ctx, messages, "m-1", handles)
		same(t, first, semel.Consumed{Verdict: semel.Ack, Attempt: 1})
		again := semel.ConsumeOnce(ctx, messages, "m-1", handles)
		same(t, again, semel.Consumed{Verdict: semel.Ack, Duplicate: true, Attempt: 1})
		same(t, handled, 1)

		broken := errors.New("the bank is slow")
		fails := func(context.Context, semel.Work) error { return broken }
		once := semel.ConsumeOnce(ctx, messages, "m-2", fails)
		same(t, once, semel.Consumed{Verdict: semel.Retry, RetryAfter: time.Second, Attempt: 1,
			Err: broken})
		twice := semel.ConsumeOnce(ctx, messages, "m-2", fails)
		same(t, twice, semel.Consumed{Verdict: semel.DeadLetter, Attempt: 2, Err: broken})
		third := semel.ConsumeOnce(ctx, messages, "m-2", handles)
		same(t, third.Verdict, semel.DeadLetter)
		is(t, third.Err, semel.ErrKeptFailure)
		rejected := semel.ConsumeOnce(ctx, messages, "m-3",
			func(context.Context, semel.Work) error { return semel.Reject("no such address") })
		same(t, rejected.Verdict, semel.DeadLetter)

		unguarded := semel.ConsumeOnce(ctx, messages, "", handles)
		same(t, unguarded, semel.Consumed{Verdict: semel.Ack, Unguarded: true, Attempt: 1})
		same(t, handled, 2)
		inside := semel.ConsumeOnce(ctx, messages, "m-4", func(context.Context, semel.Work) error {
			meanwhile := semel.ConsumeOnce(ctx, messages, "m-4", handles)
			same(t, meanwhile.Verdict, semel.Retry)
			is(t, meanwhile.Err, semel.ErrInFlight)
			return nil
		})
		same(t, inside.Verdict, semel.Ack)
		f := semel.WithFingerprint
		semel.ConsumeOnce(ctx, messages, "m-5", handles, f([]byte("a")))
		other := semel.ConsumeOnce(ctx, messages, "m-5", handles, f([]byte("b")))
		same(t, other.Verdict, semel.DeadLetter)
		is(t, other.Err, semel.ErrMismatch)
	}
}

func TestAMessageThatWasHandledTwiceIsAnsweredByItsNewOwner(t *testing.T) {
	n := start(t)
	messages := semel.New(n.client(), "m", semel.WithLease(90*time.Millisecond))
	taken := semel.ConsumeOnce(ctx, messages, "m", func(ctx context.Context, _ semel.Work) error {
		n.advance(time.Hour)
		second := semel.ConsumeOnce(context.Background(), messages, "m",
			func(context.Context, semel.Work) error { return nil })
		same(t, second.Verdict, semel.Ack)
		<-ctx.Done()
		return nil
	})
	same(t, taken.Verdict, semel.Ack)
	same(t, taken.Duplicate, true)
	is(t, taken.Err, semel.ErrLeaseLost)
	cancelled, cancel := context.WithCancel(ctx)
	left := semel.ConsumeOnce(cancelled, messages, "left",
		func(ctx context.Context, _ semel.Work) error { cancel(); return ctx.Err() })
	same(t, left.Verdict, semel.Retry)
	same(t, n.state("m", "left"), "absent")
}

func TestALockHasATokenThatGrows(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(), "locks", semel.WithPolicy(semel.Policy{As: "lock"}))
	first, err := locks.TryLock(ctx, "invoices")
	is(t, err, nil)
	_, err = locks.TryLock(ctx, "invoices")
	is(t, err, semel.ErrInFlight)
	_, err = locks.Lock(ctx, "invoices", semel.WithWait(20*time.Millisecond))
	is(t, err, semel.ErrInFlight)
	timed, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = locks.Lock(timed, "invoices")
	is(t, err, context.DeadlineExceeded)

	seconds := make(chan *semel.Lock)
	go func() {
		second, err := locks.Lock(ctx, "invoices")
		is(t, err, nil)
		seconds <- second
	}()
	until(t, "it waits", func() bool { return n.waiters() == 1 })
	is(t, first.Unlock(), nil)
	is(t, first.Unlock(), nil)
	second := <-seconds
	same(t, second.Token() > first.Token(), true)
	is(t, first.Context().Err(), context.Canceled)
	is(t, second.Context().Err(), nil)
	is(t, second.Unlock(), nil)
}

func TestALostLockSaysSo(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(), "locks", semel.WithLease(150*time.Millisecond))
	begun, cancel := context.WithCancel(ctx)
	lock, err := locks.Lock(begun, "k")
	is(t, err, nil)
	cancel() // it was for getting the lock
	is(t, lock.Context().Err(), nil)
	same(t, lock.Lost(), false)
	n.advance(time.Hour)
	other, err := locks.TryLock(ctx, "k")
	is(t, err, nil)
	<-lock.Context().Done()
	is(t, context.Cause(lock.Context()), semel.ErrLeaseLost)
	same(t, lock.Lost(), true)
	is(t, lock.Unlock(), semel.ErrLeaseLost)
	is(t, other.Unlock(), nil)
}

func TestALockKeepsOthersOut(t *testing.T) {
	n := start(t)
	locks := semel.New(n.client(), "turns", semel.WithPolicy(semel.Policy{As: "fair-lock"}))
	count, group := 0, sync.WaitGroup{}
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 25 {
				lock, err := locks.Lock(ctx, "printer")
				if err != nil {
					t.Error(err)
					return
				}
				count++ // the race detector sees who is not kept out
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	same(t, count, 200)
}

func TestATokenIsUsedOnce(t *testing.T) {
	n := start(t)
	for name, rdb := range map[string]*redis.Client{"t2": n.client(resp2), "t3": n.client()} {
		tokens := semel.NewTokens(semel.New(rdb, name))
		token, err := tokens.Issue(ctx, time.Minute)
		is(t, err, nil)
		is(t, tokens.Consume(ctx, token), nil)
		is(t, tokens.Consume(ctx, token), semel.ErrTokenUsed)
		is(t, tokens.Consume(ctx, "forged"), semel.ErrTokenUnknown)
		is(t, tokens.Consume(ctx, ""), semel.ErrKey)
		other, err := tokens.Issue(ctx, semel.Default)
		is(t, err, nil)
		same(t, other != token, true)

		issued, err := tokens.IssueAs(ctx, "coupon", time.Minute)
		is(t, err, nil)
		same(t, issued, true)
		issued, err = tokens.IssueAs(ctx, "coupon", time.Minute)
		is(t, err, nil)
		same(t, issued, false)
		slow := errors.New("the bank is slow")
		_, err = semel.Redeem(ctx, tokens, "coupon", func(context.Context, semel.Work) (int, error) {
			return 0, slow
		})
		is(t, err, slow)
		paid, err := semel.Redeem(ctx, tokens, "coupon", gives(12))
		is(t, err, nil)
		again, err := semel.Redeem(ctx, tokens, "coupon", gives(13))
		is(t, err, nil)
		same(t, paid.Value == 12 && again.Value == 12 && again.Replayed, true)
		is(t, tokens.Consume(ctx, "coupon"), semel.ErrTokenUsed)

		short, err := tokens.Issue(ctx, time.Millisecond)
		is(t, err, nil)
		n.advance(time.Second)
		until(t, "it expires", func() bool {
			return errors.Is(tokens.Consume(ctx, short), semel.ErrTokenExpired)
		})
	}
}

// Many use one token at a time: one of them succeeds.
func TestATokenHasOneWinner(t *testing.T) {
	n := start(t)
	tokens := semel.NewTokens(semel.New(n.client(), "tokens"))
	for range 20 {
		token, err := tokens.Issue(ctx, time.Minute)
		is(t, err, nil)
		results := make(chan error)
		for range 8 {
			go func() { results <- tokens.Consume(ctx, token, semel.WithWait(time.Minute)) }()
		}
		won := 0
		for range 8 {
			if err := <-results; err == nil {
				won++
			} else {
				is(t, err, semel.ErrTokenUsed)
			}
		}
		same(t, won, 1)
	}
}
