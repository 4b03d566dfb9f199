package semel

import (
	"errors"
	"time"
)

// Event says why a call did not run.
type Event string

const (
	// EventReplayed: the work was done before. The call got its result, or ErrNoResult.
	EventReplayed Event = "replayed"
	// EventRejected: another owner has it (ErrInFlight), the node has no room (ErrBusy), or it was
	// first sent outside the window (ErrOutsideWindow).
	EventRejected Event = "rejected"
	// EventMismatch is ErrMismatch.
	EventMismatch Event = "mismatch"
	// EventInDoubt is ErrInDoubt.
	EventInDoubt Event = "in_doubt"
	// EventKeptFailure is ErrKeptFailure.
	EventKeptFailure Event = "kept_failure"
	// EventUnreachable is ErrUnavailable.
	EventUnreachable Event = "unreachable"
	// EventUnknownToken is ErrUnknown.
	EventUnknownToken Event = "unknown_token"
)

// Observed is a call that did not run.
type Observed struct {
	Event     Event
	Namespace string
	Key       string
	Took      time.Duration // since the call began, its wait included
}

// WithObserver has a function called for each call that did not run: one that was answered by a kept
// result, refused, or not answered. That holds for Once, ConsumeOnce, tokens, locks and permits. It is
// not called for work that ran, for a wrong argument, or for a caller whose context ended.
//
// The function runs in the caller's goroutine, which holds no lock and no claim, before the call
// returns: it must not block, and several calls may run it at once. What it panics with is ignored.
func WithObserver(observer func(Observed)) Option {
	return func(s *settings) {
		if observer == nil {
			s.wrong("WithObserver(nil)")
		}
		s.observer = observer
	}
}

// eventOf is empty for what is not observed.
func eventOf(err error) Event {
	switch {
	case err == nil:
		return EventReplayed
	case errors.Is(err, ErrInFlight), errors.Is(err, ErrBusy), errors.Is(err, ErrOutsideWindow):
		return EventRejected
	case errors.Is(err, ErrMismatch):
		return EventMismatch
	case errors.Is(err, ErrInDoubt):
		return EventInDoubt
	case errors.Is(err, ErrKeptFailure):
		return EventKeptFailure
	case errors.Is(err, ErrUnavailable):
		return EventUnreachable
	case errors.Is(err, ErrUnknown):
		return EventUnknownToken
	}
	return ""
}

// observe tells the observer of a call that did not run.
func (c *Claims) observe(s settings, key string, began time.Time, err error) {
	event := eventOf(err)
	if s.observer == nil || event == "" {
		return
	}
	defer func() { _ = recover() }() // the call has an outcome of its own
	s.observer(Observed{Event: event, Namespace: c.name, Key: key, Took: time.Since(began)})
}
