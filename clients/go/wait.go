package semel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// waiting makes a client with one connection, for one call that blocks.
func (c *Claims) waiting() (redis.UniversalClient, error) {
	switch rdb := c.rdb.(type) {
	case *redis.Client:
		options := *rdb.Options()
		options.ReadTimeout = -1
		options.ContextTimeoutEnabled = false
		options.MaxRetries = -1
		options.PoolSize, options.MinIdleConns, options.MaxIdleConns = 1, 0, 1
		options.MaxActiveConns = 0
		options.MaintNotificationsConfig = quiet()
		return redis.NewClient(&options), nil
	case *redis.ClusterClient:
		options := *rdb.Options()
		options.ReadTimeout = -1
		options.ContextTimeoutEnabled = false
		options.MaxRetries = -1
		options.PoolSize, options.MinIdleConns, options.MaxIdleConns = 1, 0, 1
		options.MaxActiveConns = 0
		options.MaintNotificationsConfig = quiet()
		return redis.NewClusterClient(&options), nil
	}
	return nil, fmt.Errorf("semel: cannot wait with a %T; use a *redis.Client or "+
		"*redis.ClusterClient", c.rdb)
}

// quiet: for one call, nothing in the background.
func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// blocked is one SEMEL.WAIT on a connection of its own, closed when ctx ends.
func (c *Claims) blocked(ctx context.Context, args []any) (any, error) {
	client, err := c.waiting()
	if err != nil {
		return nil, err
	}
	type reply struct {
		value any
		err   error
	}
	replies := make(chan reply, 1)
	go func() {
		value, err := client.Do(context.WithoutCancel(ctx), args...).Result()
		replies <- reply{value, err}
	}()
	select {
	case found := <-replies:
		_ = client.Close()
		return found.value, found.err
	case <-ctx.Done():
		_ = client.Close() // its read ends
		return nil, ctx.Err()
	}
}

// blockedUntil ends when the node ought to have answered, had it been there.
func (c *Claims) blockedUntil(ctx context.Context, end time.Time, s settings,
	args []any) (any, error) {
	if !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, later(end, time.Now()).Add(s.patience))
		defer cancel()
	}
	return c.blocked(ctx, args)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wait has the claim, or what has become of the work, when the other owner is gone. A connection that
// ends is replaced: with the same id the node keeps the place in its queue. The patience counts from
// when the node was last known to be there.
func (c *Claims) wait(ctx context.Context, s settings, claim []any) (fields, error) {
	var end time.Time
	if s.wait != Forever {
		end = time.Now().Add(s.wait)
	}
	seen := time.Now()
	delay := 5 * time.Millisecond
	for {
		left := int64(0) // without limit
		if !end.IsZero() {
			left = max(1, milliseconds(time.Until(end)))
		}
		args := append([]any{"SEMEL.WAIT", left}, claim...)
		reply, err := c.blockedUntil(ctx, end, s, args)
		if ctx.Err() != nil && err != nil {
			return nil, ctx.Err()
		}
		if isAnswer(err) {
			if err != nil {
				return nil, explained(err)
			}
			return fieldsOf(reply)
		}
		c.stale()
		var network *net.OpError
		if errors.Is(err, io.EOF) || errors.As(err, &network) && network.Op != "dial" {
			seen, delay = time.Now(), 5*time.Millisecond // it was connected, and waited
		}
		if time.Since(seen) > s.patience {
			return nil, fmt.Errorf("%w within %v: %w", ErrUnavailable, s.patience, err)
		}
		if err := pause(ctx, delay); err != nil {
			return nil, err
		}
		delay = min(2*delay, 250*time.Millisecond)
	}
}
