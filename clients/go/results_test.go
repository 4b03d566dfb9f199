package semel_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/big"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

// refused: nothing is claimed, and nothing runs.
func refused[T any](t *testing.T, n *node, c *semel.Claims, key string) {
	t.Helper()
	_, err := semel.Once(ctx, c, key, func(context.Context, semel.Work) (T, error) {
		t.Errorf("%T: it ran", *new(T))
		return *new(T), nil
	})
	is(t, err, semel.ErrLazyResult)
	same(t, n.state(c.Name(), key), "absent")
}

type rows struct{}

func (*rows) Next() bool { return false }

type pages struct{}

func (*pages) Next() (string, error) { return "", io.EOF }

func TestOnceAgain07_ATypeThatStandsForWorkIsRefusedBeforeTheClaim(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	refused[func()](t, n, orders, "k")
	refused[func() (int, error)](t, n, orders, "k")
	refused[iter.Seq[int]](t, n, orders, "k")
	refused[iter.Seq2[int, error]](t, n, orders, "k")
	refused[chan int](t, n, orders, "k")
	refused[<-chan int](t, n, orders, "k")
	refused[io.Reader](t, n, orders, "k")
	refused[io.ReadCloser](t, n, orders, "k")
	refused[*http.Response](t, n, orders, "k")
	refused[*rows](t, n, orders, "k")
	refused[*pages](t, n, orders, "k")
	refused[[]chan int](t, n, orders, "k")
	refused[map[string]func()](t, n, orders, "k")
	refused[*chan int](t, n, orders, "k")
	refused[struct{ Lines iter.Seq[string] }](t, n, orders, "k")
	bytesOnly := semel.New(n.client(), "orders", semel.WithCodec(semel.Bytes))
	refused[iter.Seq[byte]](t, n, bytesOnly, "k")
	tokens := semel.NewTokens(semel.New(n.client(), "tokens"))
	_, err := tokens.IssueAs(ctx, "t", time.Minute)
	is(t, err, nil)
	_, err = semel.Redeem(ctx, tokens, "t", gives[chan int](nil))
	is(t, err, semel.ErrLazyResult)
	is(t, tokens.Consume(ctx, "t"), nil) // it is good still

	_, err = semel.Once[int](ctx, orders, "k", nil)
	same(t, err != nil, true)
	same(t, semel.ConsumeOnce(ctx, orders, "k", nil).Verdict, semel.Retry)
	same(t, semel.ConsumeOnce(ctx, orders, "", nil).Verdict, semel.Retry)
	same(t, n.state("orders", "k"), "absent")
}

type tailing interface {
	Next(context.Context) (string, error)
}

type stepper struct{ At int }

func (s *stepper) Next(by int) bool { return by > s.At }

// An iterator over the network has a Next that takes a context: one of go-redis was kept as {}.
func TestOnceAgain07_AnIteratorWhoseNextTakesAContext(t *testing.T) {
	n := start(t)
	rdb := n.client()
	orders := semel.New(rdb, "orders")
	refused[*redis.ScanIterator](t, n, orders, "k")
	refused[tailing](t, n, orders, "k")
	refused[struct{ Keys *redis.ScanIterator }](t, n, orders, "k")
	_, err := semel.Once(ctx, orders, "any", gives[any](rdb.Scan(ctx, 0, "*", 1).Iterator()))
	is(t, err, semel.ErrLazyResult)
	same(t, n.state("orders", "any"), "absent")
	same(t, kept(t, orders, "stepper", &stepper{7}).At, 7) // whose Next takes something else
}

func TestOnceAgain07_BehindAnInterfaceItEndsTheClaimAsAPanicDoes(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	payments := semel.New(n.client(), "payments",
		semel.WithPolicy(semel.Policy{As: "call", OnException: semel.InDoubt}))
	for i, each := range []any{make(chan int), func() {}, strings.NewReader("x").ReadByte,
		iter.Seq[int](func(func(int) bool) {}), &http.Response{Body: http.NoBody},
		io.LimitReader(strings.NewReader("x"), 1), []any{1, make(chan int)},
		map[string]any{"later": func() {}}, struct{ Body any }{http.NoBody}} {
		key := fmt.Sprint(i)
		done, err := semel.Once(ctx, orders, key, gives(each))
		is(t, err, semel.ErrLazyResult)
		same(t, done.Value != nil, true) // to close it
		same(t, n.state("orders", key), "absent")
		_, err = semel.Once(ctx, payments, key, gives(each))
		is(t, err, semel.ErrLazyResult)
		same(t, n.state("payments", key), "in_doubt")
	}
}

