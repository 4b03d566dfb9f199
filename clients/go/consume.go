package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Verdict is the answer to a broker. The zero of it is no answer.
type Verdict int

const (
	// Retry: deliver the message again, after RetryAfter.
	Retry Verdict = iota + 1
	// Ack: it is handled.
	Ack
	// DeadLetter: it is not to be tried again.
	DeadLetter
)

func (v Verdict) String() string {
	switch v {
	case 0:
		return "not answered"
	case Retry:
		return "retry"
	case Ack:
		return "ack"
	case DeadLetter:
		return "dead letter"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// Consumed is what became of a message.
type Consumed struct {
	Verdict    Verdict
	Duplicate  bool          // Ack: an earlier delivery was handled
	Unguarded  bool          // the handler ran without protection: no id, or fail-open
	RetryAfter time.Duration // of Retry: a hint
	Attempt    int           // how often it was tried, this time included
	// Err says why: what the handler returned, or what kept it from running. With Ack it is
	// ErrUnrecorded: handled, but the node could not be told.
	Err error
}

const defaultRetryAfter = time.Second

// ConsumeOnce handles a message once, however often a broker delivers it, and gives the verdict for
// the broker. A message without an id is handled unguarded.
//
// An error of handle means Retry; after the namespace's ATTEMPTS-MAX, with Reject or with
// WithFailure(Keep) it means DeadLetter. A panic of handle goes on. Where an option of the call is
// wrong nothing runs, and the verdict is Retry: that is the consumer's fault, and no message's. Where
// one of New is (Err) there is no verdict, 0.
func ConsumeOnce(ctx context.Context, c *Claims, id string,
	handle func(ctx context.Context, work Work) error, options ...Option) Consumed {
	if id == "" {
		return unguarded(ctx, handle)
	}
	if c.defaults.err != nil { // the message is as good as any: no verdict on it
		return Consumed{Err: c.defaults.err}
	}
	s := c.settings(options)
	if s.err == nil && handle == nil {
		s.err = errNoFunction
	}
	found, err := c.acquire(ctx, id, s)
	if err != nil {
		return notRun(err)
	}
	if found.held == nil {
		return Consumed{Verdict: Ack, Duplicate: true, Attempt: int(found.replay.number("attempt"))}
	}
	h := found.held
	defer h.end()
	consumed := Consumed{Attempt: h.work.Attempt, Unguarded: h.work.Unprotected}
	_, err = run(h, func(ctx context.Context, work Work) (struct{}, error) {
		return struct{}{}, handle(ctx, work)
	})
	if err != nil {
		return notHandled(h, err, consumed)
	}
	_, stored, err := h.complete(nil, nil)
	consumed.Verdict, consumed.Err = Ack, err
	if errors.Is(err, ErrLeaseLost) { // handled twice; the newer owner answers for it
		consumed.Duplicate = stored != nil
		if stored == nil {
			consumed.Verdict, consumed.RetryAfter = Retry, defaultRetryAfter
		}
	}
	return consumed
}

func unguarded(ctx context.Context, handle func(context.Context, Work) error) Consumed {
	err := ctx.Err()
	if handle == nil {
		err = errNoFunction
	}
	if err == nil {
		err = handle(ctx, Work{Attempt: 1, Unprotected: true})
	}
	consumed := Consumed{Verdict: Ack, Unguarded: true, Attempt: 1, Err: err}
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		consumed.Verdict = DeadLetter
	} else if err != nil {
		consumed.Verdict, consumed.RetryAfter = Retry, defaultRetryAfter
	}
	return consumed
}

// notRun is for a message whose handler did not run. Only what every consumer would refuse is a
// dead letter; a wrong option (ErrOption) is this consumer's fault.
func notRun(err error) Consumed {
	consumed := Consumed{Verdict: Retry, RetryAfter: defaultRetryAfter, Err: err}
	var inFlight *InFlightError
	var kept *KeptFailureError
	switch {
	case errors.As(err, &inFlight):
		consumed.RetryAfter, consumed.Attempt = inFlight.RetryAfter, inFlight.Attempt
	case errors.As(err, &kept):
		consumed.Verdict, consumed.Attempt = DeadLetter, kept.Attempt
	case errors.Is(err, ErrMismatch), errors.Is(err, ErrOutsideWindow), errors.Is(err, ErrUnknown),
		errors.Is(err, ErrKey), errors.Is(err, ErrPayload), redis.HasErrorPrefix(err, "WRONGTYPE"):
		consumed.Verdict = DeadLetter
	}
	if consumed.Verdict == DeadLetter {
		consumed.RetryAfter = 0
	}
	return consumed
}

func notHandled(h *held, err error, consumed Consumed) Consumed {
	consumed.Err = err
	var rejected *RejectedError
	last := h.policy.attemptsMax != 0 && int64(h.work.Attempt) >= h.policy.attemptsMax
	ending := h.s.failure
	if ending == "" {
		ending = h.policy.onFailure
	}
	unknown := isException(h, err)
	if unknown && h.s.failure == "" {
		ending = h.policy.onException
	}
	if errors.As(err, &rejected) || last && !unknown {
		ending = Keep
	}
	ended := error(nil)
	if ending != "" || !unknown {
		ended = h.fail(err.Error(), ending)
	}
	if ending == Keep && !errors.Is(ended, ErrLeaseLost) {
		consumed.Verdict = DeadLetter
	} else {
		consumed.Verdict, consumed.RetryAfter = Retry, defaultRetryAfter
	}
	if errors.Is(ended, ErrLeaseLost) {
		consumed.Err = errors.Join(err, ended)
	}
	return consumed
}
