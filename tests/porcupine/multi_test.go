package main

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// of is a request to one znode, or a part of a multi; fields are JSON, without braces.
func of(key, fields string) string { return fmt.Sprintf(`"key":"%s",%s`, key, fields) }

// both is a multi of two parts.
func both(one, other string) string { return fmt.Sprintf(`"parts":[{%s},{%s}]`, one, other) }

// toldOf is an answered request of a client from start to end.
func toldOf(client, start, end int, request, answer string) string {
	return fmt.Sprintf(`{"client":%d,"start":%d,%s,"answer":{"end":%d,%s}}`, client, start, request, end, answer)
}

func untold(client, start int, request string) string {
	return fmt.Sprintf(`{"client":%d,"start":%d,%s}`, client, start, request)
}

const (
	setBoth   = `"code":"ok","parts":[{"version":1},{"version":1}]`
	checked   = `"code":"ok","parts":[{},{}]`
	badFirst  = `"code":"BadVersion","refused":0`
	badSecond = `"code":"BadVersion","refused":1`
)

func TestVerdictsOnMultis(t *testing.T) {
	creates := []string{
		toldOf(0, 0, 1, of("/a", `"op":"create","value":1`), created), toldOf(0, 0, 1, of("/b", `"op":"create","value":1`), created),
	}
	set := both(of("/a", `"op":"set","value":2,"expected":0`), of("/b", `"op":"set","value":2,"expected":0`))
	check := func(a, b int) string {
		version := `"op":"check","expected":%d`
		return both(of("/a", fmt.Sprintf(version, a)), of("/b", fmt.Sprintf(version, b)))
	}
	readA, readB := of("/a", theRead), of("/b", theRead)
	readBoth := func(client, start, end int, one, other string) string {
		return toldOf(client, start, end, both(readA, readB), fmt.Sprintf(`"code":"ok","parts":[{%s},{%s}]`, one, other))
	}
	done := toldOf(0, 2, 20, set, setBoth)
	cases := []struct {
		name   string
		isGood bool
		lines  []string
	}{
		{"a multi that is seen whole", true, []string{done, toldOf(1, 21, 22, readA, read2), toldOf(1, 23, 24, readB, read2)}},
		{"a multi under way that is seen whole", true, []string{done, toldOf(1, 3, 4, readA, read2), toldOf(1, 5, 6, readB, read2)}},
		{"a multi under way that is seen between two reads", true, []string{done, toldOf(1, 3, 4, readA, read1), toldOf(1, 5, 6, readB, read2)}},
		{"a multi under way that is seen in half", false, []string{done, toldOf(1, 3, 4, readA, read2), toldOf(1, 5, 6, readB, read1)}},
		{"the same by two clients", false, []string{done, toldOf(1, 3, 4, readB, read2), toldOf(2, 5, 6, readA, read1)}},
		{"half a multi that is lost", false, []string{done, toldOf(1, 21, 22, readA, read2), toldOf(1, 23, 24, readB, read1)}},
		{"a lost multi", false, []string{done, toldOf(1, 21, 22, readA, read1), toldOf(1, 23, 24, readB, read1)}},
		{"half an unanswered multi", false, []string{
			untold(0, 2, set), toldOf(1, 21, 22, readA, read2), toldOf(1, 23, 24, readB, read1),
		}},
		{"an unanswered multi that was carried out", true, []string{
			untold(0, 2, set), toldOf(1, 21, 22, readA, read2), toldOf(1, 23, 24, readB, read2),
		}},
		{"an unanswered multi that was not", true, []string{
			untold(0, 2, set), toldOf(1, 21, 22, readA, read1), toldOf(1, 23, 24, readB, read1),
		}},
		{"a check of both that sees all of a multi", true, []string{done, toldOf(1, 3, 4, check(1, 1), checked)}},
		{"a check of both that sees half of a multi", false, []string{done, toldOf(1, 3, 4, check(1, 0), checked)}},
		{"a stale check of both", false, []string{done, toldOf(1, 21, 22, check(0, 0), checked)}},
		{"a check of both that was refused for what is so no more", true, []string{done, toldOf(1, 21, 22, check(0, 0), badFirst)}},
		{"a refusal without a reason", false, []string{toldOf(1, 2, 3, check(0, 0), badSecond)}},
		{"a refusal because of another part", false, []string{done, toldOf(1, 21, 22, check(0, 0), badSecond)}},
		{"a refused multi of which half was carried out", false, []string{
			toldOf(2, 2, 3, of("/b", `"op":"set","value":2`), `"code":"ok","version":1`),
			toldOf(0, 4, 5, set, badSecond), toldOf(1, 6, 7, readA, read2),
		}},
		{"a read of both that sees all of a multi", true, []string{done, readBoth(1, 3, 4, read2, read2)}},
		{"a read of both that sees half of a multi", false, []string{done, readBoth(1, 3, 4, read2, read1)}},
		{"a stale read of both", false, []string{done, readBoth(1, 21, 22, read1, read1)}},
		{"a read of both of which one is gone", true, []string{toldOf(0, 2, 3, of("/a", `"op":"delete"`), created), readBoth(1, 4, 5, gone, read1)}},
		{"a read of both of which one should be gone", false, []string{toldOf(0, 2, 3, of("/a", `"op":"delete"`), created), readBoth(1, 4, 5, read1, read1)}},
		{"a read of both of which one is not gone", false, []string{readBoth(1, 4, 5, gone, read1)}},
		{"a read of both that sees the second of two writes alone", false, []string{
			toldOf(0, 2, 3, of("/a", theSet), `"code":"ok","version":1`), toldOf(2, 4, 5, of("/b", theSet), `"code":"ok","version":1`),
			readBoth(1, 1, 9, read1, read2),
		}},
		{"two multis that both had the versions they demanded", false, []string{done, toldOf(1, 2, 20, set, setBoth)}},
		{"a write between the parts of a multi", false, []string{
			toldOf(1, 3, 4, of("/a", `"op":"set","value":3,"expected":0`), `"code":"ok","version":1`), done,
		}},
	}
	for _, test := range cases {
		// Without a multi in a history its znodes do not concern each other.
		lines := append(append([]string{}, creates...), test.lines...)
		if isLinearizable(t, append(lines, untold(9, 0, check(9, 9)))...) != test.isGood {
			t.Errorf("%s: the verdict is wrong", test.name)
		}
	}
}

