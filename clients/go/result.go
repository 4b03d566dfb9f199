package semel

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// How a result is stored, by every client of Semel that is not Java's:
//
//	{"id":7}   a text of JSON, as it is
//	01 ..      the bytes of another codec behind a byte that begins no JSON
//	00         done, but the result was not kept
//	           nothing: done, without a result
//
// So no value looks like a mark. Bytes that begin otherwise are a value as it is: an older release,
// or another language, stored them.
const (
	markNotKept = 0
	markValue   = 1
)

var notKept = []byte{markNotKept}

var errNothingStored = errors.New("nothing is stored")

func stored(codec Codec, value any) ([]byte, error) {
	text, err := codec.Encode(value)
	if err != nil {
		return nil, err
	}
	if _, plain := codec.(jsonCodec); plain {
		return text, nil
	}
	return append([]byte{markValue}, text...), nil
}

func loaded(codec Codec, text []byte, into any) error {
	if len(text) == 0 || len(text) == 1 && text[0] == markNotKept {
		return errNothingStored
	}
	if text[0] == markValue {
		text = text[1:]
	}
	return codec.Decode(bytes.Clone(text), into)
}

// keepable is what is stored for a result, if duplicates get from it what the first caller got. A
// codec that panics does not undo work that is done.
func keepable[T any](codec Codec, value T) (text []byte, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the codec panicked: %v", panicked)
		}
	}()
	text, err = stored(codec, value)
	if err != nil {
		return nil, err
	}
	var again T
	if err := loaded(codec, text, &again); err != nil {
		return nil, fmt.Errorf("what is stored cannot be read: %w", err)
	}
	if own, ok := codec.(Equaler); ok {
		if !own.Equal(value, again) {
			return nil, errors.New("duplicates would get another value, says the codec")
		}
		return text, nil
	}
	e := equality{}
	if !e.equal(reflect.ValueOf(&value).Elem(), reflect.ValueOf(&again).Elem()) {
		return nil, fmt.Errorf("duplicates would get another value: %s differs", e.where())
	}
	return text, nil
}

// equality is reflect.DeepEqual, but for types that know better (Equal, Cmp), and for NaN.
type equality struct {
	path []string
	seen map[[2]any]bool
}

func (e *equality) where() string {
	if len(e.path) == 0 {
		return "the result"
	}
	return "the result's " + strings.Join(e.path, "")
}

// differs notes, from the inside out, where it is.
func (e *equality) differs(name string) bool {
	e.path = slices.Insert(e.path, 0, name)
	return false
}

func (e *equality) equal(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	if same, known := byMethod(a, b); known {
		return same
	}
	switch a.Kind() {
	case reflect.Pointer:
		return e.pointers(a, b, func() bool { return e.equal(a.Elem(), b.Elem()) })
	case reflect.Interface:
		return a.IsNil() == b.IsNil() && e.equal(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !e.equal(a.Field(i), b.Field(i)) {
				return e.differs("." + a.Type().Field(i).Name)
			}
		}
		return true
	case reflect.Slice:
		return e.pointers(a, b, func() bool { return e.elements(a, b) })
	case reflect.Array:
		return e.elements(a, b)
	case reflect.Map:
		return e.pointers(a, b, func() bool { return e.entries(a, b) })
	case reflect.Func:
		return a.IsNil() && b.IsNil()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float() || math.IsNaN(a.Float()) && math.IsNaN(b.Float())
	default:
		return a.Equal(b)
	}
}

// pointers are equal where both are nil, or where what is behind them is. Two that were compared
// already are not compared again: they may be a ring.
func (e *equality) pointers(a, b reflect.Value, behind func() bool) bool {
	if a.IsNil() || b.IsNil() {
		return a.IsNil() == b.IsNil()
	}
	pair := [2]any{place(a), place(b)}
	if e.seen[pair] {
		return true
	}
	if e.seen == nil {
		e.seen = map[[2]any]bool{}
	}
	e.seen[pair] = true
	return behind()
}

type location struct {
	at   uintptr
	size int
	of   reflect.Type
}

func place(v reflect.Value) location {
	size := 0
	if v.Kind() == reflect.Slice {
		size = v.Len()
	}
	return location{v.Pointer(), size, v.Type()}
}

func (e *equality) elements(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Uint8 {
		return bytes.Equal(a.Bytes(), b.Bytes())
	}
	for i := range a.Len() {
		if !e.equal(a.Index(i), b.Index(i)) {
			return e.differs(fmt.Sprintf("[%d]", i))
		}
	}
	return true
}

func (e *equality) entries(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for entries := a.MapRange(); entries.Next(); {
		if !e.equal(entries.Value(), b.MapIndex(entries.Key())) {
			return e.differs(fmt.Sprintf("[%v]", entries.Key()))
		}
	}
	return true
}

