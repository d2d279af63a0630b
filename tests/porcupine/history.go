package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/anishathalye/porcupine"
)

// line is one request of a history. Times are nanoseconds of one clock.
type line struct {
	Client int `json:"client"`
	// The part of a request to one znode.
	part
	// The parts of a multi, each about a znode of its own.
	Parts []part `json:"parts"`
	Start int64  `json:"start"`
	// Nothing if the client has never learnt what came of it.
	Answer *answerLine `json:"answer"`
}

// part is what a request asks of one znode.
type part struct {
	Key      string `json:"key"`
	Op       string `json:"op"`
	Value    *int64 `json:"value"`
	Expected *int32 `json:"expected"`
}

type answerLine struct {
	End  int64  `json:"end"`
	Code string `json:"code"`
	// The part of a multi that was refused.
	Refused int `json:"refused"`
	// Of a request to one znode.
	told
	// Of the parts of a multi.
	Parts []told `json:"parts"`
}

type told struct {
	// Of a read among others, each of which may be refused by itself; that of the whole answer if it is empty.
	PartCode string `json:"code"`
	Value    *int64 `json:"value"`
	Version  *int32 `json:"version"`
}

// history is what happened to one znode, or to several that multis have to do with together.
type history struct {
	keys       []string
	operations []porcupine.Operation
	unknown    int
}

// read takes a history apart: requests concern each other only if they are about the same znode, or if multis connect their znodes.
func read(input io.Reader) ([]history, error) {
	var lines []line
	decoder := json.NewDecoder(input)
	for number := 1; ; number++ {
		var line line
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("request %d: %w", number, err)
		}
		if len(line.Parts) == 0 {
			line.Parts = []part{line.part}
			if line.Answer != nil {
				line.Answer.Parts = []told{line.Answer.told}
			}
		} else if line.part != (part{}) {
			return nil, fmt.Errorf("request %d: parts of a multi beside one of its own", number)
		}
		if err := line.check(); err != nil {
			return nil, fmt.Errorf("request %d: %w", number, err)
		}
		lines = append(lines, line)
	}
	all := connected(lines)
	histories := map[string]*history{}
	for number := range all {
		for _, key := range all[number].keys {
			histories[key] = &all[number]
		}
	}
	spans := spans(lines)
	for number, line := range lines {
		histories[line.Parts[0].Key].add(line, spans[number])
	}
	return all, nil
}

// connected returns a history, without requests, for each set of znodes that multis connect.
func connected(lines []line) []history {
	sets := map[string][]string{}
	for _, line := range lines {
		first := line.Parts[0].Key
		if sets[first] == nil {
			sets[first] = []string{first}
		}
		for _, part := range line.Parts[1:] {
			if sets[part.Key] == nil {
				sets[part.Key] = []string{part.Key}
			}
			if sets[part.Key][0] == sets[first][0] {
				continue
			}
			both := append(append([]string{}, sets[first]...), sets[part.Key]...)
			for _, key := range both {
				sets[key] = both
			}
		}
	}
	var all []history
	for key, set := range sets {
		if set[0] == key {
			keys := append([]string{}, set...)
			sort.Strings(keys)
			all = append(all, history{keys: keys})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].keys[0] < all[j].keys[0] })
	return all
}

func (l line) check() error {
	keys := map[string]bool{}
	for _, part := range l.Parts {
		if err := part.check(); err != nil {
			return err
		}
		if keys[part.Key] {
			return fmt.Errorf("two parts about %s", part.Key)
		}
		keys[part.Key] = true
	}
	switch {
	case l.Answer == nil:
		return nil
	case l.Answer.End < l.Start:
		return fmt.Errorf("answered at %d before it was asked at %d", l.Answer.End, l.Start)
	case l.Answer.Code == "ok" && len(l.Answer.Parts) != len(l.Parts):
		return fmt.Errorf("%d answers to %d parts", len(l.Answer.Parts), len(l.Parts))
	case l.Answer.Refused < 0 || l.Answer.Refused >= len(l.Parts):
		return fmt.Errorf("part %d of %d was refused", l.Answer.Refused, len(l.Parts))
	}
	return nil
}

func (p part) check() error {
	takesValue := request{op: p.Op}.takesValue()
	switch {
	case !takesValue && p.Op != "delete" && p.Op != "read" && p.Op != "check":
		return fmt.Errorf("%q is no operation", p.Op)
	case takesValue != (p.Value != nil):
		return fmt.Errorf("a value with a %s, or none where one belongs", p.Op)
	}
	return nil
}

func (h *history) add(l line, in span) {
	multi, changes := make(multi, len(l.Parts)), false
	for number, part := range l.Parts {
		request := request{op: part.Op, expected: part.Expected}
		if part.Value != nil {
			request.value = *part.Value
		}
		changes = changes || request.changes()
		multi[number] = partOf{znode: sort.SearchStrings(h.keys, part.Key), request: request}
	}
	if l.Answer == nil && !changes {
		// What it would have told is not known.
		return
	}
	operation := porcupine.Operation{
		ClientId: l.Client, Input: multi, Call: in.start, Output: outcome{}, Return: in.end,
	}
	if l.Answer == nil {
		h.unknown++
	} else {
		operation.Output = l.Answer.outcome()
	}
	h.operations = append(h.operations, operation)
}

func (a answerLine) outcome() outcome {
	outcome := outcome{isKnown: true, refused: a.Refused}
	if a.Code != "ok" {
		outcome.parts = []answer{{isKnown: true, code: a.Code}}
		return outcome
	}
	for _, told := range a.Parts {
		code := told.PartCode
		if code == "" {
			code = a.Code
		}
		outcome.parts = append(outcome.parts, answer{true, code, told.Value, told.Version})
	}
	return outcome
}
