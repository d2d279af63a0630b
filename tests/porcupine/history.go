package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/anishathalye/porcupine"
)

// line is one request of a history. Times are nanoseconds of one clock.
type line struct {
	Client   int    `json:"client"`
	Key      string `json:"key"`
	Op       string `json:"op"`
	Value    *int64 `json:"value"`
	Expected *int32 `json:"expected"`
	Start    int64  `json:"start"`
	// Nothing if the client has never learnt what came of it.
	Answer *struct {
		End     int64  `json:"end"`
		Code    string `json:"code"`
		Value   *int64 `json:"value"`
		Version *int32 `json:"version"`
	} `json:"answer"`
}

// history is what happened to one znode.
type history struct {
	key        string
	operations []porcupine.Operation
	unknown    int
}

// read takes a history apart, a part for each znode: requests to different znodes do not concern each other.
func read(input io.Reader) ([]history, error) {
	parts := map[string]*history{}
	decoder := json.NewDecoder(input)
	for number := 1; ; number++ {
		var line line
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("request %d: %w", number, err)
		}
		if err := line.check(); err != nil {
			return nil, fmt.Errorf("request %d: %w", number, err)
		}
		part := parts[line.Key]
		if part == nil {
			part = &history{key: line.Key}
			parts[line.Key] = part
		}
		part.add(line)
	}
	var all []history
	for _, part := range parts {
		all = append(all, *part)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].key < all[j].key })
	return all, nil
}

func (l line) check() error {
	takesValue := request{op: l.Op}.takesValue()
	switch {
	case !takesValue && l.Op != "delete" && l.Op != "read":
		return fmt.Errorf("%q is no operation", l.Op)
	case takesValue != (l.Value != nil):
		return fmt.Errorf("a value with a %s, or none where one belongs", l.Op)
	case l.Answer != nil && l.Answer.End < l.Start:
		return fmt.Errorf("answered at %d before it was asked at %d", l.Answer.End, l.Start)
	}
	return nil
}

func (h *history) add(l line) {
	if l.Answer == nil && l.Op == "read" {
		// It changes nothing, and what it would have told is not known.
		return
	}
	request := request{op: l.Op, expected: l.Expected}
	if l.Value != nil {
		request.value = *l.Value
	}
	operation := porcupine.Operation{
		ClientId: l.Client, Input: request, Call: l.Start, Output: answer{}, Return: math.MaxInt64,
	}
	if l.Answer == nil {
		// It may be carried out at any time, or at the end, where that is the same as never.
		h.unknown++
	} else {
		operation.Return = l.Answer.End
		operation.Output = answer{true, l.Answer.Code, l.Answer.Value, l.Answer.Version}
	}
	h.operations = append(h.operations, operation)
}
