// The tests of a small service in Go: main KIND PORT TESTS, with KIND mini, redis or semel. The last
// line is JSON, as that of service.py.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

const cad = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0"
const short = 10 * time.Millisecond

var ctx = context.Background()

func resident() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	must(err)
	return float64(kib) / 1024
}

func must(err error) {
	if err != nil && err != redis.Nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect(got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		fmt.Fprintf(os.Stderr, "%v is not %v\n", got, wanted)
		os.Exit(1)
	}
}

func oneTest(db *redis.Client, number int, move func(time.Duration)) {
	must(db.FlushAll(ctx).Err())
	session := fmt.Sprint("session:", number)
	ttl := time.Minute
	if move == nil {
		ttl = short
	}
	must(db.Set(ctx, session, "ada", 0).Err())
	expect(db.Get(ctx, session).Val(), "ada")
	must(db.PExpire(ctx, session, ttl).Err())
	if move != nil {
		move(ttl)
	} else {
		time.Sleep(ttl + time.Millisecond)
	}
	expect(db.Get(ctx, session).Err(), redis.Nil)
	must(db.RPush(ctx, "queue", "a", "b").Err())
	expect(db.LPop(ctx, "queue").Val(), "a")
	must(db.ZAdd(ctx, "board", redis.Z{Score: 1, Member: "ada"}, redis.Z{Score: 2, Member: "bob"}).Err())
	expect(db.ZRange(ctx, "board", 0, -1).Val(), []string{"ada", "bob"})
	must(db.HSet(ctx, "cart", "tea", 2).Err())
	expect(db.HIncrBy(ctx, "cart", "tea", 1).Val(), 3)
	expect(db.SetNX(ctx, "lock", "mine", 30*time.Second).Val(), true)
	expect(db.Eval(ctx, cad, []string{"lock"}, "other").Val(), 0)
	expect(db.Eval(ctx, cad, []string{"lock"}, "mine").Val(), 1)
	expect(db.Get(ctx, "lock").Err(), redis.Nil)
}

func main() {
	kind, address := os.Args[1], "127.0.0.1:"+os.Args[2]
	tests, err := strconv.Atoi(os.Args[3])
	must(err)
	before, began := resident(), time.Now()
	var move func(time.Duration)
	if kind == "mini" {
		server, err := miniredis.Run()
		must(err)
		defer server.Close()
		address, move = server.Addr(), server.FastForward
	}
	db := redis.NewClient(&redis.Options{Addr: address})
	must(db.Ping(ctx).Err())
	started := time.Since(began)
	if kind != "mini" {
		started = 0
	}
	if kind == "semel" {
		move = func(by time.Duration) {
			must(db.Do(ctx, "SEMEL.CLOCK", "ADVANCE", by.Milliseconds()).Err())
		}
	}
	began = time.Now()
	for number := range tests {
		oneTest(db, number, move)
	}
	fmt.Printf("{\"start_ms\": %f, \"seconds\": %f, \"mib\": %f}\n", started.Seconds()*1000,
		time.Since(began).Seconds(), resident()-before)
}
