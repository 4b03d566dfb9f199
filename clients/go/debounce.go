package semel

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const debounceMax = 366 * 24 * time.Hour

// Trailing says when the run behind the last call comes.
type Trailing struct {
	Quiet   time.Duration // so long after the last call: 1 ms to 366 days
	MaxWait time.Duration // at the latest so long after the first; 0: a minute, or Quiet if longer
	Keep    time.Duration // how long a payload that is due waits for its run; 0: a day
}

// Debounced is what became of a try to run.
type Debounced struct {
	Ran     bool          // the function ran, and returned no error
	Running bool          // another has the run
	Due     time.Duration // the run comes then, if no other call does; 0: at once, or nothing is stored
}

// Debounce stores a payload in place of the one before, and moves the time of its run, which any
// process takes by RunDebounced. It returns in which time the run is due. A call whose reply is lost is
// repeated: the payload is the same.
func (c *Claims) Debounce(ctx context.Context, key string, payload []byte, when Trailing) (time.Duration,
	error) {
	if err := when.check(); err != nil {
		return 0, err
	}
	if _, err := c.ready(ctx); err != nil {
		return 0, err
	}
	words := []any{"SEMEL.DEBOUNCE", c.name, key, payload, "QUIET", milliseconds(when.Quiet)}
	if when.MaxWait != 0 {
		words = append(words, "MAX-WAIT", milliseconds(when.MaxWait))
	}
	if when.Keep != 0 {
		words = append(words, "KEEP", milliseconds(when.Keep))
	}
	reply, err := c.ask(ctx, c.defaults.patience, words)
	if err != nil {
		return 0, err
	}
	found, err := fieldsOf(reply)
	return found.duration("due_ms"), err
}

func (t Trailing) check() error {
	wrong := func(d time.Duration) bool { return d != 0 && (d < time.Millisecond || d > debounceMax) }
	if t.Quiet == 0 || wrong(t.Quiet) || wrong(t.MaxWait) || wrong(t.Keep) {
		return fmt.Errorf("%w: times of a debounce are 1 ms to 366 days", ErrOption)
	}
	if t.MaxWait != 0 && t.MaxWait < t.Quiet {
		return fmt.Errorf("%w: MaxWait is less than Quiet", ErrOption)
	}
	return nil
}

// RunDebounced calls fn with the latest payload of the key, if it is due and no other run has it. The
// lease of the run is renewed; the context of fn ends when it is lost. If fn returns an error, which
// RunDebounced returns, the payload comes again after a quiet time, unless a call has replaced it. A
// process that ends runs nothing more, and the payload comes again when the lease is over.
// ErrLeaseLost, joined with that error if there is one: fn ran, and the lease was lost before its end
// was known. ErrUnrecorded: fn succeeded, and the node could not be told; the payload may come again
// when the lease is over. ErrBusy: the node has no room for the run, also where the namespace fails open.
func (c *Claims) RunDebounced(ctx context.Context, key string,
	fn func(ctx context.Context, payload []byte) error, options ...Option) (Debounced, error) {
	s := c.settings(options)
	if s.err == nil && fn == nil {
		s.err = errNoFunction
	}
	if s.err != nil {
		return Debounced{}, s.err
	}
	known, err := c.ready(ctx)
	if err != nil {
		return Debounced{}, err
	}
	lease := s.lease
	if lease == 0 {
		lease = known.lease
	}
	words, err := s.claimWords(lease)
	if err != nil {
		return Debounced{}, err
	}
	r := request{key: key, name: "SEMEL.DEBOUNCERUN", words: append([]any{c.name, key}, words...),
		lease: lease}
	asked := time.Now()
	found, err := c.claim(ctx, s.patience, r)
	if err != nil {
		return Debounced{}, err
	}
	switch found.text("outcome") {
	case "idle", "quiet":
		return Debounced{Due: found.duration("due_ms")}, nil
	case "in_flight":
		return Debounced{Running: true, Due: found.duration("retry_after_ms")}, nil
	case "granted", "regranted":
	case "unprotected":
		return Debounced{}, &BusyError{"the namespace fails open, which is no lock"}
	default:
		return Debounced{}, refusal(found)
	}
	if ctx.Err() != nil {
		r.key = r.granted(found)
		c.abandon(abandoned{request: r, epoch: found.number("epoch")})
		return Debounced{}, context.Cause(ctx)
	}
	h := c.heldOf(found.text("key"), s, known, lease, asked, found)
	h.start(ctx)
	return c.runDebounced(h, key, []byte(found.text("payload")), fn)
}

func (c *Claims) runDebounced(h *held, key string, payload []byte,
	fn func(ctx context.Context, payload []byte) error) (ran Debounced, err error) {
	ended := false
	defer func() {
		if !ended { // it panics
			_ = c.endDebounced(h, key, "AGAIN")
		}
	}()
	err = fn(h.ctx, payload)
	ended = true
	if err != nil {
		because := context.Cause(h.ctx)
		if ends := c.endDebounced(h, key, "AGAIN"); errors.Is(ends, ErrLeaseLost) {
			because = ends
		}
		if errors.Is(because, ErrLeaseLost) && !errors.Is(err, ErrLeaseLost) {
			err = errors.Join(err, because)
		}
		return Debounced{}, err
	}
	err = c.endDebounced(h, key)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		err = fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	return Debounced{Ran: true}, err
}

// endDebounced ends the run. ErrLeaseLost: it was not ours any more.
func (c *Claims) endDebounced(h *held, key string, again ...any) error {
	h.end()
	args := append([]any{"SEMEL.DEBOUNCEEND", c.name, key, h.work.Epoch}, again...)
	reply, unread, err := c.insist(context.WithoutCancel(h.ctx), h.s.patience, args, nil)
	if err != nil {
		return err
	}
	found, err := fieldsOf(reply)
	if err != nil {
		return err
	}
	outcome := found.text("outcome")
	if outcome == "ok" && !found.flag("late") {
		return nil
	}
	// A try whose reply was lost may have ended it, as in Unlock.
	if ours := unread && !h.until.isPast() && !h.isLost.Load(); outcome != "ok" && ours {
		return nil
	}
	return lost(outcome)
}
