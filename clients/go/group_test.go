package semel_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

// With three nodes of a group, whose ports the runner of suites names.
func TestGroup(t *testing.T) {
	ports := strings.Fields(os.Getenv("SEMEL_TEST_NODES"))
	if len(ports) == 0 {
		t.Skip("no group: tests/clients/run.py --against group has one")
	}
	options := &redis.ClusterOptions{}
	for _, port := range ports {
		options.Addrs = append(options.Addrs, "127.0.0.1:"+port)
	}
	rdb := redis.NewClusterClient(options)
	defer rdb.Close()
	orders := semel.New(rdb, "group-go", semel.WithPolicy(semel.Policy{As: "call"}))
	var ran atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for key := range 20 {
				_, err := semel.Once(ctx, orders, string(rune('a'+key)),
					func(context.Context, semel.Work) (int32, error) { return ran.Add(1), nil },
					semel.WithWait(semel.Forever))
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	same(t, ran.Load(), 20)

	lock, err := orders.Lock(ctx, "lock")
	is(t, err, nil)
	waits := make(chan error)
	go func() {
		second, err := orders.Lock(ctx, "lock", semel.WithWait(20*time.Second))
		if err == nil {
			err = second.Unlock()
		}
		waits <- err
	}()
	_, err = orders.TryLock(ctx, "lock")
	is(t, err, semel.ErrInFlight)
	is(t, lock.Unlock(), nil)
	is(t, <-waits, nil)

	tokens := semel.NewTokens(semel.New(rdb, "tokens-go"))
	token, err := tokens.Issue(ctx, time.Minute)
	is(t, err, nil)
	is(t, tokens.Consume(ctx, token), nil)
	is(t, tokens.Consume(ctx, token), semel.ErrTokenUsed)
}
