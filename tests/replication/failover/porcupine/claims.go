package main

import (
	"encoding/json"
	"fmt"
)

type phase int

const (
	free     phase = iota // nothing is known about the key, or it was forgotten
	ready                 // issued: it can be claimed
	running               // somebody has it
	finished              // with a result
	refused               // with a failure that is kept
)

var phases = map[phase]string{
	free: "absent", ready: "issued", running: "held", finished: "done", refused: "failed"}

// One piece of work.
type work struct {
	phase phase
	epoch int64 // 0 while running: of a grant whose reply nobody has seen
	spent int64 // epochs up to this one were granted before
	owner string
	tries int64
	text  string
	from  int64 // when its lease may be over at the earliest
}

// A branch is something that may happen: what is answered, and what is afterwards. Of an answer
// with `grants` the epoch is not foretold: it must be that of the work, or a new one.
type branch struct {
	answer map[string]interface{}
	grants bool
	then   work
}

func number(of int64) json.Number { return json.Number(fmt.Sprint(of)) }

func outcome(word string) map[string]interface{} { return map[string]interface{}{"outcome": word} }

func claimStep(issued bool, state, input, output interface{}) []interface{} {
	is, asked := state.(work), input.(request)
	var next []interface{}
	for _, way := range ways(issued, is, asked) {
		if then, fits := way.matches(output); fits {
			next = append(next, then)
		}
	}
	return next
}

func (way branch) matches(output interface{}) (work, bool) {
	if _, isLost := output.(lost); isLost {
		return way.then, true
	}
	if way.answer == nil { // a single number
		return way.then, false
	}
	if want, isNumber := way.answer["number"]; isNumber {
		return way.then, output == want
	}
	seen, isMap := output.(map[string]interface{})
	if !isMap {
		return way.then, false
	}
	fields := len(way.answer)
	if way.grants {
		fields++
	}
	if len(seen) != fields {
		return way.then, false
	}
	for name, want := range way.answer {
		if seen[name] != want {
			return way.then, false
		}
	}
	then := way.then
	if !way.grants {
		return then, true
	}
	epoch, err := seen["epoch"].(json.Number).Int64()
	if err != nil {
		return then, false
	}
	if then.epoch != 0 {
		return then, epoch == then.epoch
	}
	if epoch <= then.spent {
		return then, false
	}
	then.epoch, then.spent = epoch, epoch
	return then, true
}

func ways(issued bool, is work, asked request) []branch {
	switch asked.word(0) {
	case "claim":
		return claimed(issued, is, asked)
	case "issue":
		if is.phase != free {
			return []branch{{answer: map[string]interface{}{"number": number(0)}, then: is}}
		}
		return []branch{{answer: map[string]interface{}{"number": number(1)},
			then: work{phase: ready, spent: is.spent}}}
	case "forget":
		claims := is.phase == running || is.phase == finished || is.phase == refused
		return []branch{{answer: map[string]interface{}{"number": count(claims)},
			then: work{spent: is.spent}}}
	case "getclaim":
		return looked(is)
	}
	return owned(issued, is, asked)
}

func claimed(issued bool, is work, asked request) []branch {
	switch is.phase {
	case free:
		if issued {
			return []branch{{answer: outcome("unknown"), then: is}}
		}
		return []branch{granted(is, asked, 0)}
	case ready:
		return []branch{granted(is, asked, 0)}
	case finished:
		answer := outcome("replay")
		answer["attempt"], answer["result"] = number(is.tries), is.text
		answer["result_expired"] = number(0)
		return []branch{{answer: answer, then: is}}
	case refused:
		answer := outcome("kept_failure")
		answer["attempt"], answer["failure"], answer["poison"] = number(is.tries), is.text, number(0)
		return []branch{{answer: answer, then: is}}
	}
	var found []branch
	if asked.ended >= is.from {
		found = append(found, granted(is, asked, 1))
	}
	if asked.word(1) == is.owner {
		answer := outcome("regranted")
		answer["attempt"] = number(is.tries)
		return append(found, branch{answer: answer, grants: true, then: is})
	}
	answer := outcome("in_flight")
	answer["attempt"], answer["owner"] = number(is.tries), is.owner
	return append(found, branch{answer: answer, then: is})
}

func granted(is work, asked request, takeover int64) branch {
	answer := outcome("granted")
	answer["attempt"], answer["takeover"] = number(is.tries+1), number(takeover)
	return branch{answer: answer, grants: true, then: work{
		phase: running, spent: is.spent, owner: asked.word(1), tries: is.tries + 1,
		from: asked.soonest(asked.number(2))}}
}

func looked(is work) []branch {
	answer := map[string]interface{}{"state": phases[is.phase]}
	switch is.phase {
	case free:
		return []branch{{answer: answer, then: is}}
	case running:
		answer["owner"] = is.owner
	case finished:
		answer["result"] = is.text
	case refused:
		answer["failure"], answer["poison"] = is.text, number(0)
	}
	answer["attempts"] = number(is.tries)
	return []branch{{answer: answer, grants: is.phase != ready, then: is}}
}

// A call of somebody who was granted it once.
func owned(issued bool, is work, asked request) []branch {
	verb, epoch := asked.word(0), asked.number(1)
	if is.phase == free || is.phase == ready {
		return []branch{{answer: outcome("unknown"), then: is}}
	}
	if epoch != is.epoch {
		return []branch{{answer: toOthers(verb, epoch, is), then: is}}
	}
	if is.phase != running {
		return []branch{{answer: toFinished(verb, is, asked), then: is}}
	}
	inTime := outcome("ok")
	inTime["late"] = number(0)
	found := []branch{{answer: inTime, then: after(issued, is, asked)}}
	if asked.ended < is.from {
		return found
	}
	if verb == "renew" {
		return append(found, branch{answer: outcome("refused"), then: is})
	}
	late := outcome("ok")
	late["late"] = number(1)
	return append(found, branch{answer: late, then: after(issued, is, asked)})
}

func toOthers(verb string, epoch int64, is work) map[string]interface{} {
	if verb == "release" {
		return outcome("not_owner")
	}
	if is.epoch != 0 && epoch > is.epoch {
		return outcome("unknown")
	}
	answer := outcome("stale_owner")
	if verb == "complete" && is.phase == finished {
		answer["result"] = is.text
	}
	return answer
}

func toFinished(verb string, is work, asked request) map[string]interface{} {
	switch verb {
	case "release":
		return outcome("not_owner")
	case "complete", "fail":
		ended := map[string]phase{"complete": finished, "fail": refused}[verb]
		if ended == is.phase && asked.word(2) == is.text {
			answer := outcome("ok")
			answer["late"] = number(0)
			return answer
		}
	}
	return outcome("conflict")
}

func after(issued bool, is work, asked request) work {
	then := is
	switch verb := asked.word(0); {
	case verb == "renew":
		then.from = asked.soonest(asked.number(2))
		return then
	case verb == "complete":
		then.phase, then.text = finished, asked.word(2)
	case verb == "fail" && asked.word(3) == "keep":
		then.phase, then.text = refused, asked.word(2)
	case !issued:
		return work{spent: is.spent}
	default: // given back, as if it had never been claimed, or as once more tried
		then = work{phase: ready, spent: is.spent, tries: is.tries}
		if verb == "release" {
			then.tries--
		}
		return then
	}
	then.owner, then.from = "", 0
	return then
}
