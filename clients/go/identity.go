package semel

import (
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const operationBytesMax = 512

// Numbers of fingerprints: docs/identity.md.
const (
	sha256Bytes    = 2
	sha256JSON     = 7
	sha256Identity = 9
)

// Scope is whose a call is. What is empty is not in it.
type Scope struct{ Tenant, User string }

// CanonicalArguments is the canonical text of a value by the table of docs/identity.md. What has none
// is an ErrPayload that names the path: functions, channels, streams, NaN, values that hold
// themselves, structs with unexported fields and no json.Marshaler or encoding.TextMarshaler.
func CanonicalArguments(value any) ([]byte, error) {
	w := writer{}
	if err := w.value(reflect.ValueOf(value), "", 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return CanonicalJSON(w.text)
}

// CallKey is the key of a call without a key of its own: the digits of SHA-256 of its identity.
func CallKey(operation string, scope *Scope, arguments any) (string, error) {
	text, err := CanonicalArguments(arguments)
	if err != nil {
		return "", err
	}
	identity, err := identityOf(operation, scope, text)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(identity)
	return hex.EncodeToString(sum[:]), nil
}

// identityOf has the canonical arguments with the operation and the scope.
func identityOf(operation string, scope *Scope, arguments []byte) ([]byte, error) {
	if operation == "" {
		return nil, fmt.Errorf("%w: the operation is empty", ErrKey)
	}
	if len(operation) > operationBytesMax {
		return nil, fmt.Errorf("%w: an operation of %d bytes; the limit is %d", ErrKey, len(operation),
			operationBytesMax)
	}
	of := []byte("null")
	if scope != nil {
		var members [][]byte
		for _, each := range [][2]string{{"tenant", scope.Tenant}, {"user", scope.User}} {
			if each[1] != "" {
				members = append(members, joined(`"`+each[0]+`":`, [][]byte{quoted(each[1])}, ""))
			}
		}
		if len(members) == 0 {
			return nil, fmt.Errorf("%w: a scope without a tenant and a user", ErrKey)
		}
		of = joined("{", members, "}")
	}
	if !utf8.Valid(of) || !utf8.ValidString(operation) {
		return nil, fmt.Errorf("%w: an operation or a scope that is not UTF-8", ErrPayload)
	}
	return joined("[", [][]byte{quoted(operation), of, arguments}, "]"), nil
}

func halfOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// writer makes JSON of Go's values; canonical puts it in order.
type writer struct {
	text []byte
	path map[[2]any]bool // pointers, slices and maps around the value
}

var errEnum = errors.New(
	"a number with a name (String), which may be that of several; give the type a MarshalText")

func refusedAt(path string, err error) error {
	if path == "" {
		path = "the payload"
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (w *writer) value(v reflect.Value, path string, depth int) error {
	if depth > 2*depthMax || len(w.text) > jsonBytesMax {
		return refusedAt(path, errors.New("too deep or too long"))
	}
	if !v.IsValid() || nilable(v) && v.IsNil() && v.Kind() != reflect.Func &&
		v.Kind() != reflect.Chan {
		w.text = append(w.text, "null"...)
		return nil
	}
	switch v.Kind() {
	case reflect.Interface:
		return w.value(v.Elem(), path, depth)
	case reflect.Pointer:
		return w.around(v, path, func() error { return w.value(v.Elem(), path, depth+1) })
	}
	if known, err := w.known(v); known || err != nil {
		if err != nil {
			return refusedAt(path, err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		w.text = strconv.AppendBool(w.text, v.Bool())
	case reflect.String:
		return w.string(v.String(), path)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.text = strconv.AppendInt(w.text, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.text = strconv.AppendUint(w.text, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return refusedAt(path, fmt.Errorf("%v is no number", v.Float()))
		}
		w.text = strconv.AppendFloat(w.text, v.Float(), 'e', -1, v.Type().Bits())
	case reflect.Slice:
		return w.around(v, path, func() error { return w.list(v, path, depth) })
	case reflect.Array:
		return w.list(v, path, depth)
	case reflect.Map:
		return w.around(v, path, func() error { return w.entries(v, path, depth) })
	case reflect.Struct:
		return w.object(v, path, depth)
	default:
		return refusedAt(path, fmt.Errorf("a %v", v.Type()))
	}
	return nil
}

func nilable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		return true
	}
	return false
}

// around refuses what holds itself.
func (w *writer) around(v reflect.Value, path string, inside func() error) error {
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return inside()
	}
	key := [2]any{place(v), v.Type()}
	if w.path[key] {
		return refusedAt(path, errors.New("a value that holds itself"))
	}
	if w.path == nil {
		w.path = map[[2]any]bool{}
	}
	w.path[key] = true
	defer delete(w.path, key)
	return inside()
}

func (w *writer) string(text, path string) error {
	if !utf8.ValidString(text) {
		return refusedAt(path, errors.New("text that is not UTF-8"))
	}
	w.text = append(w.text, quoted(text)...)
	return nil
}

// known writes the types with a line of their own in the table, and those with a hook.
func (w *writer) known(v reflect.Value) (bool, error) {
	if !v.CanInterface() {
		return false, errors.New("an unexported field")
	}
	switch value := v.Interface().(type) {
	case time.Time:
		utc := value.UTC()
		if utc.Year() < 0 || utc.Year() > 9999 {
			return true, fmt.Errorf("the year %d", utc.Year())
		}
		return true, w.string(utc.Format("2006-01-02T15:04:05.999999999Z"), "")
	case time.Duration:
		return true, w.string(isoSeconds(value), "")
	case time.Month, time.Weekday:
		return true, w.string(fmt.Sprint(value), "")
	case big.Int:
		w.text = value.Append(w.text, 10)
		return true, nil
	case big.Float:
		text, err := exactly(&value)
		w.text = append(w.text, text...)
		return true, err
	case json.Number:
		p := parser{text: []byte(value)}
		text, err := p.number()
		if err != nil || p.at != len(p.text) {
			return true, fmt.Errorf("%q is no number", string(value))
		}
		w.text = append(w.text, text...)
		return true, nil
	}
	text, known, err := hookText(v)
	if known || err != nil {
		w.text = append(w.text, text...)
		return known, err
	}
	if v.Type().Implements(readerType) || reflect.PointerTo(v.Type()).Implements(readerType) {
		return false, fmt.Errorf("a %v is a stream", v.Type())
	}
	if isNamelessEnum(v.Type()) {
		return false, fmt.Errorf("a %v is %w", v.Type(), errEnum)
	}
	return false, nil
}

// isNamelessEnum: String is for people, and two values may have one.
func isNamelessEnum(t reflect.Type) bool {
	return (reflect.Zero(t).CanInt() || reflect.Zero(t).CanUint()) && t.Implements(stringerType)
}

var stringerType = reflect.TypeFor[fmt.Stringer]()

func isoSeconds(d time.Duration) string {
	sign, rest := "", uint64(d)
	if d < 0 {
		sign, rest = "-", -rest
	}
	text := fmt.Sprintf("%d.%09d", rest/uint64(time.Second), rest%uint64(time.Second))
	return "PT" + sign + strings.TrimRight(strings.TrimRight(text, "0"), ".") + "S"
}

// exactly is all digits of a binary number, of which there are finitely many.
func exactly(value *big.Float) ([]byte, error) {
	if value.IsInf() {
		return nil, errors.New("infinity is no number")
	}
	exponent := value.MantExp(nil)
	if exponent > 4*placesMax || int(value.MinPrec())-exponent > placesMax {
		return nil, errors.New("a number with a digit that is too far from its point")
	}
	exact, _ := value.Rat(nil)
	if exact == nil {
		exact = new(big.Rat)
	}
	places, _ := exact.FloatPrec()
	return []byte(exact.FloatString(places)), nil
}

// hookText is what a type says of itself. The JSON of a hook is a value as any other: no object in
// it has a meaning.
func hookText(v reflect.Value) (text []byte, known bool, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("its hook panicked: %v", panicked)
		}
	}()
	pointer := reflect.New(v.Type()) // hooks may be those of the pointer
	pointer.Elem().Set(v)
	made, known, err := byHook(pointer.Interface())
	if !known || err != nil {
		return nil, known, err
	}
	if v.Kind() == reflect.Struct {
		if err := isWhole(v, made); err != nil {
			return nil, true, err
		}
	}
	text, err = canonical(made, true)
	return text, true, err
}

func byHook(value any) (text []byte, known bool, err error) {
	switch hook := value.(type) {
	case json.Marshaler:
		text, err = hook.MarshalJSON()
		return text, true, err
	case encoding.TextMarshaler:
		text, err = hook.MarshalText()
		if err == nil && !utf8.Valid(text) {
			err = errors.New("text that is not UTF-8")
		}
		return quoted(string(text)), true, err
	}
	return nil, false, nil
}

// isWhole refuses a struct whose hook is that of an embedded field: it knows nothing of the others.
func isWhole(v reflect.Value, made []byte) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		embedded := v.Field(i)
		if !field.Anonymous || !embedded.CanInterface() || v.NumField() == 1 {
			continue
		}
		if embedded.Kind() != reflect.Pointer {
			embedded = reflect.New(field.Type)
			embedded.Elem().Set(v.Field(i))
		} else if embedded.IsNil() {
			continue
		}
		if inner, known, err := byHook(embedded.Interface()); known && err == nil &&
			string(inner) == string(made) {
			return fmt.Errorf("the hook of %v is that of its field %s", v.Type(), field.Name)
		}
	}
	return nil
}

func (w *writer) list(v reflect.Value, path string, depth int) error {
	of := v.Type().Elem()
	if of.Kind() == reflect.Uint8 && !hasHook(of) && !isNamelessEnum(of) {
		raw := make([]byte, v.Len())
		for i := range raw {
			raw[i] = byte(v.Index(i).Uint())
		}
		w.text = fmt.Appendf(w.text, `{"$bytes":"%s"}`, base64.StdEncoding.EncodeToString(raw))
		return nil
	}
	w.text = append(w.text, '[')
	for i := range v.Len() {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if err := w.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	w.text = append(w.text, ']')
	return nil
}
