// Package semel makes work happen once, over a Semel node and go-redis.
//
//	orders := semel.New(rdb, "orders", semel.WithPolicy(semel.Policy{As: "call"}))
//	done, err := semel.Once(ctx, orders, "order-4711",
//		func(ctx context.Context, work semel.Work) (Receipt, error) { return charge(ctx) })
//
// One caller runs the function; duplicates get its result. The commands behind it are SEMEL.CLAIM,
// RENEW, COMPLETE, FAIL, RELEASE and WAIT.
//
// All types are safe for use by several goroutines, except that a Lock is unlocked by its holder.
package semel

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Times with a meaning of their own; 0 is always 0.
const (
	// Forever is a wait that only the context ends.
	Forever time.Duration = -1
	// Default is the namespace's own time, for Tokens.Issue and IssueAs.
	Default time.Duration = math.MinInt64
	// Off is the time 0 in a Policy, where a field without a value is left to As.
	Off time.Duration = math.MinInt64 + 1
)

const (
	defaultLease    = time.Minute
	defaultPatience = 5 * time.Second
	defaultRunMax   = time.Hour
	policyAge       = time.Minute // after which the policy is read again
	tidyUpTime      = time.Second // for giving back a claim of a call that was cancelled
	failureBytesMax = 1024
)

// Claims is a namespace of a node. It holds no connection besides those of the go-redis client,
// except while a call waits for another owner: that takes a connection of its own, made with the
// client's options, so that waits never use up its pool.
type Claims struct {
	rdb      redis.UniversalClient
	name     string
	defaults settings

	mu       sync.Mutex
	declared bool
	policy   policy
	read     time.Time

	leftovers leftovers
}

// New names a namespace. It asks nothing: the first call declares the namespace if there is a
// WithPolicy, and reads its policy. The other options are defaults of all calls.
//
// rdb is a *redis.Client or *redis.ClusterClient. It stays the caller's, who closes it. A wrong option
// is what every call returns, and Err.
func New(rdb redis.UniversalClient, namespace string, options ...Option) *Claims {
	s := settings{patience: defaultPatience, runMax: defaultRunMax, codec: JSON}
	s.isNamespace(namespace)
	s.apply(options)
	if s.operation != nil {
		if _, err := identityOf(*s.operation, s.scope, nil); err != nil {
			s.wrong("WithOperation: %w", err)
		}
	}
	if _, ring := rdb.(*redis.Ring); ring || rdb == nil {
		s.wrong("a client of type %T cannot keep what claims promise", rdb)
	}
	return &Claims{rdb: rdb, name: namespace, defaults: s}
}

// Err is what is wrong with the options of New, without asking the node. Each call says so as well.
func (c *Claims) Err() error { return c.defaults.err }

// Name is the name of the namespace.
func (c *Claims) Name() string { return c.name }

func (c *Claims) settings(options []Option) settings {
	s := c.defaults
	s.apply(options)
	if s.policy != c.defaults.policy && s.err == nil {
		s.wrong("WithPolicy is one of New, not of a call")
	}
	return s
}

// ready gives the policy, declared if it has to be. A policy that an operator changes is seen within
// a minute. A node without a storage forgets its namespaces when it ends: they are declared again.
func (c *Claims) ready(ctx context.Context) (policy, error) {
	if c.defaults.err != nil {
		return policy{}, c.defaults.err
	}
	c.mu.Lock()
	declared, known, fresh := c.declared, c.policy, time.Since(c.read) < policyAge && !c.read.IsZero()
	c.mu.Unlock()
	if fresh {
		return known, nil
	}
	if !declared && c.defaults.policy != nil {
		if err := c.declare(ctx); err != nil {
			return policy{}, err
		}
	}
	found, exists, err := c.show(ctx)
	if err == nil && !exists && c.defaults.policy != nil {
		if err = c.declare(ctx); err == nil {
			found, _, err = c.show(ctx)
		}
	}
	if err != nil {
		return policy{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declared, c.policy, c.read = true, found, time.Now()
	return found, nil
}

// stale has the policy read again: the node may be another one.
func (c *Claims) stale() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}

func (c *Claims) declare(ctx context.Context) error {
	args := append([]any{"SEMEL.NAMESPACE", "DECLARE", c.name}, c.defaults.policy.words()...)
	if _, err := c.ask(ctx, c.defaults.patience, args); err != nil {
		return fmt.Errorf("semel: namespace %q: %w", c.name, err)
	}
	return nil
}

// show reads the policy. Whoever may claim, but not read policies, gets the defaults.
func (c *Claims) show(ctx context.Context) (policy, bool, error) {
	found, err := c.ask(ctx, c.defaults.patience, []any{"SEMEL.NAMESPACE", "SHOW", c.name})
	switch {
	case err == redis.Nil:
		return policy{lease: defaultLease, onException: Release}, false, nil
	case redis.HasErrorPrefix(err, "NOPERM"):
		return policy{lease: defaultLease}, true, nil
	case err != nil:
		return policy{}, false, err
	}
	fields, err := fieldsOf(found)
	if err != nil {
		return policy{}, false, err
	}
	return policy{
		lease:       fields.duration("lease_ms"),
		attemptsTTL: fields.duration("attempts_ttl_ms"),
		attemptsMax: fields.number("attempts_max"),
		onFailure:   wordOf(fields.text("on_failure")),
		onException: wordOf(fields.text("on_exception")),
	}, true, nil
}
