package semel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// waitMax is the longest wait that a node takes; longer ones are asked for again.
const waitMax = 100 * 366 * 24 * time.Hour

var errCannotWait = errors.New(
	"semel: only a *redis.Client or *redis.ClusterClient can wait for another owner")

type reply struct {
	value any
	err   error
}

// waiter is one wait on a connection of its own, made with the options of the caller's client.
//
// A caller that leaves returns at once. Then the waiter ends its side of the connection and reads
// on: the node answers with a grant that it had sent, which is released, or it ends the connection
// too. After that it is asked once more by the CLAIM-ID, since it keeps a grant for a client with one.
type waiter struct {
	claims  *Claims
	request request
	replies chan reply // without room: either the caller gets it or the waiter ends it

	leaving context.Context // ends when the caller has left
	leave   context.CancelFunc
	ended   chan struct{} // closed when nothing reads from the connection any more

	mu     sync.Mutex
	socket net.Conn
}

// blocked is one wait. It returns when ctx ends.
func (c *Claims) blocked(ctx context.Context, r request, args []any) (any, error) {
	w := &waiter{claims: c, request: r, replies: make(chan reply), ended: make(chan struct{})}
	w.leaving, w.leave = context.WithCancel(context.WithoutCancel(ctx))
	go w.run(args)
	select {
	case found := <-w.replies:
		return found.value, found.err
	case <-ctx.Done():
		w.leave()
		go w.hangUp()
		return nil, ctx.Err()
	}
}

func (w *waiter) run(args []any) {
	defer w.leave()
	defer close(w.ended)
	asked, found := false, reply{}
	if client, err := w.client(); err != nil {
		found.err = err
	} else {
		// Not the context of the caller: go-redis would give up the connection with the reply unread.
		ctx := context.WithoutCancel(w.leaving)
		conn := client.Conn()
		cmd := single{redis.NewCmd(ctx, args...)}
		_ = conn.Process(ctx, cmd) // the command has the error
		asked = true
		found.value, found.err = cmd.Result()
		_ = conn.Close()
		_ = client.Close() // only now: go-redis' check of a connection waits for its reader
	}
	select {
	case w.replies <- found:
	case <-w.leaving.Done():
		if asked {
			w.claims.unwanted(w.request, found.value, found.err)
		}
	}
}

// client has one connection, to the node that has the key. It is made here and not by go-redis, so
// that a wait can be ended without it.
func (w *waiter) client() (*redis.Client, error) {
	rdb, plain := w.claims.rdb.(*redis.Client)
	if cluster, ok := w.claims.rdb.(*redis.ClusterClient); ok {
		var err error
		if rdb, err = cluster.MasterForKey(w.leaving, w.claims.name+":"+w.request.key); err != nil {
			return nil, err
		}
	} else if !plain {
		return nil, errCannotWait
	}
	options := *rdb.Options()
	socket, err := options.Dialer(w.leaving, options.Network, options.Addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.leaving.Err(); err != nil {
		_ = socket.Close()
		return nil, err
	}
	w.socket = socket
	dialed := make(chan net.Conn, 1)
	dialed <- socket
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		select {
		case socket := <-dialed:
			return socket, nil
		default:
			return nil, net.ErrClosed // it has ended, and is not replaced here
		}
	}
	options.DialerRetries = 1
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

// hangUp ends the connection of a wait whose caller has left.
func (w *waiter) hangUp() {
	w.mu.Lock()
	socket := w.socket
	w.mu.Unlock()
	if socket == nil {
		return // client ends it
	}
	half, ok := socket.(interface{ CloseWrite() error }) // TCP, TLS and Unix sockets
	if ok && half.CloseWrite() == nil {
		timer := time.NewTimer(tidyUpTime)
		defer timer.Stop()
		select {
		case <-w.ended:
			return
		case <-timer.C: // the node stands still
		}
	}
	_ = socket.Close()
}

// wait has the claim, or what has become of the work, when the other owner is gone. A connection that
// ends is replaced. The patience counts from when the node was last known to be there.
func (c *Claims) wait(ctx context.Context, s settings, r request) (fields, error) {
	end := time.Now().Add(min(s.wait, waitMax))
	seen := time.Now()
	delay := 5 * time.Millisecond
	for {
		timed, cancel, left := ctx, context.CancelFunc(func() {}), int64(0) // without limit
		if s.wait != Forever {
			// It ends when the node ought to have answered, had it been there.
			left = max(1, milliseconds(time.Until(end)))
			timed, cancel = context.WithDeadline(ctx, later(end, time.Now()).Add(s.patience))
		}
		value, err := c.blocked(timed, r, r.waiting(left))
		cancel()
		if ctx.Err() != nil && err != nil {
			return nil, ctx.Err()
		}
		if err == errCannotWait {
			return nil, err
		}
		if isAnswer(err) {
			if err != nil {
				return nil, explained(err)
			}
			found, err := fieldsOf(value)
			if found.text("outcome") != "in_flight" || s.wait != Forever && !time.Now().Before(end) {
				return found, err
			}
			seen = time.Now() // an operator ended the wait, but not ours
		} else {
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
		}
		if err := pause(ctx, delay); err != nil {
			return nil, err
		}
		delay = min(2*delay, 250*time.Millisecond)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
