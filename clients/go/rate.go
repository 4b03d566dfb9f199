package semel

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// RateKind says which calls a rate limit allows.
type RateKind string

const (
	// FixedWindow: at most the limit in a window, which begins with its first call.
	FixedWindow RateKind = "FIXED"
	// SlidingWindow: at most the limit in any span of a period.
	SlidingWindow RateKind = "SLIDING"
	// TokenBucket: as many tokens as the limit, of which Refill come back in a period, evenly.
	TokenBucket RateKind = "BUCKET"
)

const (
	rateMax       = 100_000_000
	ratePeriodMax = 366 * 24 * time.Hour
)

// RateTerms are so many per period.
type RateTerms struct {
	Kind   RateKind      // without one: SlidingWindow
	Limit  int64         // 1 to 100,000,000
	Period time.Duration // 1 ms to 366 days
	Refill int64         // of a TokenBucket; 0: as many as Limit
}

// Rate is the answer to a call.
type Rate struct {
	Allowed    bool          // false: nothing was taken
	Remaining  int64         // available now, after this call
	RetryAfter time.Duration // not allowed: the cost is available then, if no other call takes any
	ResetAfter time.Duration // until the whole limit is available, if no other call takes any
}

// RateLimiter is one set of terms for any number of keys. A limit is one string of the node's store,
// under the key itself; DEL resets it.
type RateLimiter struct {
	claims *Claims // for its calls; without a namespace
	words  []any   // behind the key
	limit  int64
}

// NewRateLimiter asks nothing. ErrOption: terms that no node would take.
func NewRateLimiter(rdb redis.UniversalClient, terms RateTerms) (*RateLimiter, error) {
	if terms.Kind == "" {
		terms.Kind = SlidingWindow
	}
	switch {
	case terms.Kind != FixedWindow && terms.Kind != SlidingWindow && terms.Kind != TokenBucket:
		return nil, fmt.Errorf("%w: the kind %q", ErrOption, terms.Kind)
	case terms.Limit < 1 || terms.Limit > rateMax:
		return nil, fmt.Errorf("%w: a limit of %d, 1 to %d are possible", ErrOption, terms.Limit, rateMax)
	case terms.Period < time.Millisecond || terms.Period > ratePeriodMax:
		return nil, fmt.Errorf("%w: a period of %v, 1 ms to 366 days are possible", ErrOption, terms.Period)
	case terms.Refill < 0 || terms.Refill > rateMax:
		return nil, fmt.Errorf("%w: a refill of %d, 1 to %d are possible", ErrOption, terms.Refill, rateMax)
	case terms.Refill != 0 && terms.Kind != TokenBucket:
		return nil, fmt.Errorf("%w: only a TokenBucket has a refill", ErrOption)
	}
	words := []any{string(terms.Kind), terms.Limit, milliseconds(terms.Period)}
	if terms.Refill != 0 {
		words = append(words, "REFILL", terms.Refill)
	}
	return &RateLimiter{&Claims{rdb: rdb}, words, terms.Limit}, nil
}

// Take takes cost of what the terms allow for the key, or nothing. A cost of 0 takes nothing and is
// always allowed.
//
// It asks again, for five seconds at most, while the node does not answer. A try whose reply was lost
// may have taken as well: fewer are allowed then, never more. ErrUnavailable: the node did not
// answer; whether to go on is the caller's choice.
func (l *RateLimiter) Take(ctx context.Context, key string, cost int64) (Rate, error) {
	if cost < 0 || cost > l.limit {
		return Rate{}, fmt.Errorf("%w: a cost of %d, 0 to %d are possible", ErrOption, cost, l.limit)
	}
	words := append([]any{"SEMEL.LIMIT", key}, l.words...)
	reply, err := l.claims.ask(ctx, defaultPatience, append(words, "COST", cost))
	if err != nil {
		return Rate{}, err
	}
	found, err := fieldsOf(reply)
	if err != nil {
		return Rate{}, err
	}
	return Rate{Allowed: found.text("outcome") == "allowed", Remaining: found.number("remaining"),
		RetryAfter: found.duration("retry_after_ms"), ResetAfter: found.duration("reset_after_ms")}, nil
}

// Look takes nothing.
func (l *RateLimiter) Look(ctx context.Context, key string) (Rate, error) {
	return l.Take(ctx, key, 0)
}
