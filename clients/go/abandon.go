package semel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	abandonedMax  = 1 << 16                // beyond it the leases end them
	secondLook    = 250 * time.Millisecond // after a wait whose connection broke
	abandonedWait = time.Second            // the longest pause while the node does not answer
	leaseLeft     = 50 * time.Millisecond  // of a lease that is worth ending
)

// request is one claim. All its tries have the same CLAIM-ID, so a repeat is answered with the grant
// that an earlier try got.
type request struct {
	key    string
	words  []any // of SEMEL.CLAIM, SEMEL.WAIT and its own: the namespace and what follows
	lease  time.Duration
	name   string // of the command, if it is not SEMEL.CLAIM: then the node chooses the claim's key
	isNext bool   // of a read/write lock: the caller waits, and is not to be overtaken
}

// waiting is the request with a wait of so many milliseconds; 0 is without limit.
func (r request) waiting(left int64) []any {
	if r.name != "SEMEL.PERMIT" {
		return append([]any{"SEMEL.WAIT", left}, r.words...)
	}
	const named = 3 // namespace, key and permits
	words := append([]any{"SEMEL.PERMIT"}, r.words[:named]...)
	return append(append(words, "WAIT", left), r.words[named:]...)
}

func (r request) command() string {
	if r.name != "" {
		return r.name
	}
	return "SEMEL.CLAIM"
}

// said is the command as it is sent. For a caller who has left, the words go out without NEXT.
func (r request) said() []any {
	said := append([]any{r.command()}, r.words...)
	if r.isNext {
		said = slices.Insert(said, 4, any("NEXT"), any(nextTime.Milliseconds()))
	}
	return said
}

// granted is the key of the claim that the node has granted.
func (r request) granted(found fields) string {
	if r.name != "" {
		return found.text("key")
	}
	return r.key
}

// abandoned is a grant without a caller: he has left, or was told that nothing ran.
type abandoned struct {
	request
	epoch int64     // 0: it may have been granted, or not
	until time.Time // then its lease has ended it
	again bool      // the node may not know yet that a wait has ended: ask twice
	last  bool      // it was tried before: others first
}

// leftovers are the abandoned grants of a Claims. This is the one place that ends them: one
// goroutine, which lives while there are any.
type leftovers struct {
	mu      sync.Mutex
	queue   []abandoned
	running bool
}

// abandon has a grant released as soon as the node answers. It does not block.
func (c *Claims) abandon(each abandoned) {
	if each.until.IsZero() {
		each.until = time.Now().Add(each.lease)
	}
	left := &c.leftovers
	left.mu.Lock()
	defer left.mu.Unlock()
	if len(left.queue) == abandonedMax {
		return
	}
	if each.epoch != 0 && !each.last { // it blocks its key for certain
		left.queue = slices.Insert(left.queue, 0, each)
	} else {
		left.queue = append(left.queue, each)
	}
	if !left.running {
		left.running = true
		go c.releaseAbandoned()
	}
}

// unwanted ends the grant that a reply without a reader may be.
func (c *Claims) unwanted(r request, value any, err error) {
	if err != nil {
		if !isReply(err) {
			c.abandon(abandoned{request: r, again: true})
		}
		return
	}
	if found, err := fieldsOf(value); err == nil && isGrant(found) {
		r.key = r.granted(found)
		c.abandon(abandoned{request: r, epoch: found.number("epoch")})
	}
}

func isGrant(found fields) bool {
	return slices.Contains([]string{"granted", "regranted"}, found.text("outcome"))
}

func (c *Claims) nextAbandoned() (abandoned, bool) {
	left := &c.leftovers
	left.mu.Lock()
	defer left.mu.Unlock()
	if len(left.queue) == 0 {
		left.running, left.queue = false, nil
		return abandoned{}, false
	}
	each := left.queue[0]
	left.queue = left.queue[1:]
	return each, true
}

func (c *Claims) releaseAbandoned() {
	delay := 5 * time.Millisecond
	for {
		each, more := c.nextAbandoned()
		if !more {
			return
		}
		if !time.Now().Before(each.until) {
			continue
		}
		if c.end(&each) {
			delay = 5 * time.Millisecond
			continue
		}
		each.again, each.last = true, true
		c.abandon(each)
		_ = pause(context.Background(), delay)
		delay = min(2*delay, abandonedWait)
	}
}

// end releases a grant; false: the node did not answer.
func (c *Claims) end(each *abandoned) bool {
	if each.epoch == 0 {
		found, answered := c.find(each.request)
		if !answered {
			return false
		}
		if each.epoch = found.number("epoch"); !isGrant(found) {
			if each.again && found.text("outcome") == "in_flight" {
				later := abandoned{request: each.request, until: each.until}
				time.AfterFunc(secondLook, func() { c.abandon(later) })
			}
			return true
		}
		each.key = each.granted(found)
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidyUpTime)
	defer cancel()
	_, err := c.send(ctx, []any{"SEMEL.RELEASE", c.name, each.key, each.epoch}, nil)
	return isAnswer(err)
}

// find asks for the claim again by its id, if somebody has it, in one step with looking: a key that
// has become free must not be taken from those who want it for a caller who has left.
func (c *Claims) find(r request) (found fields, answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), tidyUpTime)
	defer cancel()
	late := func(value any) { c.unwanted(r, value, nil) }
	var reply any
	err := errNotHeld
	if r.name == "" {
		reply, err = attempt(ctx, late, func() (any, error) { return c.look(ctx, r) })
	}
	// NOPERM to WATCH, MULTI or SEMEL.GETCLAIM. Of a semaphore or a read/write lock, this may take a
	// free slot for the moment until it is released.
	if r.name != "" || errorWord(err) == "NOPERM" {
		reply, err = c.send(ctx, append([]any{r.command()}, r.words...), late)
	}
	if err == errNotHeld {
		return fields{"outcome": "in_flight"}, true // or not yet: look again
	}
	if err == nil {
		found, err = fieldsOf(reply)
	}
	return found, err != redis.TxFailedErr && isAnswer(err)
}

var errNotHeld = errors.New("semel: nobody has the claim")

// look is the reply to the claim in a transaction, which fails if the record has changed.
func (c *Claims) look(ctx context.Context, r request) (value any, err error) {
	err = c.rdb.Watch(ctx, func(tx *redis.Tx) error {
		reply, err := tx.Do(ctx, "SEMEL.GETCLAIM", c.name, r.key).Result()
		if err != nil {
			return err
		}
		state, err := fieldsOf(reply)
		if err != nil {
			return err
		}
		if state.text("state") != "held" || state.duration("lease_remaining_ms") < leaseLeft {
			return errNotHeld // or its lease ends it; what is over would be a takeover
		}
		replies, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			return pipe.Do(ctx, append([]any{r.command()}, r.words...)...).Err()
		})
		if err == nil {
			value, err = replies[0].(*redis.Cmd).Result()
		}
		return err
	}, c.name+":"+r.key)
	return value, err
}