// byMethod asks a type's own Equal(T) bool or Cmp(T) int: time.Time, big.Int.
func byMethod(a, b reflect.Value) (same, known bool) {
	t := a.Type()
	if !a.CanInterface() || t.Kind() == reflect.Interface ||
		t.Kind() == reflect.Pointer && (a.IsNil() || b.IsNil()) {
		return false, false
	}
	for _, name := range []string{"Equal", "Cmp"} {
		method, ok := t.MethodByName(name)
		if !ok || method.Type.NumIn() != 2 || method.Type.In(1) != t || method.Type.NumOut() != 1 {
			continue
		}
		result := method.Type.Out(0).Kind()
		if name == "Equal" && result == reflect.Bool {
			return method.Func.Call([]reflect.Value{a, b})[0].Bool(), true
		}
		if name == "Cmp" && result == reflect.Int {
			return method.Func.Call([]reflect.Value{a, b})[0].Int() == 0, true
		}
	}
	return false, false
}

var (
	readerType  = reflect.TypeFor[io.Reader]()
	errorType   = reflect.TypeFor[error]()
	contextType = reflect.TypeFor[context.Context]()
	// In memory, so that they are a value, if their codec can keep them.
	bufferTypes = []reflect.Type{reflect.TypeFor[*bytes.Buffer](), reflect.TypeFor[*bytes.Reader](),
		reflect.TypeFor[*strings.Reader]()}
	hookTypes = []reflect.Type{reflect.TypeFor[json.Marshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.BinaryMarshaler]()}
)

// hasHook says whether a type makes its own text or bytes.
func hasHook(t reflect.Type) bool {
	for _, hook := range hookTypes {
		if t.Implements(hook) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(hook) {
			return true
		}
	}
	return false
}

// lazy says why a type stands for work that is still to be done, or is empty. inside: whether the
// fields of a struct count, as they do for JSON.
func lazy(t reflect.Type, inside bool, seen map[reflect.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Func:
		return fmt.Sprintf("a %v is a function", t)
	case reflect.Chan:
		return fmt.Sprintf("a %v is a channel", t)
	}
	if hasHook(t) {
		return ""
	}
	if t.Implements(readerType) && !slices.Contains(bufferTypes, t) {
		return fmt.Sprintf("a %v is a stream (io.Reader)", t)
	}
	if isIterator(t) {
		return fmt.Sprintf("a %v is an iterator (Next)", t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return lazy(t.Elem(), inside, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if !inside || !field.IsExported() || field.Tag.Get("json") == "-" {
				continue
			}
			if why := lazy(field.Type, inside, seen); why != "" {
				return fmt.Sprintf("%s, in %v.%s", why, t, field.Name)
			}
		}
	}
	return ""
}

// isIterator: Next() bool, or Next() with a value and a bool or an error. Next may take a context.
func isIterator(t reflect.Type) bool {
	next, ok := t.MethodByName("Next")
	if !ok {
		return false
	}
	first := 1 // behind the receiver
	if t.Kind() == reflect.Interface {
		first = 0
	}
	arguments, results := next.Type.NumIn()-first, next.Type.NumOut()
	takes := arguments == 0 || arguments == 1 && next.Type.In(first) == contextType
	if !takes || results != 1 && results != 2 {
		return false
	}
	last := next.Type.Out(results - 1)
	return last.Kind() == reflect.Bool || results == 2 && last == errorType
}

var lazyTypes sync.Map // what lazy says of a type, by jsonCodec or not

// lazyType is asked before a claim.
func lazyType[T any](codec Codec) error {
	type question struct {
		of    reflect.Type
		plain bool
	}
	_, plain := codec.(jsonCodec)
	asked := question{reflect.TypeFor[T](), plain}
	why, known := lazyTypes.Load(asked)
	if !known {
		why = lazy(asked.of, plain, map[reflect.Type]bool{})
		lazyTypes.Store(asked, why)
	}
	if why != "" {
		return fmt.Errorf("%w: %s", ErrLazyResult, why)
	}
	return nil
}

// lazyValue is asked of a result: what is behind its interfaces.
func lazyValue(v reflect.Value, inside bool, depth int) error {
	if depth > depthMax || !v.IsValid() {
		return nil
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		why := lazy(v.Elem().Type(), inside, map[reflect.Type]bool{})
		if why != "" {
			return fmt.Errorf("%w: %s", ErrLazyResult, why)
		}
		return lazyValue(v.Elem(), inside, depth+1)
	case reflect.Pointer:
		return lazyValue(v.Elem(), inside, depth+1)
	case reflect.Slice, reflect.Array:
		if !holdsAny(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := lazyValue(v.Index(i), inside, depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		if !holdsAny(v.Type().Elem()) {
			return nil
		}
		for entries := v.MapRange(); entries.Next(); {
			if err := lazyValue(entries.Value(), inside, depth+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if hasHook(v.Type()) {
				return nil
			}
			if inside && field.IsExported() && field.Tag.Get("json") != "-" && holdsAny(field.Type) {
				if err := lazyValue(v.Field(i), inside, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// holdsAny: there may be an interface in it.
func holdsAny(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return true
	}
	return false
}
