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
			found, err := other.RunDebounced(ctx, "doc", unrun(t))
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

func unrun(t *testing.T) func(context.Context, []byte) error {
	return func(context.Context, []byte) error {
		t.Error("it ran")
		return nil
	}
}

// due stores a payload of "doc" whose time has come.
func (n *node) due(edits *semel.Claims) {
	n.t.Helper()
	_, err := edits.Debounce(ctx, "doc", []byte("text"), semel.Trailing{Quiet: time.Second})
	same(n.t, err, nil)
	n.advance(time.Second)
}

func (n *node) runIsFree() {
	n.t.Helper()
	until(n.t, "the run is free", func() bool { return n.state("edits", "{doc}#run") == "absent" })
}

const scriptRuns = "-BUSY a script runs\r\n"

func TestARunWhoseReplyIsLostIsGivenBack(t *testing.T) {
	n := start(t)
	r := n.relay()
	edits := semel.New(n.client(r.through, quick), "edits", semel.WithPolicy(semel.Policy{As: "lock"}))
	n.due(edits)
	r.cut("SEMEL.DEBOUNCERUN", 1) // and then the node does not answer
	silent := r.answer("SEMEL.DEBOUNCERUN", 1<<30, scriptRuns)
	_, err := edits.RunDebounced(ctx, "doc", unrun(t), semel.WithPatience(300*time.Millisecond))
	is(t, err, semel.ErrUnavailable)
	same(t, n.state("edits", "{doc}#run"), "held")
	r.end(silent)
	n.runIsFree()

	held := r.hold(t, "SEMEL.DEBOUNCERUN", "", 1) // its caller leaves meanwhile
	leaving, leave := context.WithCancel(ctx)
	go func() {
		<-held.met
		leave()
	}()
	_, err = edits.RunDebounced(leaving, "doc", unrun(t))
	is(t, err, context.Canceled)
	close(held.open)
	n.runIsFree()
	_, err = edits.RunDebounced(ctx, "doc", func(_ context.Context, payload []byte) error {
		same(t, string(payload), "text")
		return nil
	})
	same(t, err, nil)
}

func TestTheReplyToTheEndOfARunIsLost(t *testing.T) {
	n := start(t)
	r := n.relay()
	edits := semel.New(n.client(r.through, quick), "edits", semel.WithPolicy(semel.Policy{As: "lock"}))
	run := func(fails error) (semel.Debounced, error) {
		n.due(edits)
		return edits.RunDebounced(ctx, "doc", func(context.Context, []byte) error { return fails },
			semel.WithPatience(200*time.Millisecond))
	}
	r.cut("SEMEL.DEBOUNCEEND", 1)
	found, err := run(nil)
	same(t, err, nil)
	same(t, found.Ran, true)
	silent := r.answer("SEMEL.DEBOUNCEEND", 1<<30, scriptRuns)
	found, err = run(nil)
	is(t, err, semel.ErrUnrecorded)
	same(t, found.Ran, true)
	r.end(silent)
	n.call("SEMEL.FORGET", "edits", "{doc}#run")
	failed := errors.New("failed")
	_, err = run(failed)
	same(t, err, failed)
}

func TestARunThatIsLostAndFails(t *testing.T) {
	n := start(t)
	edits := semel.New(n.client(), "edits", semel.WithPolicy(semel.Policy{As: "lock"}))
	n.due(edits)
	failed := errors.New("failed")
	_, err := edits.RunDebounced(ctx, "doc", func(context.Context, []byte) error {
		n.call("SEMEL.FORGET", "edits", "{doc}#run")
		return failed
	})
	is(t, err, semel.ErrLeaseLost)
	is(t, err, failed)
}

func TestARunThatCannotBegin(t *testing.T) {
	n := start(t)
	edits := semel.New(n.client(), "edits",
		semel.WithPolicy(semel.Policy{As: "lock", FailOpen: true}))
	n.due(edits)
	if _, err := edits.RunDebounced(ctx, "doc", nil); err == nil {
		t.Error("it ran no function")
	}
	same(t, n.state("edits", "{doc}#run"), "absent")
	n.call("CONFIG", "SET", "maxmemory", "8mb") // less than it has already
	_, err := edits.RunDebounced(ctx, "doc", unrun(t))
	is(t, err, semel.ErrBusy)
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
