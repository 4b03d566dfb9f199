package semel_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

func limiterOf(t *testing.T, rdb *redis.Client, terms semel.RateTerms) *semel.RateLimiter {
	t.Helper()
	limiter, err := semel.NewRateLimiter(rdb, terms)
	same(t, err, nil)
	return limiter
}

func TestARateLimitAllowsWhatItsTermsSay(t *testing.T) {
	n := start(t)
	for name, rdb := range map[string]*redis.Client{"r2": n.client(resp2), "r3": n.client()} {
		for _, kind := range []semel.RateKind{"", semel.FixedWindow, semel.TokenBucket} {
			key := name + string(kind)
			limiter := limiterOf(t, rdb, semel.RateTerms{Kind: kind, Limit: 3, Period: 24 * time.Hour})
			looked, err := limiter.Look(ctx, key)
			same(t, err, nil)
			same(t, looked, semel.Rate{Allowed: true, Remaining: 3})
			first, err := limiter.Take(ctx, key, 2)
			same(t, err, nil)
			same(t, [2]any{first.Allowed, first.Remaining}, [2]any{true, int64(1)})
			refused, err := limiter.Take(ctx, key, 2)
			same(t, err, nil)
			same(t, [2]any{refused.Allowed, refused.Remaining}, [2]any{false, int64(1)})
			if refused.RetryAfter < 7*time.Hour || refused.ResetAfter < refused.RetryAfter {
				t.Errorf("retry after %v, reset after %v", refused.RetryAfter, refused.ResetAfter)
			}
			same(t, rdb.Del(ctx, key).Err(), nil)
			again, err := limiter.Take(ctx, key, 3)
			same(t, err, nil)
			same(t, again.Allowed, true)
		}
	}
}

func TestWrongTermsAndKeysOfRateLimits(t *testing.T) {
	n := start(t)
	rdb := n.client()
	for _, terms := range []semel.RateTerms{{}, {Limit: 1}, {Period: time.Second},
		{Limit: -1, Period: time.Second}, {Limit: 100_000_001, Period: time.Second},
		{Limit: 1, Period: time.Microsecond}, {Limit: 1, Period: 367 * 24 * time.Hour},
		{Limit: 1, Period: time.Second, Refill: 1}, {Kind: "LEAKY", Limit: 1, Period: time.Second},
		{Kind: semel.TokenBucket, Limit: 1, Period: time.Second, Refill: -1}} {
		_, err := semel.NewRateLimiter(rdb, terms)
		is(t, err, semel.ErrOption)
	}
	limiter := limiterOf(t, rdb, semel.RateTerms{Limit: 3, Period: time.Hour})
	for _, cost := range []int64{-1, 4} {
		_, err := limiter.Take(ctx, "k", cost)
		is(t, err, semel.ErrOption)
	}
	_, err := limiter.Take(ctx, "", 1)
	is(t, err, semel.ErrKey)
	same(t, rdb.Set(ctx, "text", "mine", 0).Err(), nil)
	if _, err := limiter.Take(ctx, "text", 1); err == nil {
		t.Error("a text is a rate limit")
	}
	looked, err := limiter.Look(ctx, "k")
	same(t, err, nil)
	same(t, looked.Remaining, 3)
}

func TestCallersAtOnceGetAsMuchAsThereIs(t *testing.T) {
	n := start(t)
	limiter := limiterOf(t, n.client(), semel.RateTerms{Limit: 50, Period: time.Hour})
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20 {
				got, err := limiter.Take(ctx, "k", 1)
				if err != nil {
					t.Error(err)
				}
				if got.Allowed {
					allowed.Add(1)
				}
			}
		}()
	}
	all.Wait()
	same(t, allowed.Load(), 50)
}
