package semel

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The limits of docs/identity.md.
const (
	jsonBytesMax  = 16 << 20
	jsonValuesMax = 1 << 20
	depthMax      = 128
	placesMax     = 10000 // decimal places in front of the point and behind it
)

// CanonicalJSON is the one text of a JSON value: without blanks, members sorted by the UTF-16 of their
// names, exact numbers, {"$set": ..} and {"$map": ..} in order. What has no such text is an ErrPayload.
func CanonicalJSON(text []byte) ([]byte, error) {
	made, err := canonical(text, false)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return made, nil
}

// canonical: escaped puts a $ before each name that begins with one, so that no object has a
// meaning.
func canonical(text []byte, escaped bool) ([]byte, error) {
	if len(text) > jsonBytesMax {
		return nil, fmt.Errorf("more than %d bytes", jsonBytesMax)
	}
	p := parser{text: text, escaped: escaped}
	found, err := p.value(0)
	if err == nil {
		if p.blanks(); p.at < len(p.text) {
			err = errors.New("text behind the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w, at byte %d", err, p.at)
	}
	return found.text, nil
}

// canonicalValue is a value's canonical text. Of an array also those of its elements, and of their
// elements, which is what a set and a map are sorted by.
type canonicalValue struct {
	text     []byte
	isArray  bool
	elements []canonicalValue
}

func textsOf(values []canonicalValue) [][]byte {
	texts := make([][]byte, len(values))
	for i := range values {
		texts[i] = values[i].text
	}
	return texts
}

// parser reads one JSON text and gives the canonical text of each value.
type parser struct {
	text    []byte
	at      int
	values  int
	escaped bool
}

var errSyntax = errors.New("no JSON")

func (p *parser) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// next is the first byte that is no blank; 0 at the end.
func (p *parser) next() byte {
	p.blanks()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) value(depth int) (found canonicalValue, err error) {
	first := p.next()
	if p.values++; p.values > jsonValuesMax {
		return found, fmt.Errorf("more than %d values", jsonValuesMax)
	}
	if (first == '[' || first == '{') && depth == depthMax {
		return found, fmt.Errorf("more than %d levels", depthMax)
	}
	switch {
	case first == '{':
		found.text, err = p.object(depth + 1)
		return found, err
	case first == '[':
		return p.array(depth + 1)
	case first == '"':
		text, err := p.string()
		found.text = quoted(text)
		return found, err
	case first == '-' || first >= '0' && first <= '9':
		found.text, err = p.number()
		return found, err
	}
	for _, word := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(p.text[p.at:], []byte(word)) {
			p.at += len(word)
			found.text = []byte(word)
			return found, nil
		}
	}
	return found, errSyntax
}

func joined(begin string, texts [][]byte, end string) []byte {
	made := []byte(begin)
	for i, each := range texts {
		if i > 0 {
			made = append(made, ',')
		}
		made = append(made, each...)
	}
	return append(made, end...)
}

// items reads what is between brackets, separated by commas.
func (p *parser) items(end byte, item func() error) error {
	p.at++
	if p.next() == end {
		p.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch p.next() {
		case ',':
			p.at++
		case end:
			p.at++
			return nil
		default:
			return errSyntax
		}
	}
}

func (p *parser) array(depth int) (found canonicalValue, err error) {
	found.isArray = true
	err = p.items(']', func() error {
		element, err := p.value(depth)
		for i := range element.elements {
			element.elements[i].elements = nil // not looked at any more
		}
		found.elements = append(found.elements, element)
		return err
	})
	found.text = joined("[", textsOf(found.elements), "]")
	return found, err
}

type member struct {
	name  string
	value canonicalValue
}

