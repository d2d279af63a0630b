package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// A request to a znode. Value is the data of a create, a set or a replace; Expected the version that a set, a delete or
// a replace demands. A replace is a delete and a create in one multi.
type request struct {
	op       string
	value    int64
	expected *int32
}

func (r request) takesValue() bool { return r.op == "create" || r.op == "set" || r.op == "replace" }

// What came of a request. An unknown answer is that of a client that lost its connection: the request may have been
// carried out, and may still be.
type answer struct {
	isKnown bool
	// "ok", or why nothing was done.
	code    string
	value   *int64
	version *int32
}

// A znode as its clients see it.
type znode struct {
	exists  bool
	value   int64
	version int32
}

// register is a znode that carries out one request after the other. A history has one for each path.
var register = porcupine.Model{
	Init: func() interface{} { return znode{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		return step(state.(znode), input.(request), output.(answer))
	},
	DescribeOperation: func(input, output interface{}) string {
		return fmt.Sprintf("%v -> %v", input.(request), output.(answer))
	},
	DescribeState: func(state interface{}) string { return state.(znode).String() },
}

// step says whether the znode could have given this answer, and what it is afterwards.
func step(before znode, request request, told answer) (bool, znode) {
	truth, after := carryOut(before, request)
	if !told.isKnown {
		return true, after
	}
	fits := told.code == truth.code &&
		(told.value == nil || truth.value != nil && *told.value == *truth.value) &&
		(told.version == nil || truth.version != nil && *told.version == *truth.version)
	return fits, after
}

// carryOut is the znode's side: the answer it gives, and what it is afterwards.
func carryOut(before znode, request request) (answer, znode) {
	refused := func(code string) (answer, znode) { return answer{isKnown: true, code: code}, before }
	done := func(after znode) (answer, znode) {
		return answer{isKnown: true, code: "ok", value: &after.value, version: &after.version}, after
	}
	switch {
	case request.op == "create" && before.exists:
		return refused("NodeExists")
	case request.op == "create":
		return done(znode{exists: true, value: request.value})
	case !before.exists:
		return refused("NoNode")
	case request.expected != nil && *request.expected != before.version:
		return refused("BadVersion")
	case request.op == "set":
		return done(znode{exists: true, value: request.value, version: before.version + 1})
	case request.op == "replace":
		return done(znode{exists: true, value: request.value})
	case request.op == "delete":
		return done(znode{})
	case request.op == "read":
		return done(before)
	}
	panic("an operation of no kind: " + request.op)
}

func (z znode) String() string {
	if !z.exists {
		return "no znode"
	}
	return fmt.Sprintf("%d at version %d", z.value, z.version)
}

func (r request) String() string {
	text := r.op
	if r.takesValue() {
		text += fmt.Sprintf(" %d", r.value)
	}
	if r.expected != nil {
		text += fmt.Sprintf(" if version %d", *r.expected)
	}
	return text
}

func (a answer) String() string {
	switch {
	case !a.isKnown:
		return "unknown"
	case a.value != nil && a.version != nil:
		return fmt.Sprintf("%d at version %d", *a.value, *a.version)
	case a.version != nil:
		return fmt.Sprintf("%s, version %d", a.code, *a.version)
	}
	return a.code
}
