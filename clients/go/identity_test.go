package semel_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	semel "semel/client"
)

// The table that all doors play.
type table struct {
	About   string
	Cases   []identityCase
	Values  []valueCase
	Formats []struct {
		Format, Key, Error string
		Fields             map[string]any
	}
}

type identityCase struct {
	Name, Kind, Operation, Arguments, Json, Canonical, Sha256, Key, Error string
	Scope                                                                 *semel.Scope
}

type valueCase struct {
	Name, Type, Json string
	Value            json.RawMessage
	Refused          bool
}

func readTable(t *testing.T) table {
	t.Helper()
	folder, err := filepath.Abs(".")
	is(t, err, nil)
	for ; ; folder = filepath.Dir(folder) {
		file, err := os.Open(filepath.Join(folder, "tests/identity/cases.json"))
		if err == nil {
			defer file.Close()
			var found table
			decoder := json.NewDecoder(file)
			decoder.DisallowUnknownFields()
			is(t, decoder.Decode(&found), nil)
			return found
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("no tests/identity/cases.json in a folder above")
		}
	}
}

func half(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func TestOnceAgain24_TheCasesOfTheIdentityTable(t *testing.T) {
	found := readTable(t)
	if len(found.Cases) < 100 || len(found.Values) < 50 || len(found.Formats) < 10 {
		t.Fatal("the table is cut off")
	}
	for _, each := range found.Cases {
		var text []byte
		var err error
		switch each.Kind {
		case "json":
			text, err = semel.CanonicalJSON([]byte(each.Json))
		case "identity":
			text, err = semel.CanonicalJSON([]byte(each.Arguments))
			if err == nil {
				var key string
				key, err = semel.CallKey(each.Operation, each.Scope, json.RawMessage(each.Arguments))
				if key != each.Key {
					t.Errorf("%s: key %s instead of %s", each.Name, key, each.Key)
				}
				text = []byte(each.Canonical) // whose digest the key is
			}
		default:
			t.Fatalf("%s: a kind that is not known: %s", each.Name, each.Kind)
		}
		if each.Error != "" {
			expected, known := map[string]error{"syntax": semel.ErrPayload, "key_empty": semel.ErrKey,
				"key_too_long": semel.ErrKey}[each.Error]
			if !known || !errors.Is(err, expected) {
				t.Errorf("%s: %v instead of %s", each.Name, err, each.Error)
			}
		} else if err != nil || string(text) != each.Canonical || half(text) != each.Sha256 {
			t.Errorf("%s: %s (%v) instead of %s", each.Name, text, err, each.Canonical)
		}
	}
	for _, each := range found.Formats {
		key, err := semel.FormatKey(each.Format, each.Fields)
		expected, known := map[string]error{"": nil, "syntax": semel.ErrFormat,
			"bad_option": semel.ErrFormat, "key_empty": semel.ErrKey}[each.Error]
		if !known || !errors.Is(err, expected) || key != each.Key {
			t.Errorf("%s: %s (%v) instead of %s%s", each.Format, key, err, each.Key, each.Error)
		}
	}
}

type color int

func (c color) MarshalText() ([]byte, error) {
	return []byte(map[color]string{1: "RED"}[c]), nil
}

type uuid [16]byte

func (u uuid) MarshalText() ([]byte, error) {
	text := hex.EncodeToString(u[:])
	return []byte(text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]), nil
}

// civil is a date or a time without an offset, as libraries have them.
type civil string

func (c civil) MarshalText() ([]byte, error) {
	text := string(c)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(text, "0")
	}
	return []byte(text), nil
}

type record struct {
	Name string `json:"name"`
	Size any    `json:"size,omitempty"`
}

type opaque struct{ id int }

func textOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var text string
	is(t, json.Unmarshal(raw, &text), nil)
	return text
}

// values makes the elements of a list: type, value, type, value..
func values(t *testing.T, raw json.RawMessage, named bool) (names []string, made []any) {
	t.Helper()
	var parts []json.RawMessage
	is(t, json.Unmarshal(raw, &parts), nil)
	for len(parts) > 0 {
		if named {
			names = append(names, textOf(t, parts[0]))
			parts = parts[1:]
		}
		made = append(made, valueOf(t, textOf(t, parts[0]), parts[1]))
		parts = parts[2:]
	}
	return names, made
}

