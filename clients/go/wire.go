package semel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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

// A repeat may have an answer where these came.
var passing = []string{"TRYAGAIN", "LOADING", "CLUSTERDOWN", "MASTERDOWN"}

// isAnswer says whether the node has decided: a reply, or an error that a repeat does not change.
func isAnswer(err error) bool {
	if err == nil || err == redis.Nil {
		return true
	}
	if errors.Is(err, redis.ErrClosed) {
		return true
	}
	for _, prefix := range passing {
		if redis.HasErrorPrefix(err, prefix) {
			return false
		}
	}
	var answered redis.Error
	return errors.As(err, &answered)
}

// single is a command that go-redis does not repeat by itself: ask does, and counts.
type single struct{ *redis.Cmd }

func (single) NoRetry() bool { return true }

func (c *Claims) do(ctx context.Context, args []any) (any, error) {
	cmd := single{redis.NewCmd(ctx, args...)}
	_ = c.rdb.Process(ctx, cmd) // the command has the error
	return cmd.Result()
}

// send is one call. It returns when ctx ends; go-redis goes on until its own timeouts.
func (c *Claims) send(ctx context.Context, args []any) (any, error) {
	if ctx.Done() == nil {
		return c.do(ctx, args)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	replies := make(chan reply, 1)
	go func() {
		value, err := c.do(ctx, args)
		replies <- reply{value, err}
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
	reply, _, err := c.insist(ctx, patience, args)
	return reply, err
}

// insist is ask, and says whether an earlier try may have had an effect.
func (c *Claims) insist(ctx context.Context, patience time.Duration, args []any) (reply any,
	repeated bool, err error) {
	timed, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for delay := 5 * time.Millisecond; ; delay = min(2*delay, 250*time.Millisecond) {
		reply, err := c.send(timed, args)
		if timed.Err() == nil && isAnswer(err) {
			return reply, repeated, explained(err)
		}
		if err == nil {
			return reply, repeated, nil // in the last moment
		}
		if timed.Err() == nil {
			last = err
		}
		repeated = true
		if err := pause(timed, delay); err != nil {
			break
		}
	}
	c.stale()
	if err := ctx.Err(); err != nil {
		return nil, true, err
	}
	if last == nil {
		last = timed.Err()
	}
	return nil, true, fmt.Errorf("%w within %v: %w", ErrUnavailable, patience, last)
}

// explained makes errors about keys an ErrKey.
func explained(err error) error {
	if redis.HasErrorPrefix(err, "key ") {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	return err
}

// askFields is ask for a reply with fields.
func (c *Claims) askFields(ctx context.Context, patience time.Duration, args []any) (fields, error) {
	reply, err := c.ask(ctx, patience, args)
	if err != nil {
		return nil, err
	}
	return fieldsOf(reply)
}
