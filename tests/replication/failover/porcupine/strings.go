package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/anishathalye/porcupine"
)

// What a client has sent, and when.
type request struct {
	words  []interface{}
	called int64
	ended  int64 // of a reply that was lost: the end of time
}

func (r request) word(at int) string {
	text, _ := r.words[at].(string)
	return text
}

func (r request) number(at int) int64 {
	value, err := r.words[at].(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return value
}

// In place of a reply that nobody has seen.
type lost struct{}

// soonest is when something may be over at the earliest that a request of this time gave so many
// milliseconds to: clocks differ by a thousandth, and times are rounded.
func (r request) soonest(milliseconds int64) int64 {
	return r.called + milliseconds*998_000 - 5_000_000
}

// --- a string -----------------------------------------------------------------------------------

type value struct {
	there bool
	text  string
	mayGo bool
	from  int64
}

func show(v value) interface{} {
	if !v.there {
		return nil
	}
	return v.text
}

func stringStep(state, input, output interface{}) []interface{} {
	asked, now := input.(request), state.(value)
	possible := []value{now}
	if now.there && now.mayGo && asked.ended >= now.from {
		possible = append(possible, value{})
	}
	var next []interface{}
	for _, is := range possible {
		answer, then := answerString(is, asked)
		if same(output, answer) {
			next = append(next, then)
		}
	}
	return next
}

func answerString(is value, asked request) (interface{}, value) {
	switch asked.word(0) {
	case "set":
		return "OK", value{there: true, text: asked.word(1)}
	case "get":
		return show(is), is
	case "getdel":
		return show(is), value{}
	case "del":
		return count(is.there), value{}
	case "setnxget":
		if is.there {
			return is.text, is
		}
		made := value{there: true, text: asked.word(1)}
		if len(asked.words) > 2 {
			made.mayGo, made.from = true, asked.soonest(asked.number(2))
		}
		return nil, made
	}
	panic(fmt.Sprint("a string is not asked ", asked.words))
}

func count(is bool) json.Number {
	if is {
		return "1"
	}
	return "0"
}

func same(output, answer interface{}) bool {
	if _, isLost := output.(lost); isLost {
		return true
	}
	return output == answer
}

// --- a counter ----------------------------------------------------------------------------------

func counterStep(state, input, output interface{}) []interface{} {
	is := state.(int64)
	var answer interface{}
	then := is
	switch asked := input.(request); asked.word(0) {
	case "incr":
		then = is + 1
		answer = json.Number(strconv.FormatInt(then, 10))
	case "get":
		if is != 0 {
			answer = strconv.FormatInt(is, 10)
		}
	case "del":
		then = 0
		answer = count(is != 0)
	default:
		panic(fmt.Sprint("a counter is not asked ", asked.words))
	}
	if !same(output, answer) {
		return nil
	}
	return []interface{}{then}
}

// ------------------------------------------------------------------------------------------------

func modelOf(kind string) (porcupine.Model, bool) {
	var begin interface{}
	var step func(state, input, output interface{}) []interface{}
	switch kind {
	case "text", "ending":
		begin, step = value{}, stringStep
	case "counter":
		begin, step = int64(0), counterStep
	case "claim", "lease":
		begin, step = work{}, func(s, i, o interface{}) []interface{} { return claimStep(false, s, i, o) }
	case "token":
		begin, step = work{}, func(s, i, o interface{}) []interface{} { return claimStep(true, s, i, o) }
	default:
		return porcupine.Model{}, false
	}
	model := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{begin} },
		Step: step,
	}
	return model.ToModel(), true
}
