package main

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A multi is carried out as a whole, or refused as a whole, but for one of reads, each of which is refused by itself. A request to one
// znode is a multi with one part.
type multi []partOf

type partOf struct {
	// Number of the znode among those of the history.
	znode   int
	request request
}

// What came of a multi.
type outcome struct {
	isKnown bool
	// The part that was refused, whose answer is the only one then.
	refused int
	parts   []answer
}

// registers returns the model of some znodes that carry out one multi after the other.
func registers(keys []string) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return make([]znode, len(keys)) },
		Step: func(state, input, output interface{}) (bool, interface{}) {
			return stepAll(state.([]znode), input.(multi), output.(outcome))
		},
		Equal: func(one, other interface{}) bool {
			ones, others := one.([]znode), other.([]znode)
			for number := range ones {
				if ones[number] != others[number] {
					return false
				}
			}
			return true
		},
		DescribeOperation: func(input, output interface{}) string {
			return describe(keys, input.(multi), output.(outcome))
		},
		DescribeState: func(state interface{}) string {
			var texts []string
			for number, znode := range state.([]znode) {
				texts = append(texts, fmt.Sprintf("%s: %v", keys[number], znode))
			}
			return strings.Join(texts, "\n")
		},
	}
}

// stepAll says whether the znodes could have given this answer, and what they are afterwards.
func stepAll(before []znode, multi multi, told outcome) (bool, []znode) {
	truth, after := carryOutAll(before, multi)
	return !told.isKnown || told.fits(truth), after
}

// carryOutAll is the znodes' side: the answer they give, and what they are afterwards.
func carryOutAll(before []znode, multi multi) (outcome, []znode) {
	truth, after := outcome{isKnown: true}, append([]znode{}, before...)
	for number, part := range multi {
		answered, znode := carryOut(after[part.znode], part.request)
		if answered.code != "ok" && part.request.op != "read" {
			return outcome{isKnown: true, refused: number, parts: []answer{answered}}, before
		}
		after[part.znode] = znode
		truth.parts = append(truth.parts, answered)
	}
	return truth, after
}

// fits says whether an answer is the true one, as far as it says anything.
func (o outcome) fits(truth outcome) bool {
	if o.refused != truth.refused || len(o.parts) != len(truth.parts) {
		return false
	}
	for number, part := range o.parts {
		if !part.fits(truth.parts[number]) {
			return false
		}
	}
	return true
}

func describe(keys []string, multi multi, told outcome) string {
	var asked, answers []string
	for _, part := range multi {
		asked = append(asked, fmt.Sprintf("%s: %v", keys[part.znode], part.request))
	}
	for _, answer := range told.parts {
		answers = append(answers, answer.String())
	}
	switch {
	case !told.isKnown:
		answers = []string{"unknown"}
	case told.parts[0].code != "ok" && len(multi) > 1:
		answers[0] += fmt.Sprintf(" at part %d", told.refused)
	}
	return strings.Join(asked, ", ") + " -> " + strings.Join(answers, ", ")
}
