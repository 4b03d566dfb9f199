package semel

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Codec turns results into bytes and back. A result is kept if it comes back equal, so that
// duplicates get what the first caller got.
type Codec interface {
	Encode(value any) ([]byte, error)
	Decode(text []byte, into any) error // into is a pointer
}

// Equaler is a Codec that says itself whether what came back is equal, for types whose state is not
// only their value (messages of protobuf). Without it types have Equal(T) bool or Cmp(T) int, or are
// compared field by field, also unexported ones.
type Equaler interface {
	Equal(value, decoded any) bool
}

// JSON is encoding/json, the default.
var JSON Codec = jsonCodec{}

// Bytes keeps []byte and string as they are.
var Bytes Codec = bytesCodec{}

type jsonCodec struct{}

func (jsonCodec) Encode(value any) ([]byte, error)   { return json.Marshal(value) }
func (jsonCodec) Decode(text []byte, into any) error { return json.Unmarshal(text, into) }

type bytesCodec struct{}

func (bytesCodec) Encode(value any) ([]byte, error) {
	switch value := value.(type) {
	case []byte:
		return value, nil
	case string:
		return []byte(value), nil
	}
	return nil, fmt.Errorf("semel.Bytes: a %T is neither []byte nor string", value)
}

func (bytesCodec) Decode(text []byte, into any) error {
	switch into := into.(type) {
	case *[]byte:
		*into = text
	case *string:
		*into = string(text)
	default:
		return fmt.Errorf("semel.Bytes: a %T is neither *[]byte nor *string", into)
	}
	return nil
}

// Equal: to bytes, nil is empty.
func (bytesCodec) Equal(value, decoded any) bool {
	one, _ := bytesCodec{}.Encode(value)
	other, _ := bytesCodec{}.Encode(decoded)
	return bytes.Equal(one, other)
}
