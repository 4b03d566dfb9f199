// go-redis, in both dialects.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type dialogue struct {
	ctx      context.Context
	protocol int
	client   *redis.Client
}

func connect(protocol int, name string, db int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:       os.Getenv("SEMEL_TEST_HOST") + ":" + os.Getenv("SEMEL_TEST_PORT"),
		Protocol:   protocol,
		ClientName: name,
		DB:         db,
	})
}

func (d *dialogue) key(name string) string { return fmt.Sprintf("%d:%s", d.protocol, name) }

func same(found, expected any) error {
	if reflect.DeepEqual(found, expected) {
		return nil
	}
	return fmt.Errorf("%#v instead of %#v", found, expected)
}

func (d *dialogue) handshake() error {
	named := connect(d.protocol, "second", 4)
	defer named.Close()
	name, err := named.ClientGetName(d.ctx).Result()
	if err != nil {
		return err
	}
	if err := named.Set(d.ctx, d.key("here"), "4", 0).Err(); err != nil {
		return err
	}
	if err := d.client.Get(d.ctx, d.key("here")).Err(); err != redis.Nil {
		return fmt.Errorf("GET in another database: %v", err)
	}
	return errors.Join(same(name, "second"), same(d.client.Ping(d.ctx).Val(), "PONG"))
}

func (d *dialogue) claim() error {
	arguments := redis.SetArgs{Mode: "NX", Get: true, TTL: time.Minute}
	first := d.client.SetArgs(d.ctx, d.key("claim"), "CONSUMING", arguments).Err()
	second, err := d.client.SetArgs(d.ctx, d.key("claim"), "CONSUMING", arguments).Result()
	return errors.Join(err, same(first, redis.Nil), same(second, "CONSUMING"))
}

func (d *dialogue) release(key, token string) (bool, error) {
	released := false
	err := d.client.Watch(d.ctx, func(tx *redis.Tx) error {
		if tx.Get(d.ctx, key).Val() != token {
			return nil
		}
		_, err := tx.TxPipelined(d.ctx, func(pipe redis.Pipeliner) error {
			return pipe.Del(d.ctx, key).Err()
		})
		released = err == nil
		return err
	}, key)
	return released, err
}

func (d *dialogue) lock() error {
	key := d.key("lock")
	acquire := func(token string) bool { return d.client.SetNX(d.ctx, key, token, time.Minute).Val() }
	mine, theirs := acquire("mine"), acquire("theirs")
	wrong, err := d.release(key, "theirs")
	if err != nil {
		return err
	}
	right, err := d.release(key, "mine")
	return errors.Join(err, same([]bool{mine, theirs, wrong, right, acquire("theirs")},
		[]bool{true, false, false, true, true}))
}