type closed struct{ amount int }

type open struct {
	Name  string
	At    time.Time
	Sum   *big.Int
	Next  *open
	Tags  []string
	Notes map[string]int
}

type hidden struct {
	Name   string
	secret int
}

type shapes interface{ Area() int }

// notKept: the first caller is told and has the value, duplicates are told that there is none.
func notKept[T any](t *testing.T, c *semel.Claims, key string, value T) {
	t.Helper()
	done, err := semel.Once(ctx, c, key, gives(value))
	is(t, err, semel.ErrResultNotKept)
	same(t, fmt.Sprintf("%v", done.Value), fmt.Sprintf("%v", value))
	again, err := semel.Once(ctx, c, key, gives(value))
	is(t, err, semel.ErrNoResult)
	same(t, again.Replayed, true)
}

// kept: duplicates get an equal value.
func kept[T any](t *testing.T, c *semel.Claims, key string, value T) T {
	t.Helper()
	done, err := semel.Once(ctx, c, key, gives(value))
	is(t, err, nil)
	same(t, done.Replayed, false)
	again, err := semel.Once(ctx, c, key, gives(*new(T)))
	is(t, err, nil)
	same(t, again.Replayed, true)
	return again.Value
}

func TestOnceAgain08_ADuplicateGetsAnEqualValueOrTheFirstCallerIsTold(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	i := 0
	key := func() string { i++; return fmt.Sprint(i) }
	notKept[any](t, orders, key(), 7)
	notKept[any](t, orders, key(), map[string]any{"n": 7})
	notKept[any](t, orders, key(), open{Name: "x"})
	notKept(t, orders, key(), closed{7})
	notKept(t, orders, key(), &hidden{"x", 7})
	notKept(t, orders, key(), []hidden{{"x", 7}})
	notKept(t, orders, key(), bytes.NewBufferString("receipt"))
	notKept(t, orders, key(), map[string]*bytes.Buffer{"a": bytes.NewBufferString("receipt")})
	notKept(t, orders, key(), "\xff")
	notKept(t, orders, key(), math.Inf(1))
	notKept(t, orders, key(), errors.New("as a value"))
	notKept(t, orders, key(), struct {
		Left int `json:"-"`
	}{7})
	notKept(t, orders, key(), struct {
		time.Time
		Name string
	}{time.Unix(0, 0), "lost"})
	_ = shapes(nil)

	same(t, kept(t, orders, key(), 9007199254740993), 9007199254740993)
	same(t, kept(t, orders, key(), uint64(math.MaxUint64)), math.MaxUint64)
	same(t, kept(t, orders, key(), 0.1), 0.1)
	same(t, kept[any](t, orders, key(), 1.5), 1.5)
	same(t, kept[any](t, orders, key(), nil), nil)
	same(t, kept[error](t, orders, key(), nil), nil)
	same(t, kept(t, orders, key(), json.Number("1.50")), "1.50")
	same(t, kept(t, orders, key(), hidden{Name: "x"}).Name, "x") // nothing hidden is in it
	same(t, kept(t, orders, key(), struct{}{}), struct{}{})
	now := time.Now() // with a monotonic part, in the zone of the machine
	found := kept(t, orders, key(), open{Name: "a", At: now, Sum: big.NewInt(0),
		Next: &open{At: now.UTC(), Tags: []string{"<>"}}, Notes: map[string]int{"é": 1}})
	same(t, found.At.Equal(now), true)
	same(t, found.Next.Tags[0], "<>")
	same(t, found.Sum.Sign(), 0)
	same(t, reflect.DeepEqual(kept(t, orders, key(), [][]byte{{0}, {}, nil}),
		[][]byte{{0}, {}, nil}), true)
}

