package semel

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Ending says what becomes of a claim whose work failed.
type Ending string

const (
	// Release lets the next caller run it.
	Release Ending = "RELEASE"
	// Keep makes the failure final: later callers get a KeptFailureError.
	Keep Ending = "KEEP"
	// InDoubt keeps all from running it until an operator has decided (SEMEL.RESOLVE).
	InDoubt Ending = "IN-DOUBT"
)

func wordOf(text string) Ending { return Ending(strings.ToUpper(text)) }

// Policy is what a namespace is declared with. A zero field is left to As, or to the default; Off is
// the time 0 where As has another. Other times are at least 1 ms.
type Policy struct {
	As            string // call, debounce, dedup, fair-lock, lock, message, nonce, payment, token
	Lease         time.Duration
	ResultTTL     time.Duration // how long results are replayed
	UniqueTTL     time.Duration // how long the key stays taken; never shorter than ResultTTL
	SlidingMax    time.Duration // a sliding window: how long duplicates may keep a record at most
	FailureTTL    time.Duration
	AttemptsTTL   time.Duration
	Window        time.Duration
	Ahead         time.Duration
	RetryAfterMax time.Duration
	AttemptsMax   int
	OnLeaseEnd    string // RETRY or IN-DOUBT
	OnFailure     Ending // Release or Keep
	OnException   Ending
	Strict        bool
	FailOpen      bool
	Issued        bool
	Fair          bool
}

type namedTime struct {
	name  string
	value time.Duration
}

func (p *Policy) times() []namedTime {
	return []namedTime{{"LEASE", p.Lease}, {"RESULT-TTL", p.ResultTTL}, {"UNIQUE-TTL", p.UniqueTTL},
		{"FAILURE-TTL", p.FailureTTL}, {"ATTEMPTS-TTL", p.AttemptsTTL}, {"WINDOW", p.Window},
		{"AHEAD", p.Ahead}, {"RETRY-AFTER-MAX", p.RetryAfterMax}, {"SLIDING-MAX", p.SlidingMax}}
}

func (p *Policy) words() []any {
	var words []any
	text := func(name, value string) {
		if value != "" {
			words = append(words, name, value)
		}
	}
	text("AS", p.As)
	for _, each := range p.times() {
		if each.value == Off {
			words = append(words, each.name, 0)
		} else if each.value != 0 {
			words = append(words, each.name, milliseconds(each.value))
		}
	}
	if p.AttemptsMax != 0 {
		words = append(words, "ATTEMPTS-MAX", p.AttemptsMax)
	}
	text("ON-LEASE-END", p.OnLeaseEnd)
	text("ON-FAILURE", string(p.OnFailure))
	text("ON-EXCEPTION", string(p.OnException))
	flags := []struct {
		name string
		set  bool
	}{{"STRICT", p.Strict}, {"FAIL-OPEN", p.FailOpen}, {"ISSUED", p.Issued}, {"FAIR", p.Fair}}
	for _, each := range flags {
		if each.set {
			words = append(words, each.name)
		}
	}
	return words
}

// policy is what the node says of a namespace.
type policy struct {
	lease       time.Duration
	attemptsTTL time.Duration
	attemptsMax int64
	onFailure   Ending
	onException Ending
}

type settings struct {
	policy    *Policy
	lease     time.Duration
	wait      time.Duration
	waitGiven bool
	payload   *payload
	operation *string
	scope     *Scope
	firstSent *time.Time
	owner     string
	codec     Codec
	failure   Ending
	runMax    time.Duration
	patience  time.Duration
	detached  bool
	permits   int    // of a semaphore; 0: not of one
	access    string // to a read/write lock; empty: not to one
	observer  func(Observed)
	err       error
}

// The limits of the node.
const (
	ownerBytesMax     = 64
	namespaceBytesMax = 64
)

// isNamespace checks the name of a namespace: 1 to 64 bytes of A-Za-z0-9_.-
func (s *settings) isNamespace(name string) {
	strange := strings.ContainsFunc(name, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		return !letter && !('0' <= c && c <= '9') && c != '_' && c != '.' && c != '-'
	})
	if strange || name == "" || len(name) > namespaceBytesMax {
		s.wrong("the namespace %.80q of %d bytes: a name is 1 to %d bytes of A-Za-z0-9_.-", name,
			len(name), namespaceBytesMax)
	}
}

// Option changes a call, or all calls of a Claims (New).
type Option func(*settings)

func (s *settings) apply(options []Option) {
	for _, each := range options {
		each(s)
	}
}

// wrong keeps the first thing that is wrong with the options.
func (s *settings) wrong(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: "+format, append([]any{ErrOption}, args...)...)
	}
}

// isTime checks an option that is a time of at least 1 ms.
func (s *settings) isTime(name string, d time.Duration) {
	if d < time.Millisecond || d > waitMax {
		s.wrong("%s(%v): it is 1ms to %v", name, d, time.Duration(waitMax))
	}
}

// WithPolicy declares the namespace at the first call. If it exists with other terms, the calls
// fail and the error names the differences. Only for New.
func WithPolicy(p Policy) Option {
	return func(s *settings) {
		for _, each := range p.times() {
			if each.value != 0 && each.value != Off {
				s.isTime("the policy's "+each.name, each.value)
			}
		}
		if p.AttemptsMax < 0 || int64(p.AttemptsMax) > math.MaxUint32 {
			s.wrong("the policy's ATTEMPTS-MAX(%d): it is 0 to %d", p.AttemptsMax, uint32(math.MaxUint32))
		}
		s.policy = &p
	}
}

