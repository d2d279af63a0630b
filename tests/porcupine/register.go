package main

import "fmt"

// A request to a znode. Value is the data of a create, a set or a replace; Expected the version that a set, a delete or
// a replace demands. A replace is a delete and a create in one multi; a check demands a version, and changes nothing.
type request struct {
	op       string
	value    int64
	expected *int32
}

func (r request) takesValue() bool { return r.op == "create" || r.op == "set" || r.op == "replace" }

func (r request) changes() bool { return r.op != "read" && r.op != "check" }

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

// fits says whether an answer is the true one, as far as it says anything.
func (a answer) fits(truth answer) bool {
	return a.code == truth.code &&
		(a.value == nil || truth.value != nil && *a.value == *truth.value) &&
		(a.version == nil || truth.version != nil && *a.version == *truth.version)
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
	case !request.changes():
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