type gobs struct{}

func (gobs) Encode(value any) ([]byte, error) {
	var text bytes.Buffer
	err := gob.NewEncoder(&text).Encode(value)
	return text.Bytes(), err
}

func (gobs) Decode(text []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(text)).Decode(into)
}

type lossy struct{ gobs }

func (lossy) Decode([]byte, any) error { return nil }

type panicky struct{ gobs }

func (panicky) Decode([]byte, any) error { panic("no") }

type ring struct {
	Value int
	Next  *ring
}

type rings struct{}

func (rings) Encode(any) ([]byte, error) { return []byte{0}, nil }
func (rings) Decode(_ []byte, into any) error {
	first := &ring{Value: 1}
	first.Next = first
	*into.(**ring) = first
	return nil
}

func TestOnceAgain08_EveryCodecIsAskedTheSame(t *testing.T) {
	n := start(t)
	orders := func(codec semel.Codec) *semel.Claims {
		return semel.New(n.client(), "orders", semel.WithCodec(codec))
	}
	same(t, kept(t, orders(gobs{}), "gob", open{Name: "a", Sum: big.NewInt(7)}).Sum.Int64(), 7)
	same(t, math.IsNaN(kept(t, orders(gobs{}), "nan", math.NaN())), true)
	notKept(t, orders(gobs{}), "hidden", hidden{"a", 7})
	notKept(t, orders(lossy{}), "lossy", 7)
	notKept(t, orders(panicky{}), "panics", 7)
	notKept(t, orders(semel.Bytes), "no bytes", 7)
	first := &ring{Value: 1}
	first.Next = first
	_, err := semel.Once(ctx, orders(rings{}), "ring", gives(first))
	is(t, err, nil)
}

func TestOnceAgain23_TheMarkOfAResultThatWasNotKeptIsNoValue(t *testing.T) {
	n := start(t)
	raw := semel.New(n.client(), "raw", semel.WithCodec(semel.Bytes))
	for i, value := range [][]byte{{0}, {1}, {}, nil, {0, 0}, {1, 0}, []byte("\x00"), []byte("null")} {
		same(t, string(kept(t, raw, fmt.Sprint(i), value)), string(value))
		same(t, kept(t, raw, "s"+fmt.Sprint(i), string(value)), string(value))
		same(t, n.call("SEMEL.CLAIM", "raw", fmt.Sprint(i)).([]any)[7].(string), "\x01"+string(value))
	}
	for codec, value := range map[semel.Codec]any{semel.Bytes: 7, semel.JSON: math.NaN(), gobs{}: nil} {
		c := semel.New(n.client(), "raw", semel.WithCodec(codec))
		key := fmt.Sprintf("%T", codec)
		notKept(t, c, key, value)
		same(t, n.call("SEMEL.CLAIM", "raw", key).([]any)[7].(string), "\x00")
		// Handled as a message: there is no result.
		same(t, semel.ConsumeOnce(ctx, c, "m"+key,
			func(context.Context, semel.Work) error { return nil }).Verdict, semel.Ack)
		_, err := semel.Once(ctx, c, "m"+key, gives([]byte("x")))
		is(t, err, semel.ErrNoResult)
	}
	// JSON has no mark, and what an older release stored is read: bytes as they are, but for the marks.
	orders := semel.New(n.client(), "orders")
	same(t, kept(t, orders, "k", "x"), "x")
	same(t, n.call("SEMEL.CLAIM", "orders", "k").([]any)[7].(string), `"x"`)
	old := func(key, result string) {
		epoch := n.call("SEMEL.CLAIM", "raw", key).([]any)[3]
		n.call("SEMEL.COMPLETE", "raw", key, epoch, result)
	}
	old("old", "receipt")
	done, err := semel.Once(ctx, raw, "old", gives([]byte("x")))
	is(t, err, nil)
	same(t, string(done.Value), "receipt")
	old("mark", "\x00")
	_, err = semel.Once(ctx, raw, "mark", gives([]byte("x")))
	is(t, err, semel.ErrNoResult)
}