// WithLease is how long the owner may be silent before others take over, at least 1 ms; by default
// the namespace's. It is renewed at each third of it while the work runs.
func WithLease(d time.Duration) Option {
	return func(s *settings) {
		s.isTime("WithLease", d)
		s.lease = d
	}
}

// WithWait is how long to wait while another owner does the work; by default not at all, which 0
// is too. Forever waits until the context ends.
func WithWait(d time.Duration) Option {
	return func(s *settings) {
		if d != 0 && d != Forever && d < time.Millisecond {
			s.wrong("WithWait(%v): it is 0, at least 1ms, or Forever", d)
		}
		s.wait, s.waitGiven = d, true
	}
}

// payload is what a fingerprint is made of.
type payload struct {
	digest    string // of bytes
	canonical []byte // of a value
}

// WithFingerprint has the same key with another payload refused (ErrMismatch): SHA-256 of the bytes.
func WithFingerprint(bytes []byte) Option {
	made := &payload{digest: halfOf(bytes)}
	return func(s *settings) { s.payload = made }
}

// WithFingerprintOf is WithFingerprint of a value: SHA-256 of its canonical text (CanonicalArguments),
// in which the order of maps and sets does not count and numbers are exact.
func WithFingerprintOf(value any) Option {
	text, err := CanonicalArguments(value)
	if err != nil {
		return func(s *settings) { s.wrong("WithFingerprintOf: %w", err) }
	}
	return func(s *settings) { s.payload = &payload{canonical: text} }
}

// WithOperation makes the name of the operation part of the record, with the value of
// WithFingerprintOf: another operation under the key is refused (ErrMismatch), as another payload is.
// The name has 1 to 512 bytes; it survives a renamed function.
func WithOperation(name string) Option {
	return func(s *settings) { s.operation = &name }
}

// WithScope makes whose the operation is part of the record. It needs WithOperation.
func WithScope(scope Scope) Option { return func(s *settings) { s.scope = &scope } }

// fingerprint is what the claim carries, and its number; 0: nothing.
func (s *settings) fingerprint() (hex string, algorithm int, err error) {
	switch {
	case s.operation == nil && s.scope != nil:
		return "", 0, fmt.Errorf("%w: WithScope needs WithOperation", ErrOption)
	case s.operation == nil && s.payload == nil:
		return "", 0, nil
	case s.operation == nil && s.payload.canonical != nil:
		return halfOf(s.payload.canonical), sha256JSON, nil
	case s.operation == nil:
		return s.payload.digest, sha256Bytes, nil
	case s.payload != nil && s.payload.canonical == nil:
		return "", 0, fmt.Errorf("%w: WithOperation cannot be kept beside WithFingerprint; "+
			"WithFingerprintOf takes bytes as well", ErrOption)
	}
	arguments := []byte("{}") // of a call without any
	if s.payload != nil {
		arguments = s.payload.canonical
	}
	identity, err := identityOf(*s.operation, s.scope, arguments)
	if err != nil {
		return "", 0, fmt.Errorf("WithOperation: %w", err)
	}
	return halfOf(identity), sha256Identity, nil
}

// WithFirstSent is when the work was first requested, for namespaces with a window. Times before 1970
// are refused, so time.Time{} is, and those whose milliseconds since then have more than 63 bits.
func WithFirstSent(t time.Time) Option {
	return func(s *settings) {
		if t.IsZero() {
			s.wrong("WithFirstSent(time.Time{}) is no time")
		} else if t.Unix() < 0 || t.Unix() >= math.MaxInt64/1000 {
			s.wrong("WithFirstSent(%v): it is at least 1970, and 63 bits of milliseconds", t)
		}
		s.firstSent = &t
	}
}

// WithOwner is a label of at most 64 bytes for people.
func WithOwner(label string) Option {
	return func(s *settings) {
		if len(label) > ownerBytesMax {
			s.wrong("WithOwner(%.80q): a label of %d bytes; the limit is %d", label, len(label),
				ownerBytesMax)
		}
		s.owner = label
	}
}

// WithCodec says how results become bytes; by default JSON.
func WithCodec(codec Codec) Option {
	return func(s *settings) {
		if codec == nil {
			s.wrong("WithCodec(nil)")
		}
		s.codec = codec
	}
}

// WithFailure says what becomes of the claim when the function returns an error or panics. Without
// it the namespace's ON-FAILURE decides about errors, and its ON-EXCEPTION about panics, about
// ErrOutcomeUnknown and about errors of a context that ended.
func WithFailure(ending Ending) Option {
	return func(s *settings) {
		if ending != Release && ending != Keep && ending != InDoubt {
			s.wrong("WithFailure(%q): it is Release, Keep or InDoubt", string(ending))
		}
		s.failure = ending
	}
}

// WithRunMax is how long the lease of one claim is renewed at most, by default an hour; 0: never.
// Then the function's context ends and the lease runs out, so that work which never ends does not
// hold its key for ever.
func WithRunMax(d time.Duration) Option {
	return func(s *settings) {
		if d != 0 {
			s.isTime("WithRunMax", d)
		}
		s.runMax = d
	}
}

// WithPatience is how long a call is repeated while the node does not answer, at least 1 ms, by
// default 5 s. Repeating is safe: each claim has an id, and a node answers a repeat as it did the
// first time.
func WithPatience(d time.Duration) Option {
	return func(s *settings) {
		s.isTime("WithPatience", d)
		s.patience = d
	}
}

// milliseconds rounds up: what is positive stays so.
func milliseconds(d time.Duration) int64 {
	whole := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		whole++
	}
	return whole
}