func valueOf(t *testing.T, kind string, raw json.RawMessage) any {
	t.Helper()
	switch kind {
	case "null":
		return nil
	case "bool":
		return string(raw) == "true"
	case "integer":
		if number, err := strconv.ParseInt(textOf(t, raw), 10, 64); err == nil {
			return number
		}
		number, err := strconv.ParseUint(textOf(t, raw), 10, 64)
		is(t, err, nil)
		return number
	case "big_integer":
		number, ok := new(big.Int).SetString(textOf(t, raw), 10)
		same(t, ok, true)
		return number
	case "float":
		number, err := strconv.ParseFloat(textOf(t, raw), 64)
		is(t, err, nil)
		return number
	case "decimal":
		return json.Number(textOf(t, raw))
	case "text":
		return textOf(t, raw)
	case "lone_surrogate":
		return "\xed\xa0\x80"
	case "bytes":
		made, err := hex.DecodeString(textOf(t, raw))
		is(t, err, nil)
		return made
	case "enum":
		return color(1)
	case "uuid":
		made, err := hex.DecodeString(strings.ReplaceAll(textOf(t, raw), "-", ""))
		is(t, err, nil)
		return uuid(made)
	case "date", "time", "datetime":
		return civil(textOf(t, raw))
	case "instant":
		made, err := time.Parse(time.RFC3339Nano, textOf(t, raw))
		is(t, err, nil)
		return made
	case "duration":
		made, err := time.ParseDuration(textOf(t, raw) + "s")
		is(t, err, nil)
		return made
	case "list":
		_, made := values(t, raw, false)
		return made
	case "set":
		made := map[any]struct{}{}
		_, elements := values(t, raw, false)
		for _, each := range elements {
			made[each] = struct{}{}
		}
		return made
	case "map":
		made := map[any]any{}
		_, parts := values(t, raw, false)
		for i := 0; i < len(parts); i += 2 {
			made[parts[i]] = parts[i+1]
		}
		return made
	case "record":
		names, made := values(t, raw, true)
		same(t, strings.Join(names, ","), "name,size")
		return record{made[0].(string), made[1]}
	case "function", "generator":
		return func() {}
	case "stream":
		return io.MultiReader()
	case "future":
		return make(chan int)
	case "cycle":
		made := []any{nil}
		made[0] = made
		return made
	case "opaque":
		return opaque{7}
	}
	t.Fatalf("a type that is not known: %s", kind)
	return nil
}

func TestOnceAgain24_TheValuesOfTheIdentityTable(t *testing.T) {
	for _, each := range readTable(t).Values {
		text, err := semel.CanonicalArguments(valueOf(t, each.Type, each.Value))
		if each.Refused {
			if !errors.Is(err, semel.ErrPayload) {
				t.Errorf("%s: %s (%v) instead of an error", each.Name, text, err)
			}
		} else if err != nil || string(text) != each.Json {
			t.Errorf("%s: %s (%v) instead of %s", each.Name, text, err, each.Json)
		}
	}
}

type inner struct {
	ID   int `json:"id"`
	Note string
}

type outer struct {
	inner
	*record
	Sum   float32           `json:"sum,string"`
	Zero  int               `json:",omitempty"`
	At    time.Time         `json:"at,omitzero"`
	Out   func()            `json:"-"`
	Raw   json.RawMessage   `json:"$raw"`
	Key   map[uuid]net.IP   `json:"key"`
	Any   map[any]any       `json:"any"`
	Byte  [2]byte           `json:"byte"`
	Nil   []int             `json:"nil"`
	Month time.Month        `json:"month"`
	Page  map[string]string `json:"page"`
	_     struct{}
}

type level int

func (level) String() string { return "unknown" }

type event struct {
	time.Time
	Name string
}

type shadow struct {
	inner
	ID string `json:"id"`
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("no") }

