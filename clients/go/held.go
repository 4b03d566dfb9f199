package semel

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
)

// Work is what a function learns of its claim.
type Work struct {
	// Epoch is the fencing token: it grows with each owner. Pass it to what the work writes to.
	Epoch   int64
	Attempt int
	// Takeover: an earlier owner went silent. Part of the work may have been done.
	Takeover bool
	// Unprotected: the node had no room and the namespace fails open, or the message has no id.
	Unprotected bool
}

// held is a claim that this process owns, and the goroutine that renews its lease.
type held struct {
	claims *Claims
	key    string
	slot   int   // of a semaphore
	token  int64 // of a read/write lock
	s      settings
	policy policy
	work   Work
	lease  time.Duration
	until  moment // when the lease ends at the earliest

	ctx    context.Context // of the work; its cause says why it ended
	cancel context.CancelCauseFunc
	isLost atomic.Bool
	isOver atomic.Bool        // it was given back, or never will be: its time means nothing any more
	stop   context.CancelFunc // ends renewing
	done   chan struct{}
}

// moment is a time that one goroutine sets and others read. It counts from the start of the process
// by the monotonic clock. No other memory depends on it, so its order does not matter.
type moment struct{ nanoseconds atomic.Int64 }

var beginning = time.Now()

func (m *moment) set(to time.Time) { m.nanoseconds.Store(int64(to.Sub(beginning))) }

func (m *moment) time() time.Time { return beginning.Add(time.Duration(m.nanoseconds.Load())) }

func (m *moment) isPast() bool { return !time.Now().Before(m.time()) }

// answer is a claim that needs no run, or one that does: then held is set.
type answer struct {
	held   *held
	replay fields
}

func (c *Claims) request(key string, s settings, lease time.Duration) (request, error) {
	words := []any{c.name, key}
	name := ""
	if s.permits != 0 {
		name, words = "SEMEL.PERMIT", append(words, s.permits)
	} else if s.access != "" {
		name, words = "SEMEL.RWLOCK", append(words, s.access)
	}
	more, err := s.claimWords(lease)
	return request{key: key, words: append(words, more...), lease: lease, name: name,
		isNext: s.access != "" && s.wait != 0}, err
}

// claimWords are the options of a claim, with an id of its own.
func (s *settings) claimWords(lease time.Duration) ([]any, error) {
	words := []any{"CLAIM-ID", newClaimID(), "LEASE", milliseconds(lease)}
	fingerprint, algorithm, err := s.fingerprint()
	if algorithm != 0 {
		words = append(words, "FINGERPRINT", fingerprint, "ALGORITHM", algorithm)
	}
	if s.firstSent != nil {
		words = append(words, "FIRST-SENT", s.firstSent.UnixMilli())
	}
	if s.owner != "" {
		words = append(words, "OWNER", s.owner)
	}
	return words, err
}

func newClaimID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	return hex.EncodeToString(id)
}

// acquire claims a key: it is held, or a replay, or an error says why neither.
func (c *Claims) acquire(ctx context.Context, key string, s settings) (answer, error) {
	began := time.Now()
	found, err := c.acquireUnseen(ctx, key, s)
	if found.held == nil {
		c.observe(s, key, began, err)
	}
	return found, err
}

