package semel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

// door plays the stories of tests/doors/stories.json; tests/doors/run.py starts it, between a node
// and what loses its replies. It prints a line a story: its name, a tab, its outcome.
type door struct {
	t     *testing.T
	rdb   *redis.Client
	clock *redis.Client // to the node itself
	calls *semel.Claims
	runs  atomic.Int32
}

func TestDoorStories(t *testing.T) {
	port, direct := os.Getenv("SEMEL_TEST_PORT"), os.Getenv("SEMEL_TEST_DIRECT_PORT")
	if direct == "" {
		t.Skip("tests/doors/run.py starts it")
	}
	d := &door{t: t}
	d.rdb = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	d.clock = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + direct})
	defer d.clock.Close()
	d.calls = semel.New(d.rdb, os.Getenv("SEMEL_TEST_NAMESPACE"), semel.WithPatience(time.Second))
	d.results()
	d.keys()
	d.others()
	d.times()
	d.leases()
	d.locks()
	d.cancelled()
	for _, story := range []string{"lost-claim", "lost-complete", "busy-claim", "busy-complete",
		"tryagain-claim", "tryagain-complete", "restart"} {
		_, err := semel.Once(ctx, d.calls, story, d.work("paid"))
		d.tell(story, word(err, nil, "ran"))
	}
	_, err := semel.Once(ctx, d.calls, "oom-complete", d.work("paid"))
	_, again := semel.Once(ctx, d.calls, "oom-complete", d.work("paid"))
	d.tell("oom-complete", word(err, semel.ErrResultNotKept, "not kept")+"; "+
		word(again, semel.ErrNoResult, "no result"))
	_, err = semel.Once(ctx, d.calls, "late-claim", d.work("paid"))
	d.tell("late-claim", word(err, semel.ErrUnavailable, "unavailable"))
	until(t, "the late grant is given back", func() bool {
		inFlight, err := d.clock.Do(ctx, "SEMEL.INFLIGHT", os.Getenv("SEMEL_TEST_NAMESPACE")).Slice()
		return err == nil && len(inFlight) == 0
	})
	_ = d.rdb.Close()
	_, err = semel.Once(ctx, d.calls, "closed", d.work("paid"))
	d.tell("closed", word(err, redis.ErrClosed, "closed"))
}

// tell prints the outcome with the runs since the last story.
func (d *door) tell(story, outcome string) {
	d.say(story, fmt.Sprintf("%s; runs %d", outcome, d.runs.Swap(0)))
}

func (d *door) say(story, outcome string) { fmt.Printf("\n%s\t%s\n", story, outcome) }

func (d *door) work(value string) func(context.Context, semel.Work) (string, error) {
	return func(context.Context, semel.Work) (string, error) {
		d.runs.Add(1)
		return value, nil
	}
}

// word is `expected` if err is `target` (nil: none).
func word(err, target error, expected string) string {
	if target == nil && err == nil || target != nil && errors.Is(err, target) {
		return expected
	}
	return fmt.Sprint(err)
}