func (p *parser) object(depth int) ([]byte, error) {
	var members []member
	err := p.items('}', func() error {
		if p.next() != '"' {
			return errSyntax
		}
		name, err := p.string()
		if err != nil {
			return err
		}
		if p.escaped && strings.HasPrefix(name, "$") {
			name = "$" + name
		}
		if p.next() != ':' {
			return errSyntax
		}
		p.at++
		value, err := p.value(depth)
		members = append(members, member{name, value})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(members) == 1 && members[0].value.isArray {
		switch elements := members[0].value.elements; members[0].name {
		case "$set":
			texts := textsOf(elements)
			slices.SortFunc(texts, bytes.Compare)
			return joined(`{"$set":[`, texts, "]}"), nil
		case "$map":
			if arePairs(elements) {
				return pairs(elements)
			}
		}
	}
	slices.SortFunc(members, func(a, b member) int {
		return slices.Compare(utf16.Encode([]rune(a.name)), utf16.Encode([]rune(b.name)))
	})
	made := []byte{'{'}
	for i, each := range members {
		if i > 0 {
			if each.name == members[i-1].name {
				return nil, fmt.Errorf("the name %q twice", each.name)
			}
			made = append(made, ',')
		}
		made = append(append(append(made, quoted(each.name)...), ':'), each.value.text...)
	}
	return append(made, '}'), nil
}

func arePairs(elements []canonicalValue) bool {
	for _, each := range elements {
		if !each.isArray || len(each.elements) != 2 {
			return false
		}
	}
	return true
}

func pairs(elements []canonicalValue) ([]byte, error) {
	slices.SortFunc(elements, func(a, b canonicalValue) int {
		return bytes.Compare(a.elements[0].text, b.elements[0].text)
	})
	for i := 1; i < len(elements); i++ {
		if key := elements[i].elements[0].text; bytes.Equal(key, elements[i-1].elements[0].text) {
			return nil, fmt.Errorf("the key %s twice", key)
		}
	}
	return joined(`{"$map":[`, textsOf(elements), "]}"), nil
}

func (p *parser) string() (string, error) {
	var made []byte
	for p.at++; p.at < len(p.text); {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			if !utf8.Valid(made) {
				return "", errors.New("text that is not UTF-8")
			}
			return string(made), nil
		case c < 0x20:
			return "", errors.New("a control character in a text")
		case c == '\\':
			text, err := p.escape()
			if err != nil {
				return "", err
			}
			made = append(made, text...)
		default:
			made = append(made, c)
			p.at++
		}
	}
	return "", errSyntax
}

func (p *parser) escape() (string, error) {
	if p.at+1 == len(p.text) {
		return "", errSyntax
	}
	c := p.text[p.at+1]
	if found := strings.IndexByte(`"\/bfnrt`, c); found >= 0 {
		p.at += 2
		return "\"\\/\b\f\n\r\t"[found : found+1], nil
	}
	one, ok := p.unit()
	if !ok {
		return "", errSyntax
	}
	if !utf16.IsSurrogate(one) {
		return string(one), nil
	}
	other, ok := p.unit()
	both := utf16.DecodeRune(one, other)
	if !ok || both == utf8.RuneError {
		return "", errors.New("a lone surrogate")
	}
	return string(both), nil
}

// unit is one \uXXXX.
func (p *parser) unit() (rune, bool) {
	if p.at+6 > len(p.text) || p.text[p.at] != '\\' || p.text[p.at+1] != 'u' {
		return 0, false
	}
	digits := string(p.text[p.at+2 : p.at+6])
	number, err := strconv.ParseUint(digits, 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 6
	return rune(number), true
}

func quoted(text string) []byte {
	made := []byte{'"'}
	for i := range len(text) {
		c := text[i]
		if found := strings.IndexByte("\"\\\b\f\n\r\t", c); found >= 0 {
			made = append(made, '\\', `"\bfnrt`[found])
		} else if c < 0x20 {
			made = fmt.Appendf(made, `\u%04x`, c)
		} else {
			made = append(made, c)
		}
	}
	return append(made, '"')
}

func (p *parser) digits() string {
	begin := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return string(p.text[begin:p.at])
}

func (p *parser) is(any string) bool {
	return p.at < len(p.text) && strings.IndexByte(any, p.text[p.at]) >= 0
}

func (p *parser) number() ([]byte, error) {
	sign := p.is("-")
	if sign {
		p.at++
	}
	whole, fraction, exponent := p.digits(), "", ""
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return nil, errSyntax
	}
	if p.is(".") {
		p.at++
		if fraction = p.digits(); fraction == "" {
			return nil, errSyntax
		}
	}
	if p.is("eE") {
		p.at++
		negative := p.is("-")
		if p.is("+-") {
			p.at++
		}
		if exponent = p.digits(); exponent == "" {
			return nil, errSyntax
		}
		if negative {
			exponent = "-" + exponent
		}
	}
	return decimal(sign, whole, fraction, exponent)
}

// decimal lays an exact value out as ECMAScript lays out a double.
func decimal(sign bool, whole, fraction, exponent string) ([]byte, error) {
	digits := strings.TrimLeft(whole+fraction, "0")
	bare := strings.TrimRight(digits, "0")
	if bare == "" {
		return []byte("0"), nil
	}
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > 1<<40 || shift < -1<<40 {
			return nil, errors.New("a number with a digit that is too far from its point")
		}
	}
	last := shift - len(fraction) + len(digits) - len(bare) // place of the last digit
	point := len(bare) + last                               // digits in front of the point
	if point > placesMax || last < -placesMax {
		return nil, errors.New("a number with a digit that is too far from its point")
	}
	var made []byte
	if sign {
		made = append(made, '-')
	}
	switch {
	case point > 21 || point <= -6:
		made = append(made, bare[0])
		if len(bare) > 1 {
			made = append(append(made, '.'), bare[1:]...)
		}
		return fmt.Appendf(made, "e%+d", point-1), nil
	case point <= 0:
		made = append(append(made, "0."...), strings.Repeat("0", -point)...)
		return append(made, bare...), nil
	case point >= len(bare):
		made = append(made, bare...)
		return append(made, strings.Repeat("0", point-len(bare))...), nil
	default:
		return append(append(append(made, bare[:point]...), '.'), bare[point:]...), nil
	}
}
