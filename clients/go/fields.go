package semel

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// entries writes a map: a set, an object, or pairs.
func (w *writer) entries(v reflect.Value, path string, depth int) error {
	if element := v.Type().Elem(); element.Kind() == reflect.Struct && element.NumField() == 0 {
		return w.pairs(v, `{"$set":[`, path, func(key reflect.Value, path string) error {
			return w.value(key, path, depth+1)
		})
	}
	names := map[any]string{}
	for entries := v.MapRange(); entries.Next(); {
		name, ok, err := keyText(entries.Key())
		if err != nil {
			return refusedAt(path, err)
		}
		if !ok {
			return w.pairs(v, `{"$map":[`, path, func(key reflect.Value, path string) error {
				w.text = append(w.text, '[')
				if err := w.value(key, path, depth+1); err != nil {
					return err
				}
				w.text = append(w.text, ',')
				err := w.value(v.MapIndex(key), path, depth+1)
				w.text = append(w.text, ']')
				return err
			})
		}
		names[entries.Key().Interface()] = name
	}
	w.text = append(w.text, '{')
	for key, name := range names {
		inside := fmt.Sprintf("%s[%q]", path, name)
		if err := w.name(name, inside); err != nil {
			return err
		}
		if err := w.value(v.MapIndex(reflect.ValueOf(key)), inside, depth+1); err != nil {
			return err
		}
		w.text = append(w.text, ',')
	}
	w.end('}')
	return nil
}

// pairs writes an array with something for each key.
func (w *writer) pairs(v reflect.Value, begin, path string,
	write func(key reflect.Value, path string) error) error {
	w.text = append(w.text, begin...)
	for entries := v.MapRange(); entries.Next(); {
		if entries.Key().Kind() != reflect.Interface && !entries.Key().Equal(entries.Key()) {
			return refusedAt(path, errors.New("NaN as a key"))
		}
		if err := write(entries.Key(), fmt.Sprintf("%s[%v]", path, entries.Key())); err != nil {
			return err
		}
		w.text = append(w.text, ',')
	}
	w.end(']')
	w.text = append(w.text, '}')
	return nil
}

// keyText is a key that is text, or whose hook makes text of it.
func keyText(key reflect.Value) (text string, ok bool, err error) {
	if key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	if !key.IsValid() {
		return "", false, nil
	}
	if hook, ok := key.Interface().(encoding.TextMarshaler); ok &&
		(key.Kind() != reflect.Pointer || !key.IsNil()) {
		text, err := hook.MarshalText()
		return string(text), true, err
	}
	return key.String(), key.Kind() == reflect.String, nil
}

// name writes the name of a member, with another $ in front of one.
func (w *writer) name(name, path string) error {
	if strings.HasPrefix(name, "$") {
		name = "$" + name
	}
	if err := w.string(name, path); err != nil {
		return err
	}
	w.text = append(w.text, ':')
	return nil
}

// end puts a bracket in the place of a comma, if there is one.
func (w *writer) end(bracket byte) {
	if last := len(w.text) - 1; w.text[last] == ',' {
		w.text = w.text[:last]
	}
	w.text = append(w.text, bracket)
}

// member of a struct, as encoding/json sees it.
type structField struct {
	name   string
	path   string
	value  reflect.Value
	depth  int
	tagged bool
	quoted bool
}

// object writes a struct by its tags for JSON. State that JSON would leave out without a tag that
// says so is refused.
func (w *writer) object(v reflect.Value, path string, depth int) error {
	var all []structField
	if err := members(v, path, 0, &all); err != nil {
		return err
	}
	w.text = append(w.text, '{')
	for i, each := range all {
		for _, other := range all[:i] {
			if other.name == each.name {
				return refusedAt(each.path, fmt.Errorf("%s has the same name", other.path))
			}
		}
		if !each.value.IsValid() {
			continue
		}
		if err := w.name(each.name, each.path); err != nil {
			return err
		}
		begin := len(w.text)
		if err := w.value(each.value, each.path, depth+1); err != nil {
			return err
		}
		if each.quoted && string(w.text[begin:]) != "null" {
			text, err := canonical(w.text[begin:], false)
			if err != nil {
				return refusedAt(each.path, err)
			}
			w.text = append(w.text[:begin], quoted(string(text))...)
		}
		w.text = append(w.text, ',')
	}
	w.end('}')
	return nil
}

// members are the fields, with those of embedded structs; an invalid value is left out.
func members(v reflect.Value, path string, depth int, all *[]structField) error {
	if depth > depthMax {
		return refusedAt(path, errors.New("too deep"))
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" {
			continue
		}
		inside := path + "." + field.Name
		name, options, _ := strings.Cut(tag, ",")
		value := v.Field(i)
		of := field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if field.Anonymous && name == "" && of.Kind() == reflect.Struct {
			if value.Kind() == reflect.Pointer {
				if value.IsNil() {
					continue
				}
				value = value.Elem()
			}
			if err := members(value, inside, depth+1, all); err != nil {
				return err
			}
			continue
		}
		if !field.IsExported() {
			if field.Type.Size() == 0 {
				continue // no state
			}
			return refusedAt(inside, fmt.Errorf("an unexported field of a %v without a hook; "+
				`give it a MarshalJSON, or the field a tag json:"-"`, v.Type()))
		}
		made := structField{name: name, path: inside, value: value, depth: depth}
		if name == "" {
			made.name = field.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				if isEmpty(value) {
					made.value = reflect.Value{}
				}
			case "omitzero":
				if isZero(value) {
					made.value = reflect.Value{}
				}
			case "string":
				kind := of.Kind()
				made.quoted = kind == reflect.String || kind == reflect.Bool ||
					kind >= reflect.Int && kind <= reflect.Float64
			}
		}
		*all = append(*all, made)
	}
	return nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func isZero(v reflect.Value) bool {
	if own, ok := v.Interface().(interface{ IsZero() bool }); ok &&
		(v.Kind() != reflect.Pointer || !v.IsNil()) {
		return own.IsZero()
	}
	return v.IsZero()
}
