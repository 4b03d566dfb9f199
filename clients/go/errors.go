package semel

import (
	"errors"
	"fmt"
	"time"
)

// What errors.Is finds. Those with details are also types, for errors.As.
var (
	// ErrInFlight: another owner is doing the work, or holds the lock. InFlightError has details.
	ErrInFlight = errors.New("semel: in flight")
	// ErrMismatch: the key was used with another payload.
	ErrMismatch = errors.New("semel: the key was used with another payload")
	// ErrInDoubt: an owner went silent, or does not know what came of the work. It runs again only
	// after an operator's decision.
	ErrInDoubt = errors.New("semel: in doubt")
	// ErrKeptFailure: the work failed for good. KeptFailureError has the reason.
	ErrKeptFailure = errors.New("semel: failed for good")
	// ErrNoResult: the work is done, but its result has expired or was never kept.
	ErrNoResult = errors.New("semel: done, but there is no result")
	// ErrResultNotKept: the function succeeded and the work is recorded as done, but its result could
	// not be encoded or stored, or would come back as another value. The value is returned beside this error; duplicates get ErrNoResult.
	ErrResultNotKept = errors.New("semel: done, but the result was not kept")
	// ErrLazyResult: the result stands for work that is still to be done: a function, a channel, a
	// stream, an iterator. A type of that kind is refused before anything is claimed.
	ErrLazyResult = errors.New("semel: the result is work that is still to be done")
	// ErrLeaseLost: the work ran, but the claim was no longer this caller's when it ended: another
	// owner may have run it as well. It is also the cause with which the function's context ends.
	ErrLeaseLost = errors.New("semel: the lease was lost")
	// ErrUnrecorded: the function succeeded, but the node could not be told. The value is returned
	// beside this error. The work may run again when the lease has ended.
	ErrUnrecorded = errors.New("semel: done, but not recorded")
	// ErrOutsideWindow: WithFirstSent is too old or too far ahead for the namespace.
	ErrOutsideWindow = errors.New("semel: first sent outside the window")
	// ErrUnknown: the namespace takes only keys that were issued, and this one was not, or has ended.
	ErrUnknown = errors.New("semel: the key was not issued, or has ended")
	// ErrBusy: the node has no room. Nothing was claimed.
	ErrBusy = errors.New("semel: the node has no room")
	// ErrUnavailable: the node did not answer within the patience of the call.
	ErrUnavailable = errors.New("semel: the node does not answer")
	// ErrOption: an option, or the name of the namespace, cannot be kept. The error names it, its value
	// and the limit. Nothing was claimed, and no repeat will help.
	ErrOption = errors.New("semel: bad option")
	// ErrKey: the key is empty or too long.
	ErrKey = errors.New("semel: bad key")
	// ErrFormat: FormatKey cannot fill in the format.
	ErrFormat = errors.New("semel: bad key format")
	// ErrPayload: a payload, or an operation, has no canonical text. The error names the path.
	ErrPayload = errors.New("semel: it has no canonical text")
	// ErrOutcomeUnknown is for functions: return it, wrapped or not, if the effect may be there.
	ErrOutcomeUnknown = errors.New("semel: the outcome is unknown")

	// ErrTokenUsed: the token was consumed before.
	ErrTokenUsed = errors.New("semel: the token was used")
	// ErrTokenUnknown: the token was never issued.
	ErrTokenUnknown = errors.New("semel: the token is unknown")
	// ErrTokenExpired: the token was issued, and its time is over.
	ErrTokenExpired = errors.New("semel: the token has expired")
)

// InFlightError is an ErrInFlight.
type InFlightError struct {
	Remaining  time.Duration // of the other's lease
	RetryAfter time.Duration // a hint
	Attempt    int
	Owner      string
}

func (e *InFlightError) Error() string {
	return fmt.Sprintf("semel: in flight, owner %q, attempt %d, retry after %v", e.Owner, e.Attempt,
		e.RetryAfter)
}

// Is makes it an ErrInFlight.
func (e *InFlightError) Is(target error) bool { return target == ErrInFlight }

// InDoubtError is an ErrInDoubt.
type InDoubtError struct {
	Attempt int
	Owner   string
}

func (e *InDoubtError) Error() string {
	return fmt.Sprintf("semel: in doubt after attempt %d of owner %q", e.Attempt, e.Owner)
}

// Is makes it an ErrInDoubt.
func (e *InDoubtError) Is(target error) bool { return target == ErrInDoubt }

// KeptFailureError is an ErrKeptFailure.
type KeptFailureError struct {
	Failure string // what the owner recorded
	Poison  bool   // it was tried too often
	Attempt int
}

func (e *KeptFailureError) Error() string {
	if e.Poison {
		return fmt.Sprintf("semel: failed for good after %d attempts", e.Attempt)
	}
	return fmt.Sprintf("semel: failed for good: %s", e.Failure)
}

// Is makes it an ErrKeptFailure.
func (e *KeptFailureError) Is(target error) bool { return target == ErrKeptFailure }

// BusyError is an ErrBusy.
type BusyError struct {
	Reason string // memory_full, waiters_full or refused
}

func (e *BusyError) Error() string { return "semel: busy: " + e.Reason }

// Is makes it an ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// RejectedError is for handlers of ConsumeOnce: the message is wrong, and no other try will help.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "rejected: " + e.Reason }

// Reject is a RejectedError.
func Reject(reason string) error { return &RejectedError{reason} }

func lost(outcome string) error { return fmt.Errorf("%w: %s", ErrLeaseLost, outcome) }
