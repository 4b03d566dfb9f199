package semel

import (
	"encoding/json"
	"fmt"
)

// Codec turns results into bytes and back.
type Codec interface {
	Encode(value any) ([]byte, error)
	Decode(text []byte, into any) error // into is a pointer
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

// notKept is stored where a result could not be: a byte that is no JSON text. All clients of Semel
// use it.
var notKept = []byte{0}

// isAbsent says whether text is what work leaves that has no result.
func isAbsent(text []byte) bool { return len(text) == 0 || len(text) == 1 && text[0] == 0 }
