package semel

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// CompositeKey has the fields with | between them, each | and \ in a field behind a \. Two lists of
// fields that differ never give one key.
func CompositeKey(fields ...string) string {
	if len(fields) == 1 && fields[0] == "" {
		return `\e`
	}
	escapes := strings.NewReplacer(`|`, `\|`, `\`, `\\`)
	escaped := make([]string, len(fields))
	for i, each := range fields {
		escaped[i] = escapes.Replace(each)
	}
	return strings.Join(escaped, "|")
}

const separators = ":|/,;#=&{}\\ "

// FormatKey is format with the value of each {name} in its place, as in "order:{tenant}:{id}"; {{
// and }} are braces. Separators, % and control characters of a value become %XX, and two names need
// a separator between them: two sets of values never give one key of the same format. A value is
// text, an integer, or has a MarshalText (a UUID). Errors name the field: ErrFormat, and ErrKey where
// a value, or the format, is nil or empty.
func FormatKey(format string, fields map[string]any) (string, error) {
	if format == "" {
		return "", fmt.Errorf("%w: the format is empty", ErrKey)
	}
	var key strings.Builder
	parted := true // from the value before, if there is one
	for at := 0; at < len(format); {
		c := format[at]
		if c != '{' && c != '}' || at+1 < len(format) && format[at+1] == c {
			parted = parted || strings.IndexByte(separators, c) >= 0
			key.WriteByte(c)
			if at++; c == '{' || c == '}' {
				at++
			}
			continue
		}
		if c == '}' {
			return "", fmt.Errorf("%w: '}' without '{' at position %d", ErrFormat, at)
		}
		length := strings.IndexAny(format[at+1:], "{}")
		if length < 0 || format[at+1+length] == '{' {
			return "", fmt.Errorf("%w: '{' without '}' at position %d", ErrFormat, at)
		}
		name := format[at+1 : at+1+length]
		if name == "" {
			return "", fmt.Errorf("%w: a name is missing at position %d", ErrFormat, at)
		}
		if !parted {
			return "", fmt.Errorf("%w: '%s' is not separated from the name before it, at position %d",
				ErrFormat, name, at)
		}
		value, err := fieldText(fields, name)
		if err != nil {
			return "", err
		}
		escapeField(&key, value)
		parted = false
		at += length + 2
	}
	return key.String(), nil
}

func escapeField(key *strings.Builder, value string) {
	for i := range len(value) {
		c := value[i]
		if c < 0x20 || c == 0x7f || c == '%' || strings.IndexByte(separators, c) >= 0 {
			fmt.Fprintf(key, "%%%02X", c)
		} else {
			key.WriteByte(c)
		}
	}
}

func fieldText(fields map[string]any, name string) (string, error) {
	value, known := fields[name]
	if !known {
		return "", fmt.Errorf("%w: there is no field '%s'", ErrFormat, name)
	}
	text, err := textOf(value)
	if err != nil {
		return "", fmt.Errorf("%w: the field '%s': %w", ErrFormat, name, err)
	}
	if text == "" {
		return "", fmt.Errorf("%w: the value of '%s' is nil or empty", ErrKey, name)
	}
	return text, nil
}

func textOf(value any) (string, error) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		if _, ok := v.Interface().(encoding.TextMarshaler); ok {
			break
		}
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", nil
	}
	if hook, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := hook.MarshalText()
		return string(text), err
	}
	if isNamelessEnum(v.Type()) {
		return "", errEnum
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return "", fmt.Errorf("a %T is no text, integer or encoding.TextMarshaler", value)
}
