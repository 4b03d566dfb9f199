package semeltest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"semel/client/semeltest"
)

// As a stranger's project uses it: a small service, and its tests.

type carts struct{ rdb *redis.Client }

func (c carts) put(user, thing string) error {
	var err error
	for range 3 {
		if err = c.rdb.Set(context.Background(), "cart:"+user, thing, 30*time.Minute).Err(); err == nil {
			return nil
		}
	}
	return err
}

func (c carts) get(user string) string {
	return c.rdb.Get(context.Background(), "cart:"+user).Val()
}

func TestMain(m *testing.M) {
	if os.Getenv("SEMEL_BINARY") == "" {
		for _, kind := range []string{"release", "dev"} {
			path, _ := filepath.Abs("../../../build/" + kind + "/tools/semel/semel")
			if _, err := os.Stat(path); err == nil {
				_ = os.Setenv("SEMEL_BINARY", path)
				break
			}
		}
	}
	os.Exit(m.Run())
}

func start(t *testing.T) (*semeltest.Server, carts) {
	if os.Getenv("SEMEL_BINARY") == "" {
		t.Skip("no program semel: build it, or name it in SEMEL_BINARY")
	}
	server := semeltest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	return server, carts{rdb}
}

func TestACartIsForgottenWithoutWaiting(t *testing.T) {
	t.Parallel()
	server, carts := start(t)
	if err := carts.put("ada", "tea"); err != nil {
		t.Fatal(err)
	}
	server.Advance(29 * time.Minute)
	if carts.get("ada") != "tea" {
		t.Fatal("it is forgotten too early")
	}
	server.Advance(time.Minute)
	if carts.get("ada") != "" {
		t.Fatal("it is still there")
	}
}

func TestAWriteThatFailsOnceIsTriedAgain(t *testing.T) {
	t.Parallel()
	server, carts := start(t)
	server.Fault(semeltest.Fault{Error: "LOADING not yet", Command: "set"})
	if err := carts.put("ada", "tea"); err != nil || carts.get("ada") != "tea" {
		t.Fatal(err, carts.get("ada"))
	}
}

func TestAWriteThatFailsAlwaysIsAnError(t *testing.T) {
	t.Parallel()
	server, carts := start(t)
	server.Fault(semeltest.Fault{Error: "ERR no", Key: "cart:*", Count: -1})
	if err := carts.put("ada", "tea"); err == nil {
		t.Fatal("no error")
	}
	server.ClearFaults()
	if carts.get("ada") != "" {
		t.Fatal("it ran")
	}
}

func TestAReplyThatIsLostHasItsEffect(t *testing.T) {
	t.Parallel()
	server, carts := start(t)
	ctx := context.Background()
	for _, each := range []struct {
		fault semeltest.Fault
		count string
	}{{semeltest.Fault{DropReply: true, Command: "incr"}, "1"},
		{semeltest.Fault{Drop: true, Command: "incr"}, "1"},
		{semeltest.Fault{Drop: true, Command: "incr", Nth: 2}, "2"}} {
		server.Fault(each.fault)
		for range max(each.fault.Nth, 1) {
			_ = carts.rdb.Incr(ctx, "n").Err()
		}
		if count := carts.rdb.Get(ctx, "n").Val(); count != each.count {
			t.Fatalf("%+v: %s", each.fault, count)
		}
	}
}

func TestAReplyThatComesLateIsATimeout(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1,
		ReadTimeout: 50 * time.Millisecond})
	defer rdb.Close()
	server.Fault(semeltest.Fault{Delay: 30 * time.Second, Command: "get"})
	if err := rdb.Get(context.Background(), "k").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestTheClockStandsStill(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	server.Freeze()
	before := server.Now()
	server.Advance(time.Hour)
	if passed := server.Now().Sub(before); passed != time.Hour {
		t.Fatal(passed)
	}
	server.Run()
	if server.Now().Before(before.Add(time.Hour)) {
		t.Fatal("it went back")
	}
}

func TestFlushLeavesNothing(t *testing.T) {
	t.Parallel()
	server, carts := start(t)
	server.Fault(semeltest.Fault{Drop: true, Count: -1})
	server.Flush()
	if err := carts.put("ada", "tea"); err != nil {
		t.Fatal(err)
	}
	server.Flush()
	if carts.get("ada") != "" {
		t.Fatal("it is still there")
	}
}

func TestWithoutAClientLibrary(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	for _, each := range []struct {
		words []string
		reply any
	}{{[]string{"SET", "k", "v\r\n"}, "OK"}, {[]string{"GET", "k"}, "v\r\n"},
		{[]string{"GET", "none"}, nil}, {[]string{"APPEND", "k", "x"}, int64(4)}} {
		reply, err := server.Do(each.words...)
		if err != nil || reply != each.reply {
			t.Fatal(each.words, reply, err)
		}
	}
	var refused semeltest.ReplyError
	if _, err := server.Do("GET"); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	server.Fault(semeltest.Fault{Drop: true, Command: "get"})
	if _, err := server.Do("GET", "k"); err == nil {
		t.Fatal("no error")
	}
	if reply, err := server.Do("GET", "k"); err != nil || reply != "v\r\nx" {
		t.Fatal(reply, err)
	}
}
