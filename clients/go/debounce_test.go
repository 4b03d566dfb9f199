package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	semel "semel/client"
)

func TestARunComesAfterTheLastCall(t *testing.T) {
	n := start(t)
	edits := semel.New(n.client(), "edits", semel.WithPolicy(semel.Policy{As: "lock"}))
	other := semel.New(n.client(resp2), "edits")
	when := semel.Trailing{Quiet: 100 * time.Second, MaxWait: 150 * time.Second}
	var ran []string
	run := func(c *semel.Claims, result error) (semel.Debounced, error) {
		return c.RunDebounced(ctx, "doc", func(_ context.Context, payload []byte) error {
			ran = append(ran, string(payload))
			found, err := other.RunDebounced(ctx, "doc", nil)
			same(t, err, nil)
			same(t, found.Running, true)
			return result
		})
	}
	found, err := run(edits, nil)
	same(t, err, nil)
	same(t, found, semel.Debounced{})
	due, err := edits.Debounce(ctx, "doc", []byte("a"), when)
	same(t, err, nil)
	same(t, due, 100*time.Second)
	n.advance(60 * time.Second)
	due, err = other.Debounce(ctx, "doc", []byte("b\x00\xff"), when)
	same(t, err, nil)
	if due > 90*time.Second || due < 80*time.Second {
		t.Error(due)
	}
	found, err = run(edits, nil)
	same(t, err, nil)
	if found.Ran || found.Running || found.Due > due {
		t.Error(found)
	}
	n.advance(due)
	failed := errors.New("failed")
	_, err = run(edits, failed)
	is(t, err, failed)
	found, err = run(other, nil) // it comes again after a quiet time
	same(t, err, nil)
	if found.Ran || found.Due < 90*time.Second {
		t.Error(found)
	}
	n.advance(100 * time.Second)
	found, err = run(other, nil)
	same(t, err, nil)
	same(t, found, semel.Debounced{Ran: true})
	same(t, len(ran), 2)
	same(t, ran[1], "b\x00\xff")
	found, err = run(edits, nil)
	same(t, err, nil)
	same(t, found, semel.Debounced{})
}

func TestWhatIsWrongWithADebounce(t *testing.T) {
	n := start(t)
	edits := semel.New(n.client(), "edits", semel.WithPolicy(semel.Policy{As: "lock"}))
	for _, each := range []semel.Trailing{{}, {Quiet: -1}, {Quiet: time.Microsecond},
		{Quiet: 400 * 24 * time.Hour}, {Quiet: time.Minute, MaxWait: time.Second},
		{Quiet: time.Second, Keep: -1}} {
		_, err := edits.Debounce(ctx, "k", nil, each)
		is(t, err, semel.ErrOption)
	}
	_, err := edits.Debounce(ctx, "", nil, semel.Trailing{Quiet: time.Second})
	is(t, err, semel.ErrKey)
	_, err = edits.Debounce(ctx, "k", nil, semel.Trailing{Quiet: time.Second})
	same(t, err, nil)
	n.advance(time.Second)
	n.call("SEMEL.DEBOUNCES", "edits")
	_, err = edits.RunDebounced(ctx, "k", func(ctx context.Context, payload []byte) error {
		same(t, len(payload), 0)
		n.call("SEMEL.FORGET", "edits", "{k}#run")
		return nil
	})
	is(t, err, semel.ErrLeaseLost)
}
