// rueidis with its client-side caching (CLIENT TRACKING, OPTIN and BCAST), its lock and queues.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const patience = 10 * time.Second

var ctx = context.Background()

func connect(tracking ...string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress:           []string{net.JoinHostPort(os.Getenv("SEMEL_TEST_HOST"), os.Getenv("SEMEL_TEST_PORT"))},
		ForceSingleClient:     true,
		ClientTrackingOptions: tracking,
	})
}

func same(found, expected any) error {
	if found == expected {
		return nil
	}
	return fmt.Errorf("%#v instead of %#v", found, expected)
}

func until(condition func() bool) error {
	for end := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("not so in time")
		}
	}
	return nil
}

type sides struct{ reader, writer rueidis.Client }

func (s sides) write(words ...string) error {
	return s.writer.Do(ctx, s.writer.B().Arbitrary(words...).Build()).Error()
}

// cached is what a read answers, and whether it came from the client's own memory.
func (s sides) cached(command rueidis.Cacheable) (string, bool) {
	reply := s.reader.DoCache(ctx, command, time.Minute)
	text, err := reply.ToString()
	if err != nil {
		text = err.Error()
	}
	return text, reply.IsCacheHit()
}

// changes: a read is cached until another connection writes.
func (s sides) changes(read func() rueidis.Cacheable, first, second string, write ...string) error {
	text, hit := s.cached(read())
	err := errors.Join(same(text, first), same(hit, false))
	text, hit = s.cached(read())
	err = errors.Join(err, same(text, first), same(hit, true))
	err = errors.Join(err, s.write(write...))
	return errors.Join(err, until(func() bool {
		text, _ = s.cached(read())
		return text == second
	}))
}

func (s sides) kinds() error {
	err := errors.Join(s.write("SET", "k:s", "1"), s.write("HSET", "k:h", "f", "1"),
		s.write("ZADD", "k:z", "1", "m"), s.write("RPUSH", "k:l", "1"), s.write("SADD", "k:set", "1"))
	b := s.reader.B
	return errors.Join(err,
		s.changes(func() rueidis.Cacheable { return b().Get().Key("k:s").Cache() }, "1", "2", "SET", "k:s", "2"),
		s.changes(func() rueidis.Cacheable { return b().Hget().Key("k:h").Field("f").Cache() }, "1", "2",
			"HSET", "k:h", "f", "2"),
		s.changes(func() rueidis.Cacheable { return b().Lindex().Key("k:l").Index(0).Cache() }, "1", "0",
			"LPUSH", "k:l", "0"))
}

func (s sides) counts() error {
	for _, each := range []struct {
		read  func() rueidis.Cacheable
		write []string
	}{
		{func() rueidis.Cacheable { return s.reader.B().Zcard().Key("k:z").Cache() }, []string{"ZADD", "k:z", "2", "n"}},
		{func() rueidis.Cacheable { return s.reader.B().Scard().Key("k:set").Cache() }, []string{"SADD", "k:set", "2"}},
		{func() rueidis.Cacheable { return s.reader.B().Llen().Key("k:l").Cache() }, []string{"RPOP", "k:l"}},
	} {
		before, err := s.reader.DoCache(ctx, each.read(), time.Minute).AsInt64()
		again := s.reader.DoCache(ctx, each.read(), time.Minute)
		if err = errors.Join(err, same(again.IsCacheHit(), true), s.write(each.write...)); err != nil {
			return fmt.Errorf("%v: %w", each.write, err)
		}
		if err = until(func() bool {
			now, _ := s.reader.DoCache(ctx, each.read(), time.Minute).AsInt64()
			return now != before
		}); err != nil {
			return fmt.Errorf("%v: %w", each.write, err)
		}
	}
	return nil
}

// ends: a key that expires, a key that a script writes, and all keys.
func (s sides) ends() error {
	get := func() rueidis.Cacheable { return s.reader.B().Get().Key("e").Cache() }
	err := errors.Join(s.write("SET", "e", "1", "PX", "200"))
	gone := rueidis.Nil.Error()
	text, _ := s.cached(get())
	err = errors.Join(err, same(text, "1"), until(func() bool {
		text, _ = s.cached(get())
		return text == gone
	}))
	err = errors.Join(err, s.write("EVAL", "return redis.call('SET', KEYS[1], 's')", "1", "e"),
		until(func() bool { text, _ = s.cached(get()); return text == "s" }))
	return errors.Join(err, s.write("FLUSHALL"), until(func() bool {
		text, _ = s.cached(get())
		return text == gone
	}))
}

// once: many that read a key at the same time ask the server once.
func (s sides) once() error {
	if err := s.write("SET", "once", "1"); err != nil {
		return err
	}
	var all sync.WaitGroup
	failed := make(chan error, 100)
	for range 100 {
		all.Go(func() {
			text, _ := s.cached(s.reader.B().Get().Key("once").Cache())
			if err := same(text, "1"); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// several keys with one request, part of them cached.
func (s sides) several() error {
	if err := s.write("MSET", "m1", "1", "m2", "2", "m3", "3"); err != nil {
		return err
	}
	_, _ = s.cached(s.reader.B().Get().Key("m2").Cache())
	found, err := rueidis.MGetCache(s.reader, ctx, time.Minute, []string{"m1", "m2", "m3"})
	if err != nil {
		return err
	}
	for key, message := range found {
		text, _ := message.ToString()
		err = errors.Join(err, same(text, key[1:]))
	}
	return errors.Join(err, same(len(found), 3))
}

func (s sides) broadcast() error {
	reader, err := connect("PREFIX", "b:", "BCAST", "NOLOOP")
	if err != nil {
		return err
	}
	defer reader.Close()
	other := sides{reader, s.writer}
	return errors.Join(s.write("SET", "b:1", "1"),
		other.changes(func() rueidis.Cacheable { return reader.B().Get().Key("b:1").Cache() }, "1", "2", "SET", "b:1", "2"))
}

// queue: one waits in a blocking command on a connection of its own, others are not held up.
func (s sides) queue() error {
	got := make(chan string, 1)
	go func() {
		words, _ := s.reader.Do(ctx, s.reader.B().Blpop().Key("q").Timeout(patience.Seconds()).Build()).AsStrSlice()
		got <- fmt.Sprint(words)
	}()
	for n := range 100 {
		if err := s.write("SET", fmt.Sprint("beside", n), "1"); err != nil {
			return err
		}
	}
	return errors.Join(s.write("RPUSH", "q", "job"), same(<-got, "[q job]"))
}

func check(name string, run func() error) {
	if err := run(); err != nil {
		fmt.Printf("failed %s: %q\n", name, err)
	} else {
		fmt.Printf("ok %s\n", name)
	}
}

func main() {
	reader, first := connect()
	writer, second := connect()
	if err := errors.Join(first, second); err != nil {
		fmt.Printf("failed connections: %q\n", err)
		os.Exit(1)
	}
	s := sides{reader, writer}
	check("cached until it changes, by kinds", s.kinds)
	check("cached counts", s.counts)
	check("expiry, a script, FLUSHALL", s.ends)
	check("many at once", s.once)
	check("several keys", s.several)
	check("by prefixes", s.broadcast)
	check("a queue", s.queue)
	fmt.Println("end")
}