func TestOnceAgain24_AGoValueHasOneTextOrIsRefusedWithItsPath(t *testing.T) {
	value := outer{inner: inner{7, "é"}, record: &record{Name: "box"}, Sum: 0.1,
		Raw:  json.RawMessage(`{"$set":[2,1],"n":1.0}`),
		Key:  map[uuid]net.IP{{1}: net.IPv4(10, 0, 0, 1)},
		Any:  map[any]any{1: []string{"x"}, "1": nil, 2.5: map[string]struct{}{"b": {}, "a": {}}},
		Byte: [2]byte{0, 255}, Month: time.May, Page: map[string]string{"$$x": "y"}}
	text, err := semel.CanonicalArguments(&value)
	is(t, err, nil)
	same(t, string(text), `{"$$raw":{"$$set":[2,1],"n":1},"Note":"é",`+
		`"any":{"$map":[["1",null],[1,["x"]],[2.5,{"$set":["a","b"]}]]},"byte":{"$bytes":"AP8="},"id":7,`+
		`"key":{"01000000-0000-0000-0000-000000000000":"10.0.0.1"},"month":"May","name":"box","nil":null,`+
		`"page":{"$$$x":"y"},"sum":"0.1"}`)

	loop := &struct{ Next any }{}
	loop.Next = loop
	for path, each := range map[string]any{
		".Items[1].id": struct{ Items []any }{[]any{1, opaque{1}}}, ".Next": loop,
		`["a"][0]`: map[string]any{"a": []any{math.NaN()}}, ".Body": struct{ Body io.Reader }{os.Stdin},
		".Level": struct{ Level level }{1}, "hook of": event{time.Now(), "x"}, "same name": shadow{},
		".C": struct{ C chan int }{}, ".F": struct{ F func() }{}, "panicked": panicking{},
		"UTF-8": "\xff", "complex128": 1i, "NaN as a key": map[float64]int{math.NaN(): 1},
		"http.Request": http.Request{}, "twice": map[any]int{1: 1, int8(1): 2},
		"Userinfo": url.URL{User: url.User("x")}, "infinity": big.NewFloat(math.Inf(1)),
		"more than 16777216 bytes": strings.Repeat("1", 16<<20),
	} {
		text, err := semel.CanonicalArguments(each)
		if !errors.Is(err, semel.ErrPayload) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v (%.200s)", path, err, text)
		}
	}

	deep := strings.Repeat("[", 128) + strings.Repeat("]", 128)
	_, err = semel.CanonicalJSON([]byte(deep))
	is(t, err, nil)
	_, err = semel.CanonicalJSON([]byte("[" + deep + "]"))
	is(t, err, semel.ErrPayload)
	sets := strings.Repeat(`{"$set":[`, 60) + strings.Repeat("]}", 60) // read once each
	_, err = semel.CanonicalJSON([]byte(sets))
	is(t, err, nil)
	_, err = semel.CanonicalJSON([]byte("[" + strings.Repeat("1,", 1<<20-2) + "1]"))
	is(t, err, nil)
	_, err = semel.CanonicalJSON([]byte("[" + strings.Repeat("1,", 1<<20-1) + "1]"))
	is(t, err, semel.ErrPayload)

	for expected, each := range map[string]any{
		"0.1000000000000000055511151231257827021181583404541015625": big.NewFloat(0.1),
		"123": *big.NewInt(123), `"-PT"`: nil, `"PT-0.000001S"`: -time.Microsecond,
		`"PT0S"`: time.Duration(0), `"PT-9223372036.854775808S"`: time.Duration(math.MinInt64),
		`"0001-01-01T00:00:00Z"`: time.Time{},
	} {
		text, err := semel.CanonicalArguments(each)
		is(t, err, nil)
		if each == nil {
			expected = "null"
		}
		same(t, string(text), expected)
	}
}