func TestOnlyZnodesOfMultisAreJudgedTogether(t *testing.T) {
	reads := func(key string) string { return untold(0, 0, of(key, theRead)) }
	pair := func(one, other string) string { return untold(0, 0, both(of(one, theSet), of(other, theSet))) }
	text := strings.Join([]string{reads("/e"), pair("/d", "/a"), reads("/b"), pair("/c", "/b"), pair("/f", "/d")}, "\n")
	parts, err := read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, part := range parts {
		sets = append(sets, strings.Join(part.keys, ""))
	}
	if found := strings.Join(sets, " "); found != "/a/d/f /b/c /e" {
		t.Fatalf("judged together: %s", found)
	}
}

// Clients that take turns at two true znodes, so that their answers overlap. With a multi of which one reader sees half, it must be refused,
// though each znode by itself could have answered so.
func TestATornMultiInALongHistoryIsFound(t *testing.T) {
	chance := rand.New(rand.NewSource(1))
	keys, state := []string{"/a", "/b"}, make([]znode, 2)
	var lines []string
	for number := 1; number <= 5000; number++ {
		value := fmt.Sprintf(`"value":%d`, number)
		single := func(znode int, fields string) (multi, string) {
			request := request{op: strings.Split(fields, `"`)[3], value: int64(number)}
			return multi{{znode, request}}, of(keys[znode], fields)
		}
		znode := chance.Intn(2)
		asked, text := single(znode, []string{
			`"op":"create",` + value, `"op":"set",` + value, `"op":"delete"`, theRead, theRead,
		}[chance.Intn(5)])
		if chance.Intn(3) == 0 {
			one, oneText := single(0, `"op":"set",`+value)
			other, otherText := single(1, []string{`"op":"set",` + value, `"op":"check"`}[chance.Intn(2)])
			asked, text = append(one, other...), both(oneText, otherText)
		}
		var truth outcome
		truth, state = carryOutAll(state, asked)
		moment := 10 * number
		lines = append(lines, toldOf(number%7, moment-chance.Intn(40), moment+chance.Intn(40), text, spelled(truth)))
	}
	if !isLinearizable(t, lines...) {
		t.Fatal("a true history is refused")
	}
	// Behind all others: both exist, and are set while one client reads both.
	end := 10*len(lines) + 100
	for znode, key := range keys {
		if !state[znode].exists {
			lines = append(lines, toldOf(0, end, end+1, of(key, `"op":"create","value":1`), created))
			state[znode].version = 0
		}
	}
	a, b := state[0].version, state[1].version
	version := `"code":"ok","version":%d`
	readers := []string{
		toldOf(1, end+11, end+12, of("/a", theRead), fmt.Sprintf(version, a+1)), toldOf(1, end+13, end+14, of("/b", theRead), fmt.Sprintf(version, b)),
	}
	whole := toldOf(0, end+10, end+20, both(of("/a", theSet), of("/b", theSet)), fmt.Sprintf(`"code":"ok","parts":[{"version":%d},{"version":%d}]`, a+1, b+1))
	halves := []string{
		toldOf(0, end+10, end+20, of("/a", theSet), fmt.Sprintf(version, a+1)), toldOf(2, end+10, end+20, of("/b", theSet), fmt.Sprintf(version, b+1)),
	}
	if isLinearizable(t, append(append(append([]string{}, lines...), whole), readers...)...) {
		t.Fatal("a multi that is seen in half is not noticed")
	}
	if !isLinearizable(t, append(append(append([]string{}, lines...), halves...), readers...)...) {
		t.Fatal("two writes that are no multi are taken for one")
	}
}

// spelled is an outcome as it stands in a history.
func spelled(truth outcome) string {
	if code := truth.parts[0].code; code != "ok" {
		return fmt.Sprintf(`"code":"%s","refused":%d`, code, truth.refused)
	}
	var texts []string
	for _, part := range truth.parts {
		texts = append(texts, fmt.Sprintf(`{"value":%d,"version":%d}`, *part.value, *part.version))
	}
	if len(texts) == 1 {
		return `"code":"ok",` + strings.Trim(texts[0], "{}")
	}
	return fmt.Sprintf(`"code":"ok","parts":[%s]`, strings.Join(texts, ","))
}