// acquireUnseen is acquire without its observer.
func (c *Claims) acquireUnseen(ctx context.Context, key string, s settings) (answer, error) {
	if s.err != nil {
		return answer{}, s.err
	}
	if _, _, err := s.fingerprint(); err != nil {
		return answer{}, err
	}
	if key == "" {
		return answer{}, fmt.Errorf("%w: it is empty", ErrKey)
	}
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	found, h, err := c.asked(ctx, key, s)
	if ctx.Err() != nil && (err != nil || h != nil) {
		if h != nil && !h.work.Unprotected {
			c.abandon(abandoned{request: request{key: h.key, lease: h.lease}, epoch: h.work.Epoch})
		}
		if err == nil || !isReply(err) {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return answer{}, err
	}
	if h != nil {
		h.start(ctx)
	}
	return answer{held: h, replay: found}, nil
}

// asked has the node's answer: what it said of the work, or a claim that is held.
func (c *Claims) asked(ctx context.Context, key string, s settings) (fields, *held, error) {
	known, err := c.ready(ctx)
	if err != nil {
		return nil, nil, err
	}
	lease := s.lease
	if lease == 0 {
		lease = known.lease
	}
	request, err := c.request(key, s, lease)
	if err != nil {
		return nil, nil, err
	}
	asked := time.Now()
	found, err := c.claim(ctx, s.patience, request)
	if err == nil && found.text("outcome") == "in_flight" && s.wait != 0 {
		if s.access != "" {
			found, asked, err = c.waitForAccess(ctx, s, request)
		} else {
			found, err = c.wait(ctx, s, request)
			asked = time.Now()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	h := c.heldOf(request.granted(found), s, known, lease, asked, found)
	switch found.text("outcome") {
	case "granted", "regranted":
	case "unprotected":
		if s.detached {
			return nil, nil, &BusyError{"the namespace fails open, which is no lock"}
		}
		h.work.Unprotected = true
	case "replay":
		return found, nil, nil
	default:
		return nil, nil, refusal(found)
	}
	return nil, h, nil
}

// heldOf makes the claim that the node granted to a try which began at `asked`.
func (c *Claims) heldOf(key string, s settings, known policy, lease time.Duration, asked time.Time,
	found fields) *held {
	h := &held{claims: c, key: key, slot: int(found.number("slot")), token: found.number("token"), s: s, policy: known, lease: lease,
		work: Work{Epoch: found.number("epoch"), Attempt: int(found.number("attempt")),
			Takeover: found.flag("takeover")}}
	h.until.set(asked.Add(lease))
	if found.text("outcome") == "regranted" {
		h.until.set(time.Now().Add(min(lease, found.duration("remaining_ms"))))
	}
	return h
}

// refusal is the error for a claim that is neither granted nor done.
func refusal(found fields) error {
	attempt := int(found.number("attempt"))
	switch outcome := found.text("outcome"); outcome {
	case "in_flight":
		return &InFlightError{found.duration("remaining_ms"), found.duration("retry_after_ms"), attempt,
			found.text("owner")}
	case "kept_failure":
		return &KeptFailureError{found.text("failure"), found.flag("poison"), attempt}
	case "mismatch":
		return ErrMismatch
	case "in_doubt":
		return &InDoubtError{attempt, found.text("owner")}
	case "too_old", "too_new":
		return fmt.Errorf("%w: %s", ErrOutsideWindow, outcome)
	case "unknown":
		return ErrUnknown
	case "busy":
		return &BusyError{found.text("reason")}
	default:
		return fmt.Errorf("semel: an outcome that this client does not know: %q", outcome)
	}
}

func (h *held) start(ctx context.Context) {
	if h.s.detached {
		ctx = context.WithoutCancel(ctx)
	}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.done = make(chan struct{})
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	if h.work.Unprotected {
		close(h.done)
		return
	}
	go h.renew(renewing)
}

// end stops renewing and frees what start took. It may be called more than once.
func (h *held) end() {
	h.stop()
	<-h.done
	h.cancel(nil)
}

func (h *held) lose(why string) {
	h.isLost.Store(true)
	h.cancel(lost(why))
}

// renew keeps the lease until ctx ends, the node refuses it, or it cannot be reached in time.
func (h *held) renew(ctx context.Context) {
	defer close(h.done)
	deadline := time.Now().Add(h.s.runMax)
	delay := min(time.Until(h.until.time())/3, h.lease/3)
	for pause(ctx, min(delay, time.Until(deadline))) == nil {
		if !time.Now().Before(deadline) {
			h.lose(fmt.Sprintf("the work ran longer than %v", h.s.runMax))
			return
		}
		asked := time.Now()
		timed, cancel := context.WithDeadline(ctx, h.until.time())
		reply, err := h.claims.send(timed, []any{"SEMEL.RENEW", h.claims.name, h.key, h.work.Epoch,
			"LEASE", milliseconds(h.lease)}, nil)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			found, err := fieldsOf(reply)
			if outcome := found.text("outcome"); err != nil || outcome != "ok" {
				h.lose(outcome)
				return
			}
			h.until.set(asked.Add(h.lease))
			delay = h.lease / 3
			continue
		}
		if h.until.isPast() {
			h.lose(fmt.Sprintf("no renewal reached the node: %v", err))
			return
		}
		delay = max(time.Millisecond, min(h.lease/20, time.Until(h.until.time())))
	}
}

// owner asks for one of the owner's calls, also after the caller's context has ended.
func (h *held) owner(name string, words ...any) (found fields, repeated bool, err error) {
	return h.ownerUntil(nil, name, words...)
}

// ownerUntil is owner, but errors with one of the words `final` are not repeated.
func (h *held) ownerUntil(final []string, name string, words ...any) (found fields, repeated bool,
	err error) {
	args := append([]any{name, h.claims.name, h.key, h.work.Epoch}, words...)
	ctx := context.Background()
	if h.ctx != nil {
		ctx = context.WithoutCancel(h.ctx)
	}
	reply, repeated, err := h.claims.insist(ctx, h.s.patience, args, nil, final...)
	if err == nil {
		found, err = fieldsOf(reply)
	}
	return found, repeated, err
}

// complete records the work as done. stored: another owner has done it, and this is its result.
func (h *held) complete(result []byte, encodes error) (late bool, stored *string, err error) {
	if h.work.Unprotected {
		return false, nil, nil
	}
	if encodes != nil {
		result = notKept
	}
	var final []string
	if len(result) > len(notKept) {
		final = []string{"OOM"} // there may be memory for the mark: the work must not run again
	}
	found, unread, err := h.ownerUntil(final, "SEMEL.COMPLETE", result)
	if _, answered := err.(redis.Error); answered && encodes == nil && !bytes.Equal(result, notKept) {
		encodes = err // too long, or no memory for it
		found, _, err = h.owner("SEMEL.COMPLETE", notKept)
		if err == nil && unread && found.text("outcome") == "conflict" {
			return false, nil, nil // a try whose reply was lost has recorded the result
		}
	}
	if err != nil {
		return false, nil, fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	switch outcome := found.text("outcome"); outcome {
	case "ok":
		if encodes != nil {
			err = fmt.Errorf("%w: %w", ErrResultNotKept, encodes)
		}
		return found.flag("late"), nil, err
	case "unknown":
		return false, nil, fmt.Errorf("%w: the node does not know the claim", ErrUnrecorded)
	default:
		if text, ok := found["result"].(string); ok {
			stored = &text
		}
		return false, stored, lost(outcome)
	}
}

// fail records a failure; ending empty: as the namespace says. It gives what the node said against
// it, and what became of the claim as far as is known.
func (h *held) fail(failure string, ending Ending) error {
	if h.work.Unprotected {
		return nil
	}
	words := []any{clipped(failure)}
	if ending != "" {
		words = append(words, string(ending))
	} else if word := wordOf(failure); word == Release || word == Keep || word == InDoubt {
		words[0] = "failure: " + failure // a single such word would be an option
	}
	found, repeated, err := h.owner("SEMEL.FAIL", words...)
	if err != nil {
		return err // the lease ends it
	}
	if outcome := found.text("outcome"); outcome != "ok" && !repeated {
		return lost(outcome)
	}
	return nil // or the reply to the first try was lost, and the claim is given back since
}

// exception is what the namespace says of work that panics or does not know its outcome. Where the
// policy cannot be read the safe word is none: the claim waits for the end of its lease.
func (h *held) exception(failure string) error {
	ending := h.s.failure
	if ending == "" {
		ending = h.policy.onException
	}
	if ending == "" {
		return nil
	}
	return h.fail(failure, ending)
}

func clipped(text string) string {
	if len(text) <= failureBytesMax {
		return text
	}
	end := failureBytesMax
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
