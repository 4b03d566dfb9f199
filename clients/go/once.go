package semel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// Done is work that is done, by this call or by an earlier one. In a zero Done nothing is: neither
// Ran nor Replayed.
type Done[T any] struct {
	Value T
	// Ran: fn ran in this call, and has returned.
	Ran bool
	// Replayed: an earlier call ran it, and Value is its result.
	Replayed bool
	// Late: the lease had ended when the work was recorded, but nobody had taken over.
	Late bool
	// Unprotected: the node had no room and the namespace fails open; nothing was recorded.
	Unprotected bool
	Epoch       int64 // of the run; 0 if replayed
	Attempt     int
}

// Once runs fn for a key unless that was done before; then it returns the first result.
//
// While another owner runs it the error is ErrInFlight, or with WithWait the call waits. fn runs in
// the caller's goroutine. Its context ends with ctx and when the lease is lost: then its cause
// (context.Cause) is ErrLeaseLost. Renewing goes on until fn returns, even if ctx has ended.
//
// fn returns a value, not work that is still to be done: a T that is or has a function (iter.Seq), a
// channel, an io.Reader or an iterator is refused before the claim, as ErrLazyResult. Behind an
// interface it is found afterwards; then the claim ends as after a panic.
//
// An error of fn is returned as it is, and ends the claim as WithFailure says; by default the next
// call runs it. A panic of fn ends the claim as the namespace's ON-EXCEPTION says, and goes on. With
// ErrResultNotKept and ErrUnrecorded the value is there beside the error.
func Once[T any](ctx context.Context, c *Claims, key string,
	fn func(ctx context.Context, work Work) (T, error), options ...Option) (Done[T], error) {
	s := c.settings(options)
	if s.err == nil {
		s.err = lazyType[T](s.codec)
	}
	if s.err == nil && fn == nil {
		s.err = errNoFunction
	}
	found, err := c.acquire(ctx, key, s)
	if err != nil {
		return Done[T]{}, err
	}
	if found.held == nil {
		return replayed[T](found.replay, s.codec)
	}
	h := found.held
	defer h.end()
	done := Done[T]{Epoch: h.work.Epoch, Attempt: h.work.Attempt, Unprotected: h.work.Unprotected}
	value, err := run(h, fn)
	done.Ran = true
	if err != nil {
		return done, failed(h, err)
	}
	done.Value = value
	_, plain := s.codec.(jsonCodec)
	if err := lazyValue(reflect.ValueOf(&value).Elem(), plain, 0); err != nil {
		_ = h.exception(err.Error())
		return done, err
	}
	text, encodes := keepable(s.codec, value)
	done.Late, _, err = h.complete(text, encodes)
	return done, err
}

var errNoFunction = errors.New("semel: there is no function to run")

func replayed[T any](found fields, codec Codec) (Done[T], error) {
	done := Done[T]{Replayed: true, Attempt: int(found.number("attempt"))}
	text, kept := found["result"].(string)
	if !kept || found.flag("result_expired") {
		return done, ErrNoResult
	}
	err := loaded(codec, []byte(text), &done.Value)
	if err == errNothingStored {
		return done, ErrNoResult
	}
	if err != nil {
		return done, fmt.Errorf("semel: the result cannot be read: %w", err)
	}
	return done, nil
}

// run calls fn. If fn does not return, by a panic or runtime.Goexit, the claim is ended here.
func run[T any](h *held, fn func(context.Context, Work) (T, error)) (T, error) {
	returned := false
	defer func() {
		if !returned {
			_ = h.exception("panic")
			h.end()
		}
	}()
	value, err := fn(h.ctx, h.work)
	returned = true
	return value, err
}

// isException says whether fn does not know what came of the work.
func isException(h *held, err error) bool {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, ErrLeaseLost)
	return errors.Is(err, ErrOutcomeUnknown) || ended && h.ctx.Err() != nil
}

// failed ends the claim of a function that returned an error.
func failed(h *held, err error) error {
	var ended error
	if isException(h, err) {
		ended = h.exception(err.Error())
	} else {
		ended = h.fail(err.Error(), h.s.failure)
	}
	if errors.Is(ended, ErrLeaseLost) && !errors.Is(err, ErrLeaseLost) {
		return errors.Join(err, ended)
	}
	return err
}
