package semel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// fields is a reply: a map in RESP3, names and values in turn in RESP2.
type fields map[string]any

func fieldsOf(reply any) (fields, error) {
	found := fields{}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			if text, ok := name.(string); ok {
				found[text] = value
			}
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			if text, ok := reply[i].(string); ok {
				found[text] = reply[i+1]
			}
		}
	default:
		return nil, fmt.Errorf("semel: a reply of type %T; is this a Semel node?", reply)
	}
	return found, nil
}

func (f fields) text(name string) string {
	text, _ := f[name].(string)
	return text
}

func (f fields) number(name string) int64 {
	switch value := f[name].(type) {
	case int64:
		return value
	case string:
		number, _ := strconv.ParseInt(value, 10, 64)
		return number
	}
	return 0
}

func (f fields) flag(name string) bool {
	switch value := f[name].(type) {
	case bool:
		return value
	case string:
		return value == "1"
	case int64:
		return value == 1
	}
	return false
}

func (f fields) duration(name string) time.Duration {
	return time.Duration(f.number(name)) * time.Millisecond
}

// transient are the first words of the errors that a repeat may find gone: the list of docs/doors.md,
// for claims and for the calls of owners.
var transient = []string{"BUSY", "TRYAGAIN", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY",
	"MOVED", "ASK", "OOM", "MISCONF"}

// errorWord is the first word of an error of the node, or empty.
func errorWord(err error) string {
	var answered redis.Error
	if !errors.As(err, &answered) {
		return ""
	}
	word, _, _ := strings.Cut(answered.Error(), " ")
	return word
}

// isAnswer says whether the node has decided: a reply, or an error that a repeat does not change.
func isAnswer(err error) bool {
	if err == nil || err == redis.Nil || errors.Is(err, redis.ErrClosed) {
		return true
	}
	word := errorWord(err)
	return word != "" && !slices.Contains(transient, word)
}

// isReply says whether the node's answer is here, so that the caller knows what was granted.
func isReply(err error) bool { return isAnswer(err) && !errors.Is(err, redis.ErrClosed) }

// single is a command that go-redis does not repeat by itself: ask does, and counts.
type single struct{ *redis.Cmd }

func (single) NoRetry() bool { return true }

func (c *Claims) do(ctx context.Context, args []any) (any, error) {
	cmd := single{redis.NewCmd(ctx, args...)}
	_ = c.rdb.Process(ctx, cmd) // the command has the error
	return cmd.Result()
}

// send is one call. It returns when ctx ends; go-redis goes on until its own timeouts. A reply that
// comes after that goes to late, if there is one.
func (c *Claims) send(ctx context.Context, args []any, late func(value any)) (any, error) {
	return attempt(ctx, late, func() (any, error) { return c.do(ctx, args) })
}

func attempt(ctx context.Context, late func(value any), call func() (any, error)) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	replies := make(chan reply) // without room: either the caller gets it or late does
	go func() {
		value, err := call()
		select {
		case replies <- reply{value, err}:
		case <-ctx.Done():
			if late != nil && err == nil {
				late(value)
			}
		}
	}()
	select {
	case found := <-replies:
		return found.value, found.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pause is a delay between two tries.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask repeats a call until the node has answered, ctx ends or the patience does.
func (c *Claims) ask(ctx context.Context, patience time.Duration, args []any) (any, error) {
	reply, _, err := c.insist(ctx, patience, args, nil)
	return reply, err
}

// insist is ask, and says whether an earlier try may have had an effect. Errors that begin with one
// of `final` end it as well.
func (c *Claims) insist(ctx context.Context, patience time.Duration, args []any,
	late func(any), final ...string) (reply any, unread bool, err error) {
	timed, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for delay := 5 * time.Millisecond; ; delay = min(2*delay, 250*time.Millisecond) {
		reply, err := c.send(timed, args, late)
		ends := isAnswer(err) || slices.Contains(final, errorWord(err))
		if err == nil || timed.Err() == nil && ends {
			return reply, unread, explained(err)
		}
		if word := errorWord(err); word == "" || word == "TRYAGAIN" {
			unread = true
		}
		if timed.Err() == nil {
			last = err
		}
		if err := pause(timed, delay); err != nil {
			break
		}
	}
	c.stale()
	if err := ctx.Err(); err != nil {
		return nil, unread, err
	}
	if last == nil {
		last = timed.Err()
	}
	return nil, unread, fmt.Errorf("%w within %v: %w", ErrUnavailable, patience, last)
}

// claim asks for a claim. What is granted after it has returned is released.
func (c *Claims) claim(ctx context.Context, patience time.Duration, r request) (fields, error) {
	late := func(value any) { c.unwanted(r, value, nil) }
	reply, unread, err := c.insist(ctx, patience, r.said(), late)
	if err != nil {
		if (unread || r.isNext) && !isReply(err) { // an earlier call may have made it next
			c.abandon(abandoned{request: r, again: true})
		}
		return nil, err
	}
	return fieldsOf(reply)
}

// explained makes errors about keys an ErrKey.
func explained(err error) error {
	if redis.HasErrorPrefix(err, "key ") {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	return err
}
