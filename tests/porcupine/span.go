package main

import "math"

// The span of a request is the time in which it can have been carried out. At first that is the time between its question and its answer. Clients of the tests
// write each value once, so what others have seen narrows it down, and the search need not try each place in it: a write that was under way for
// seconds, or has no answer, would be tried in front of each one of thousands of requests.
type span struct {
	start, end int64
}

// written is a value of a znode.
type written struct {
	key   string
	value int64
}

// sight is an answer that says what the value of a znode was while it was carried out, or from then on.
type sight struct {
	span
	isValue bool
	value   int64
}

// spans returns the spans of all requests.
//
// A write comes before the end of each read that shows its value. And it comes behind everything that shows, or makes, another value of the znode, or none, and has ended before
// a read begins that shows this one: the value would have been gone by then, and is not written again.
func spans(lines []line) []span {
	writers := map[written]int{}
	sights := map[string][]sight{}
	firstEnd, lastStart := map[written]int64{}, map[written]int64{}
	for _, line := range lines {
		for number, part := range line.Parts {
			if part.Value != nil {
				writers[written{part.Key, *part.Value}]++
			}
			seen, ok := line.sees(number)
			if !ok {
				continue
			}
			sights[part.Key] = append(sights[part.Key], seen)
			if part.Op == "read" && seen.isValue {
				of := written{part.Key, seen.value}
				if end, known := firstEnd[of]; !known || seen.end < end {
					firstEnd[of] = seen.end
				}
				if start, known := lastStart[of]; !known || seen.start > start {
					lastStart[of] = seen.start
				}
			}
		}
	}
	all := make([]span, len(lines))
	for number, line := range lines {
		all[number] = line.span()
		for _, part := range line.Parts {
			if part.Value == nil || writers[written{part.Key, *part.Value}] != 1 {
				continue
			}
			of := written{part.Key, *part.Value}
			end, isShown := firstEnd[of]
			if !isShown {
				continue
			}
			start := all[number].start
			for _, other := range sights[part.Key] {
				is := other.isValue && other.value == of.value
				if !is && other.end < lastStart[of] && other.start > start {
					start = other.start
				}
			}
			all[number].narrow(start, end)
		}
	}
	return all
}

// narrow takes what lies outside away. Nothing is left where what was seen contradicts itself: then the span stays as it is, and the search finds that.
func (s *span) narrow(start, end int64) {
	narrower := *s
	if start > narrower.start {
		narrower.start = start
	}
	if end < narrower.end {
		narrower.end = end
	}
	if narrower.start <= narrower.end {
		*s = narrower
	}
}

// span is the time between question and answer. A request without an answer may be carried out at any time, or at the end, where that is the same as never.
func (l line) span() span {
	if l.Answer == nil {
		return span{l.Start, math.MaxInt64}
	}
	return span{l.Start, l.Answer.End}
}

// sees returns what the answer to a part tells of the value of its znode; false if it tells nothing.
func (l line) sees(number int) (sight, bool) {
	if l.Answer == nil {
		return sight{}, false
	}
	part, seen := l.Parts[number], sight{span: l.span()}
	if l.Answer.Code != "ok" {
		return seen, l.Answer.Code == "NoNode" && l.Answer.Refused == number && part.Op != "create"
	}
	told := l.Answer.Parts[number]
	switch {
	case told.PartCode == "NoNode" && part.Op == "read", part.Op == "delete":
		return seen, true
	case part.Op == "read" && told.Value != nil:
		seen.isValue, seen.value = true, *told.Value
		return seen, true
	case part.Value != nil:
		seen.isValue, seen.value = true, *part.Value
		return seen, true
	}
	return seen, false
}