func TestOnceAgain24_AFingerprintHasThePayloadAndTheOperation(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	of := func(key string, options ...semel.Option) (algorithm, fingerprint string) {
		t.Helper()
		_, err := semel.Once(ctx, orders, key, gives("x"), options...)
		is(t, err, nil)
		reply := n.call("SEMEL.GETCLAIM", "orders", key).([]any)
		return reply[len(reply)-3].(string), reply[len(reply)-1].(string)
	}
	algorithm, fingerprint := of("k7", semel.WithFingerprintOf(map[string]any{"b": 1.0, "a": nil}))
	same(t, algorithm+fingerprint, "7"+half([]byte(`{"a":null,"b":1}`)))
	algorithm, fingerprint = of("k2", semel.WithFingerprint([]byte("{}")))
	same(t, algorithm+fingerprint, "2"+half([]byte("{}")))
	algorithm, fingerprint = of("k9", semel.WithOperation("pay"))
	same(t, algorithm+fingerprint, "9"+half([]byte(`["pay",null,{}]`)))
	algorithm, fingerprint = of("k9s", semel.WithOperation("pay"),
		semel.WithScope(semel.Scope{Tenant: "acme"}), semel.WithFingerprintOf([]byte{0, 255}))
	same(t, algorithm+fingerprint, "9"+half([]byte(`["pay",{"tenant":"acme"},{"$bytes":"AP8="}]`)))

	_, err := semel.Once(ctx, orders, "k9", never(t), semel.WithOperation("refund"))
	is(t, err, semel.ErrMismatch)
	_, err = semel.Once(ctx, orders, "hidden", never(t), semel.WithFingerprintOf(opaque{1}))
	is(t, err, semel.ErrPayload)
	same(t, strings.Contains(err.Error(), "WithFingerprintOf"), true)
	for _, wrong := range [][]semel.Option{
		{semel.WithOperation("")}, {semel.WithOperation(strings.Repeat("x", 513))},
		{semel.WithScope(semel.Scope{Tenant: "acme"})}, {semel.WithOperation("x"), semel.WithScope(semel.Scope{})},
		{semel.WithOperation("pay"), semel.WithFingerprint([]byte("x"))}, {semel.WithOperation("\xff")},
	} {
		_, err := semel.Once(ctx, orders, "wrong", never(t), wrong...)
		same(t, err != nil, true)
	}
	same(t, n.state("orders", "hidden")+n.state("orders", "wrong"), "absentabsent")
	key, err := semel.CallKey("pay", nil, map[string]int{"b": 1, "a": 2})
	is(t, err, nil)
	same(t, key, "e5545620325c22b6180507a480fee4bd1b46616ea74a9b8e983ed68bc49351ac")
}

func TestOnceAgain24_FieldsOfAKeyNeverRunIntoEachOther(t *testing.T) {
	same(t, semel.CompositeKey("a|b", "c"), `a\|b|c`)
	same(t, semel.CompositeKey("a", "b|c"), `a|b\|c`)
	same(t, semel.CompositeKey("a", ""), "a|")
	same(t, semel.CompositeKey(""), `\e`)
	same(t, semel.CompositeKey(`\e`), `\\e`)
	same(t, semel.CompositeKey(), "")
	key, err := semel.FormatKey("o:{id}:{n}", map[string]any{"id": uuid{1}, "n": uint8(7), "left": func() {}})
	is(t, err, nil)
	same(t, key, "o:01000000-0000-0000-0000-000000000000:7")
	for _, each := range []any{1.5, true, []byte("x"), level(1), func() {}} {
		_, err = semel.FormatKey("o:{id}", map[string]any{"id": each})
		is(t, err, semel.ErrFormat)
		same(t, strings.Contains(err.Error(), "'id'"), true)
	}
	_, err = semel.FormatKey("o:{id}", map[string]any{"id": (*string)(nil)})
	is(t, err, semel.ErrKey)
}

// recorded is the fingerprint that the node has of a claim, and its number.
func (n *node) recorded(namespace, key string) (fingerprint, algorithm string) {
	view := n.call("SEMEL.GETCLAIM", namespace, key).([]any)
	for i := 0; i+1 < len(view); i += 2 {
		switch view[i] {
		case "fingerprint":
			fingerprint = view[i+1].(string)
		case "algorithm":
			algorithm = fmt.Sprint(view[i+1])
		}
	}
	return fingerprint, algorithm
}

// WithOperation alone had null for its arguments, and so another fingerprint than the other doors.
func TestOnceAgain24_TheOptionsGiveTheFingerprintsOfTheTable(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	played := 0
	for _, each := range readTable(t).Cases {
		if each.Kind != "identity" || each.Error != "" {
			continue
		}
		options := []semel.Option{semel.WithOperation(each.Operation)}
		if each.Scope != nil {
			options = append(options, semel.WithScope(*each.Scope))
		}
		with := append(options, semel.WithFingerprintOf(json.RawMessage(each.Arguments)))
		variants := [][]semel.Option{with}
		if each.Arguments == "{}" {
			variants = append(variants, options)
		}
		for i, options := range variants {
			key := each.Name + strconv.Itoa(i)
			_, err := semel.Once(ctx, orders, key, gives(1), options...)
			is(t, err, nil)
			fingerprint, algorithm := n.recorded("orders", key)
			if fingerprint != each.Sha256 || algorithm != "9" {
				t.Errorf("%s: %s (%v) instead of %s", key, fingerprint, algorithm, each.Sha256)
			}
			played++
		}
	}
	same(t, played > 5, true)
}
