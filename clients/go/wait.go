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

// waiting makes a client with one connection, to the node that has the key, for a call that blocks.
func (c *Claims) waiting(ctx context.Context, key string) (*redis.Client, error) {
	rdb, plain := c.rdb.(*redis.Client)
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		var err error
		if rdb, err = cluster.MasterForKey(ctx, c.name+":"+key); err != nil {
			return nil, err
		}
	} else if !plain {
		return nil, errCannotWait
	}
	options := *rdb.Options()
	options.ReadTimeout = -1
	options.ContextTimeoutEnabled = false
	options.MaxRetries = -1
	options.PoolSize, options.MinIdleConns, options.MaxIdleConns = 1, 0, 1
	options.MaxActiveConns = 0
	// Nothing in the background.
	options.MaintNotificationsConfig = &maintnotifications.Config{
		Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&options), nil
}

var errCannotWait = errors.New(
	"semel: only a *redis.Client or *redis.ClusterClient can wait for another owner")

type reply struct {
	value any
	err   error
}

// blocked is one SEMEL.WAIT on a connection of its own. If ctx ends, the wait is ended by CLIENT
// UNBLOCK, so that its reply says whether the claim was granted in that moment; then it is given
// back. Without the right to that command the connection is closed, and such a claim ends with its
// lease.
func (c *Claims) blocked(ctx context.Context, key string, args []any) (any, error) {
	client, err := c.waiting(ctx, key)
	if err != nil {
		return nil, err
	}
	identities := make(chan int64, 1)
	replies := make(chan reply, 1)
	go func() {
		defer client.Close()
		conn := client.Conn()
		defer conn.Close()
		lives := context.WithoutCancel(ctx)
		id, err := conn.ClientID(lives).Result()
		if err != nil && !isAnswer(err) {
			replies <- reply{nil, err}
			return
		}
		identities <- id
		value, err := conn.Do(lives, args...).Result()
		replies <- reply{value, err}
	}()
	select {
	case found := <-replies:
		return found.value, found.err
	case <-ctx.Done():
	}
	c.leave(client, key, identities, replies)
	_ = client.Close()
	return nil, ctx.Err()
}

// leave ends a wait.
func (c *Claims) leave(waiting *redis.Client, key string, identities <-chan int64,
	replies <-chan reply) {
	ctx, cancel := context.WithTimeout(context.Background(), tidyUpTime)
	defer cancel()
	select {
	case id := <-identities:
		options := *waiting.Options()
		options.ReadTimeout = tidyUpTime
		another := redis.NewClient(&options)
		defer another.Close()
		// It may not wait yet.
		for tries := 0; ; tries++ {
			done, err := another.ClientUnblock(ctx, id).Result()
			if err != nil {
				return
			}
			if done == 1 || len(replies) == 1 || pause(ctx, time.Millisecond) != nil {
				break
			}
		}
	default: // not connected yet
		return
	}
	select {
	case found := <-replies:
		if found.err != nil {
			return
		}
		granted, err := fieldsOf(found.value)
		if epoch := granted.number("epoch"); err == nil && epoch != 0 {
			_, _ = c.ask(ctx, tidyUpTime, []any{"SEMEL.RELEASE", c.name, key, epoch})
		}
	case <-ctx.Done():
	}
}

// blockedUntil ends when the node ought to have answered, had it been there.
func (c *Claims) blockedUntil(ctx context.Context, end time.Time, s settings, key string,
	args []any) (any, error) {
	if !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, later(end, time.Now()).Add(s.patience))
		defer cancel()
	}
	return c.blocked(ctx, key, args)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wait has the claim, or what has become of the work, when the other owner is gone. A connection that
// ends is replaced. The patience counts from when the node was last known to be there.
//
// The call carries no CLAIM-ID: the node would keep the place in its queue for a client that does
// not come back, and grant it the claim.
func (c *Claims) wait(ctx context.Context, s settings, claim []any) (fields, error) {
	key := claim[1].(string)
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
		args := append([]any{"SEMEL.WAIT", left, c.name, key}, claim[4:]...)
		found, err := c.blockedUntil(ctx, end, s, key, args)
		if ctx.Err() != nil && err != nil {
			return nil, ctx.Err()
		}
		if err == errCannotWait {
			return nil, err
		}
		if isAnswer(err) && !redis.HasErrorPrefix(err, "MOVED") {
			if err != nil {
				return nil, explained(err)
			}
			return fieldsOf(found)
		}
		c.stale()
		if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
			cluster.ReloadState(ctx)
		}
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