func (d *door) advance(t time.Duration) {
	if err := d.clock.Do(ctx, "SEMEL.CLOCK", "ADVANCE", t.Milliseconds()).Err(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *door) results() {
	first, err := semel.Once(ctx, d.calls, "result-equal", d.work("paid"))
	again, err2 := semel.Once(ctx, d.calls, "result-equal", d.work("paid"))
	equal := err == nil && err2 == nil && first.Value == again.Value
	d.tell("result-equal", map[bool]string{true: "equal", false: "other"}[equal])

	type hidden struct{ cents int } // which JSON does not see
	odd := func(context.Context, semel.Work) (any, error) {
		d.runs.Add(1)
		return hidden{7}, nil
	}
	_, err = semel.Once(ctx, d.calls, "result-odd", odd)
	_, err2 = semel.Once(ctx, d.calls, "result-odd", odd)
	d.tell("result-odd", word(err, semel.ErrResultNotKept, "not kept")+"; "+
		word(err2, semel.ErrNoResult, "no result"))

	_, err = semel.Once(ctx, d.calls, "lazy-work",
		func(context.Context, semel.Work) (func() int, error) { return func() int { return 1 }, nil })
	lazy := word(err, semel.ErrLazyResult, "refused")
	_, _ = semel.Once(ctx, d.calls, "lazy-work", d.work("paid"))
	d.say("lazy-work", lazy+ranOnce(d.runs.Swap(0)))

	thrown := "returned"
	func() {
		defer func() {
			if recover() != nil {
				thrown = "thrown"
			}
		}()
		_, _ = semel.Once(ctx, d.calls, "throws",
			func(context.Context, semel.Work) (int, error) { panic("x") })
	}()
	_, _ = semel.Once(ctx, d.calls, "throws", d.work("paid"))
	d.say("throws", thrown+ranOnce(d.runs.Swap(0)))
}

func ranOnce(runs int32) string {
	if runs == 1 {
		return "; then ran"
	}
	return "; then did not run"
}

func (d *door) keys() {
	for story, key := range map[string]string{"key-empty": "", "key-huge": strings.Repeat("k", 70_000)} {
		_, err := semel.Once(ctx, d.calls, key, d.work("paid"))
		d.tell(story, word(err, semel.ErrKey, "key error"))
	}
}

func (d *door) others() {
	pay := []semel.Option{semel.WithOperation("pay"), semel.WithFingerprintOf(map[string]int{"cents": 1})}
	for story, other := range map[string][]semel.Option{
		"payload-other": {semel.WithOperation("pay"),
			semel.WithFingerprintOf(map[string]int{"cents": 2})},
		"operation-other": {semel.WithOperation("refund"),
			semel.WithFingerprintOf(map[string]int{"cents": 1})},
	} {
		_, _ = semel.Once(ctx, d.calls, story, d.work("paid"), pay...)
		_, err := semel.Once(ctx, d.calls, story, d.work("paid"), other...)
		d.tell(story, word(err, semel.ErrMismatch, "mismatch"))
	}
}

func (d *door) times() {
	_, err := semel.Once(ctx, d.calls, "lease-zero", d.work("paid"), semel.WithLease(0))
	refused := "taken"
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "lease") {
		refused = "refused"
	}
	d.tell("lease-zero", refused)
	window := semel.New(d.rdb, "doors-go-window",
		semel.WithPolicy(semel.Policy{As: "message", Window: 24 * time.Hour}))
	_, err = semel.Once(ctx, window, "first-sent-1970", d.work("paid"),
		semel.WithFirstSent(time.Unix(0, 0)))
	d.tell("first-sent-1970", word(err, semel.ErrOutsideWindow, "too old"))
}

func (d *door) leases() {
	_, err := semel.Once(ctx, d.calls, "lease-lost", func(context.Context, semel.Work) (string, error) {
		d.advance(time.Hour)
		_, err := semel.Once(ctx, d.calls, "lease-lost", d.work("other"))
		return "mine", err
	})
	again, _ := semel.Once(ctx, d.calls, "lease-lost", d.work("third"))
	d.say("lease-lost", word(err, semel.ErrLeaseLost, "too late")+"; repeat "+again.Value)
	d.runs.Store(0)
}

