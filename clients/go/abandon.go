package semel

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	abandonedMax  = 1 << 16                // beyond it the leases end them
	secondLook    = 250 * time.Millisecond // after a wait whose connection broke
	abandonedWait = time.Second            // the longest pause while the node does not answer
)

// request is one claim. All its tries have the same CLAIM-ID, so a repeat is answered with the grant
// that an earlier try got.
type request struct {
	key   string
	words []any // of SEMEL.CLAIM and SEMEL.WAIT: the namespace and what follows
	lease time.Duration
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
	}
	_, err := c.once(nil, "SEMEL.RELEASE", c.name, each.key, each.epoch)
	return isAnswer(err)
}

// find asks for the claim again by its id. It looks before that, so that a key which has become free
// is not taken from those who want it.
func (c *Claims) find(r request) (found fields, answered bool) {
	if cluster, ok := c.rdb.(*redis.ClusterClient); !ok || !cluster.Options().ReadOnly {
		reply, err := c.once(nil, "SEMEL.GETCLAIM", c.name, r.key)
		if !isAnswer(err) {
			return nil, false
		}
		if state, err := fieldsOf(reply); err == nil && state.text("state") != "held" {
			return fields{"outcome": "in_flight"}, true // not by us; look again
		}
	}
	late := func(value any) { c.unwanted(r, value, nil) }
	reply, err := c.once(late, append([]any{"SEMEL.CLAIM"}, r.words...)...)
	if err == nil {
		found, err = fieldsOf(reply)
	}
	return found, isAnswer(err)
}

// once is one call without repeats.
func (c *Claims) once(late func(any), args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tidyUpTime)
	defer cancel()
	return c.send(ctx, args, late)
}
