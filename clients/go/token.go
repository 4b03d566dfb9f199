package semel

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const tokenBytes = 24 // 16 random ones, then the end of its time in Unix milliseconds

// Tokens issues tokens that are used once: a form, a link in a mail, a coupon.
type Tokens struct{ claims *Claims }

// NewTokens names a namespace for tokens. Without a WithPolicy it is declared as "token": six
// seconds to use a token, an hour in which its use is remembered, three tries.
func NewTokens(claims *Claims) *Tokens {
	if claims.defaults.policy == nil {
		defaults := claims.defaults
		defaults.policy = &Policy{As: "token"}
		claims = &Claims{rdb: claims.rdb, name: claims.name, defaults: defaults}
	}
	return &Tokens{claims}
}

// Issue makes a token, good for ttl, at least 1 ms; Default: for the namespace's ATTEMPTS-TTL. It is
// text for URLs.
func (t *Tokens) Issue(ctx context.Context, ttl time.Duration) (string, error) {
	if ttl == Default {
		known, err := t.claims.ready(ctx)
		if err != nil {
			return "", err
		}
		ttl = known.attemptsTTL
	}
	bytes := make([]byte, tokenBytes)
	_, _ = rand.Read(bytes[:16]) // it never fails
	binary.BigEndian.PutUint64(bytes[16:], uint64(time.Now().Add(ttl).UnixMilli()))
	token := base64.RawURLEncoding.EncodeToString(bytes)
	if _, err := t.IssueAs(ctx, token, ttl); err != nil {
		return "", err
	}
	return token, nil
}

// IssueAs issues a token that the caller chose; false: it is known already, used or not. A repeat
// after a lost reply may answer false for a token that it issued.
func (t *Tokens) IssueAs(ctx context.Context, token string, ttl time.Duration) (bool, error) {
	if token == "" {
		return false, fmt.Errorf("%w: the token is empty", ErrKey)
	}
	check := t.claims.settings(nil)
	if ttl != Default {
		check.isTime("the time of a token", ttl)
	}
	if check.err != nil {
		return false, check.err
	}
	if _, err := t.claims.ready(ctx); err != nil {
		return false, err
	}
	args := []any{"SEMEL.ISSUE", t.claims.name, token}
	if ttl != Default {
		args = append(args, "TTL", milliseconds(ttl))
	}
	reply, err := t.claims.ask(ctx, t.claims.defaults.patience, args)
	if err != nil {
		return false, err
	}
	return fields{"": reply}.number("") == 1, nil
}

// Consume uses a token up. ErrTokenUsed: it was used before. ErrTokenExpired: too late.
// ErrTokenUnknown: never issued; also for a chosen token (IssueAs) whose time is over. ErrInFlight:
// it is being redeemed.
func (t *Tokens) Consume(ctx context.Context, token string, options ...Option) error {
	done, err := Redeem(ctx, t, token,
		func(context.Context, Work) (struct{}, error) { return struct{}{}, nil }, options...)
	if done.Replayed {
		return ErrTokenUsed
	}
	return err
}

// Redeem runs fn for a token as Once does, and repeats get its result: a double click. If fn fails
// the token is good still, for ATTEMPTS-TTL. The errors are those of Once and of Consume; where
// there is no result to repeat it is ErrTokenUsed.
func Redeem[T any](ctx context.Context, t *Tokens, token string,
	fn func(ctx context.Context, work Work) (T, error), options ...Option) (Done[T], error) {
	done, err := Once(ctx, t.claims, token, fn, options...)
	switch {
	case err == ErrUnknown && hasExpired(token):
		err = ErrTokenExpired
	case err == ErrUnknown:
		err = ErrTokenUnknown
	case errors.Is(err, ErrNoResult):
		err = ErrTokenUsed
	}
	return done, err
}

// hasExpired reads the time in a token of Issue. It only names the error: whoever forges it gets
// another word for no.
func hasExpired(token string) bool {
	bytes, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil && len(bytes) == tokenBytes &&
		int64(binary.BigEndian.Uint64(bytes[16:])) <= time.Now().UnixMilli()
}