func (d *door) locks() {
	locks := semel.New(d.rdb, "doors-go-locks", semel.WithPolicy(semel.Policy{As: "lock"}))
	var inside, most atomic.Int32
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			lock, err := locks.Lock(ctx, "lock-shared")
			if err != nil {
				d.t.Error(err)
				return
			}
			if now := inside.Add(1); now > most.Load() {
				most.Store(now)
			}
			inside.Add(-1)
			_ = lock.Unlock()
		}()
	}
	group.Wait()
	d.say("lock-shared", map[bool]string{true: "one holder", false: "several"}[most.Load() == 1])

	lost, err := locks.Lock(ctx, "lock-lost")
	if err != nil {
		d.t.Fatal(err)
	}
	d.advance(time.Hour)
	if other, err := locks.TryLock(ctx, "lock-lost"); err == nil {
		_ = other.Unlock()
	}
	d.say("lock-lost", word(lost.Unlock(), semel.ErrLeaseLost, "lease lost"))

	held, _ := locks.TryLock(ctx, "locks-all:other")
	keys := []string{"locks-all", "locks-all:other"}
	_, refused := locks.TryLockAll(ctx, keys)
	free, freeErr := locks.TryLock(ctx, "locks-all")
	_, _ = free.Unlock(), held.Unlock()
	both, err := locks.TryLockAll(ctx, keys)
	_ = both.Unlock()
	d.say("locks-all", word(refused, semel.ErrInFlight, "held")+", other "+
		word(freeErr, nil, "free")+"; then "+word(err, nil, "granted"))

	one, _ := locks.TryAcquire(ctx, "permits-fewer", 2)
	other, _ := locks.TryAcquire(ctx, "permits-fewer", 2)
	_ = one.Release()
	_, none := locks.TryAcquire(ctx, "permits-fewer", 1)
	_ = other.Release()
	last, err := locks.TryAcquire(ctx, "permits-fewer", 1)
	_ = last.Release()
	d.say("permits-fewer", word(none, semel.ErrInFlight, "held")+"; then "+word(err, nil, "granted"))

	oneReader, _ := locks.TryReadLock(ctx, "readers-writer")
	otherReader, twoErr := locks.TryReadLock(ctx, "readers-writer")
	_ = oneReader.Release()
	_, early := locks.TryWriteLock(ctx, "readers-writer")
	_ = otherReader.Release()
	writer, writerErr := locks.TryWriteLock(ctx, "readers-writer")
	_, beside := locks.TryReadLock(ctx, "readers-writer")
	_ = writer.Release()
	reader, readerErr := locks.TryReadLock(ctx, "readers-writer")
	_ = reader.Release()
	alone := map[bool]string{true: "one writer", false: "not alone"}
	d.say("readers-writer", word(twoErr, nil, "two readers")+", "+
		word(early, semel.ErrInFlight, "no writer")+"; then "+
		alone[writerErr == nil && errors.Is(beside, semel.ErrInFlight)]+"; then "+
		word(readerErr, nil, "a reader"))

	var heard []string
	observer := semel.WithObserver(func(seen semel.Observed) {
		heard = append(heard, string(seen.Event))
		panic("the observer's own")
	})
	ran, _ := semel.Once(ctx, d.calls, "observed", d.work("paid"), observer, semel.WithOperation("pay"))
	again, _ := semel.Once(ctx, d.calls, "observed", d.work("paid"), observer,
		semel.WithOperation("pay"))
	_, _ = semel.Once(ctx, d.calls, "observed", d.work("paid"), observer,
		semel.WithOperation("refund"))
	same := map[bool]string{true: "", false: "other; "}[ran.Value == again.Value]
	d.tell("observed", same+strings.Join(heard, ", "))

	limiter, err := semel.NewRateLimiter(d.rdb, semel.RateTerms{Limit: 3, Period: 24 * time.Hour})
	if err != nil {
		d.t.Fatal(err)
	}
	rate := func(cost int64) string {
		taken, err := limiter.Take(ctx, os.Getenv("SEMEL_TEST_NAMESPACE")+":rate-limit", cost)
		if err != nil || taken.Allowed {
			return word(err, nil, "allowed")
		}
		return fmt.Sprintf("limited, %d left", taken.Remaining)
	}
	_ = rate(2)
	d.say("rate-limit", rate(2)+"; then "+rate(1)+"; then "+rate(1))
}

func (d *door) cancelled() {
	release := busyUntilFailed(d, "wait-cancelled")
	waiting, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := semel.Once(waiting, d.calls, "wait-cancelled", d.work("paid"),
		semel.WithWait(semel.Forever))
	release()
	d.tell("wait-cancelled", word(err, context.DeadlineExceeded, "cancelled"))
}

// busyUntilFailed holds the key until its release is called, and fails then.
func busyUntilFailed(d *door, key string) (release func()) {
	begun, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = semel.Once(ctx, d.calls, key, func(context.Context, semel.Work) (string, error) {
			close(begun)
			<-goOn
			return "", errors.New("no")
		})
	}()
	<-begun
	return func() { close(goOn); <-ended }
}