func (d *dialogue) script() error {
	release := redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then
		return redis.call("del", KEYS[1]) end return 0`)
	d.client.Set(d.ctx, d.key("scripted"), "mine", 0)
	wrong, err := release.Run(d.ctx, d.client, []string{d.key("scripted")}, "theirs").Int()
	if err != nil {
		return err
	}
	right, err := release.Run(d.ctx, d.client, []string{d.key("scripted")}, "mine").Int()
	return errors.Join(err, same([]int{wrong, right}, []int{0, 1}))
}

func (d *dialogue) scripts() error {
	claim := redis.NewScript("return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])")
	keys := []string{d.key("job")}
	first := claim.Run(d.ctx, d.client, keys, "CONSUMING", 60000).Err()
	d.client.ScriptFlush(d.ctx)
	gone, err := claim.Exists(d.ctx, d.client).Result()
	if err != nil {
		return err
	}
	noscript := claim.EvalSha(d.ctx, d.client, keys, "CONSUMING", 60000).Err()
	second, err := claim.Run(d.ctx, d.client, keys, "CONSUMING", 60000).Text()
	if err != nil {
		return err
	}
	list, err := d.client.Eval(d.ctx, "return {KEYS[1], ARGV[1], 7, false}", keys, "a").Slice()
	if err != nil {
		return err
	}
	read, err := redis.NewScript("return redis.call('GET', KEYS[1])").RunRO(d.ctx, d.client, keys).Text()
	refused := d.client.EvalRO(d.ctx, "return redis.call('DEL', KEYS[1])", keys).Err()
	return errors.Join(err, same(first, redis.Nil), same(gone, []bool{false}),
		same(redis.HasErrorPrefix(noscript, "NOSCRIPT"), true), same(second, "CONSUMING"),
		same(list, []any{d.key("job"), "a", int64(7), nil}), same(read, "CONSUMING"),
		same(redis.HasErrorPrefix(refused, "Write commands are not allowed"), true))
}

func (d *dialogue) functions() error {
	code := fmt.Sprintf("#!lua name=go%d\nredis.register_function('go%d', "+
		"function(k, a) return redis.call('INCRBY', k[1], a[1]) end)", d.protocol, d.protocol)
	name := fmt.Sprintf("go%d", d.protocol)
	loaded, err := d.client.FunctionLoadReplace(d.ctx, code).Result()
	if err != nil {
		return err
	}
	sum, err := d.client.FCall(d.ctx, name, []string{d.key("sum")}, 5).Int()
	if err != nil {
		return err
	}
	deleted, err := d.client.FunctionDelete(d.ctx, name).Result()
	return errors.Join(err, same(loaded, name), same(sum, 5), same(deleted, "OK"))
}

// Eight at once read a counter and write one more, each under redsync's lock.
func (d *dialogue) redsync() error {
	locks := redsync.New(goredis.NewPool(d.client))
	options := []redsync.Option{redsync.WithExpiry(time.Minute), redsync.WithTries(2000),
		redsync.WithRetryDelay(3 * time.Millisecond)}
	var group sync.WaitGroup
	failures := make(chan error, 8)
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 10 {
				lock := locks.NewMutex(d.key("redsync"), options...)
				if err := lock.LockContext(d.ctx); err != nil {
					failures <- err
					return
				}
				seen, _ := d.client.Get(d.ctx, d.key("synced")).Int()
				d.client.Set(d.ctx, d.key("synced"), seen+1, 0)
				if ok, err := lock.UnlockContext(d.ctx); !ok || err != nil {
					failures <- fmt.Errorf("not given back: %v", err)
					return
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	lock := locks.NewMutex(d.key("lent"), redsync.WithExpiry(time.Minute))
	if err := lock.LockContext(d.ctx); err != nil {
		return err
	}
	extended, err := lock.ExtendContext(d.ctx)
	if err != nil {
		return err
	}
	other := locks.NewMutex(d.key("lent"), redsync.WithTries(1)).LockContext(d.ctx)
	d.client.Set(d.ctx, d.key("lent"), "stolen", 0)
	returned, _ := lock.UnlockContext(d.ctx)
	return errors.Join(same(d.client.Get(d.ctx, d.key("synced")).Val(), "80"), same(extended, true),
		same(other != nil, true), same(returned, false),
		same(d.client.Get(d.ctx, d.key("lent")).Val(), "stolen"))
}

func (d *dialogue) expiry() error {
	if err := d.client.Set(d.ctx, d.key("short"), "1", 30*time.Millisecond).Err(); err != nil {
		return err
	}
	end := time.Now().Add(10 * time.Second)
	for d.client.Exists(d.ctx, d.key("short")).Val() != 0 {
		if time.Now().After(end) {
			return errors.New("still there after 10 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.client.Set(d.ctx, d.key("long"), "1", 0)
	set := d.client.Expire(d.ctx, d.key("long"), 100*time.Second).Val()
	ttl := d.client.TTL(d.ctx, d.key("long")).Val()
	gone := d.client.Persist(d.ctx, d.key("long")).Val()
	return errors.Join(same([]bool{set, gone}, []bool{true, true}), same(ttl, 100*time.Second))
}

func (d *dialogue) pubsub() error {
	listener := d.client.Subscribe(d.ctx, d.key("news"))
	defer listener.Close()
	if _, err := listener.ReceiveTimeout(d.ctx, 10*time.Second); err != nil {
		return err
	}
	heard, err := d.client.Publish(d.ctx, d.key("news"), "text").Result()
	if err != nil {
		return err
	}
	found, err := listener.ReceiveTimeout(d.ctx, 10*time.Second)
	if err != nil {
		return err
	}
	message, isMessage := found.(*redis.Message)
	if !isMessage {
		return fmt.Errorf("%v instead of a message", found)
	}
	return errors.Join(same(heard, int64(1)), same(message.Payload, "text"),
		listener.Ping(d.ctx), listener.Unsubscribe(d.ctx, d.key("news")))
}

func (d *dialogue) pipeline() error {
	replies, err := d.client.Pipelined(d.ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i < 500; i++ {
			pipe.Incr(d.ctx, d.key("count"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, reply := range replies {
		if err := same(reply.(*redis.IntCmd).Val(), int64(i+1)); err != nil {
			return err
		}
	}
	return same(len(replies), 500)
}

func (d *dialogue) transaction() error {
	key := d.key("t")
	conflict := d.client.Watch(d.ctx, func(tx *redis.Tx) error {
		d.client.Set(d.ctx, key, "theirs", 0)
		_, err := tx.TxPipelined(d.ctx, func(pipe redis.Pipeliner) error {
			return pipe.Set(d.ctx, key, "mine", 0).Err()
		})
		return err
	}, key)
	var number *redis.IntCmd
	_, err := d.client.TxPipelined(d.ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(d.ctx, key, "1", 0)
		number = pipe.Incr(d.ctx, key)
		return nil
	})
	return errors.Join(err, same(conflict, redis.TxFailedErr), same(number.Val(), int64(2)))
}

func (d *dialogue) errors() error {
	d.client.Set(d.ctx, d.key("text"), "abc", 0)
	err := d.client.Incr(d.ctx, d.key("text")).Err()
	return same(fmt.Sprint(err), "ERR value is not an integer or out of range")
}

func (d *dialogue) hashes() error {
	d.client.HSet(d.ctx, d.key("hash"), "a", "1", "b", "2")
	found, err := d.client.HGetAll(d.ctx, d.key("hash")).Result()
	return errors.Join(err, same(found, map[string]string{"a": "1", "b": "2"}))
}

func main() {
	for _, protocol := range []int{2, 3} {
		d := &dialogue{ctx: context.Background(), protocol: protocol, client: connect(protocol, "", 0)}
		checks := []struct {
			name string
			run  func() error
		}{{"handshake", d.handshake}, {"claim", d.claim}, {"lock", d.lock}, {"script", d.script},
			{"expiry", d.expiry}, {"pubsub", d.pubsub}, {"pipeline", d.pipeline},
			{"transaction", d.transaction}, {"errors", d.errors}, {"hashes", d.hashes},
			{"scripts", d.scripts}, {"functions", d.functions}, {"redsync", d.redsync}}
		waits := []string{"script", "scripts", "functions", "redsync"}
		for _, check := range checks {
			if slices.Contains(waits, check.name) && os.Getenv("SEMEL_TEST_SCRIPTS") != "yes" {
				fmt.Printf("skipped %s, RESP%d: waits for scripts\n", check.name, protocol)
			} else if err := check.run(); err != nil {
				fmt.Printf("failed %s, RESP%d: %q\n", check.name, protocol, err)
			} else {
				fmt.Printf("ok %s, RESP%d\n", check.name, protocol)
			}
		}
		d.client.Close()
	}
	fmt.Println("end")
}
