package main

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// isLinearizable checks a history of one znode, or of several that multis connect, in the form in which it comes from the tests.
func isLinearizable(t *testing.T, lines ...string) bool {
	t.Helper()
	parts, err := read(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != 1 {
		t.Fatalf("%d histories of znodes that should be one", len(parts))
	}
	return porcupine.CheckOperations(registers(parts[0].keys), parts[0].operations)
}

// asked is a request of a client from start to end; fields and answer are JSON, without braces.
func asked(client, start, end int, fields, answer string) string {
	return fmt.Sprintf(`{"client":%d,"key":"/a","start":%d,%s,"answer":{"end":%d,%s}}`, client, start, fields, end, answer)
}

func unanswered(client, start int, fields string) string {
	return fmt.Sprintf(`{"client":%d,"key":"/a","start":%d,%s}`, client, start, fields)
}

const (
	created = `"code":"ok"`
	read1   = `"code":"ok","value":1,"version":0`
	read2   = `"code":"ok","value":2,"version":1`
	gone    = `"code":"NoNode"`
	theSet  = `"op":"set","value":2`
	theRead = `"op":"read"`
)

func TestVerdicts(t *testing.T) {
	create := asked(0, 0, 1, `"op":"create","value":1`, created)
	set := asked(0, 2, 3, theSet, `"code":"ok","version":1`)
	cases := []struct {
		name   string
		isGood bool
		lines  []string
	}{
		{"a read of what was written", true, []string{create, set, asked(1, 4, 5, theRead, read2)}},
		{"a stale read", false, []string{create, set, asked(1, 4, 5, theRead, read1)}},
		{"a read that overlaps the write, of before", true, []string{create, set, asked(1, 2, 3, theRead, read1)}},
		{"a read that overlaps the write, of behind", true, []string{create, set, asked(1, 2, 3, theRead, read2)}},
		{"a read back in time", false, []string{
			create, asked(0, 2, 20, theSet, `"code":"ok","version":1`),
			asked(1, 3, 4, theRead, read2), asked(2, 5, 6, theRead, read1),
		}},
		{"a lost write", false, []string{
			create, set, asked(1, 4, 5, `"op":"set","value":3`, `"code":"ok","version":1`),
		}},
		{"a write that was carried out twice", false, []string{
			create, set, asked(1, 4, 5, theRead, `"code":"ok","value":2,"version":2`),
		}},
		{"a lost create", false, []string{create, asked(1, 4, 5, theRead, gone)}},
		{"a lost delete", false, []string{
			create, asked(0, 2, 3, `"op":"delete"`, created), asked(1, 4, 5, theRead, read1),
		}},
		{"a refusal without a reason", false, []string{
			create, asked(1, 2, 3, `"op":"set","value":2,"expected":0`, `"code":"BadVersion"`),
		}},
		{"two that both had the version they demanded", false, []string{
			create,
			asked(0, 2, 9, `"op":"set","value":2,"expected":0`, `"code":"ok","version":1`),
			asked(1, 2, 9, `"op":"set","value":3,"expected":0`, `"code":"ok","version":1`),
		}},
		{"an unanswered write that was carried out", true, []string{
			create, unanswered(0, 2, theSet), asked(1, 4, 5, theRead, read2),
		}},
		{"an unanswered write that was not", true, []string{
			create, unanswered(0, 2, theSet), asked(1, 4, 5, theRead, read1),
		}},
		{"an unanswered write that came late", true, []string{
			create, unanswered(0, 2, theSet), asked(1, 4, 5, theRead, read1), asked(1, 6, 7, theRead, read2),
		}},
		{"an unanswered write that was undone", false, []string{
			create, unanswered(0, 2, theSet), asked(1, 4, 5, theRead, read2), asked(1, 6, 7, theRead, read1),
		}},
		{"a replace", true, []string{
			create, set, asked(0, 4, 5, `"op":"replace","value":3`, created),
			asked(1, 6, 7, theRead, `"code":"ok","value":3,"version":0`),
		}},
		{"half a replace", false, []string{
			create, asked(0, 2, 3, `"op":"replace","value":2`, created), asked(1, 4, 5, theRead, gone),
		}},
		{"half an unanswered replace", false, []string{
			create, unanswered(0, 2, `"op":"replace","value":2`), asked(1, 4, 5, theRead, gone),
		}},
		{"a replace of nothing", false, []string{asked(0, 0, 1, `"op":"replace","value":2`, created)}},
		{"a write that was carried out before it was asked for", false, []string{
			create, asked(1, 2, 3, theRead, read2), unanswered(0, 4, theSet),
		}},
	}
	for _, test := range cases {
		if isLinearizable(t, test.lines...) != test.isGood {
			t.Errorf("%s: the verdict is wrong", test.name)
		}
	}
}

// trueHistory has 5000 requests of clients that take turns at one true znode, so that their answers overlap, and the places of its reads.
// One of so many requests has been under way for a long time when it is carried out; none has if that is 0.
func trueHistory(oneOfSoMany int) (lines []string, reads []int) {
	chance := rand.New(rand.NewSource(1))
	state := znode{}
	for number := 1; number <= 5000; number++ {
		fields := []string{
			fmt.Sprintf(`"op":"create","value":%d`, number), fmt.Sprintf(`"op":"set","value":%d`, number),
			fmt.Sprintf(`"op":"set","value":%d,"expected":%d`, number, state.version), `"op":"delete"`,
			fmt.Sprintf(`"op":"replace","value":%d`, number), theRead, theRead, theRead,
		}[chance.Intn(8)]
		request := request{op: strings.Split(fields, `"`)[3], value: int64(number)}
		if strings.Contains(fields, "expected") {
			expected := state.version
			request.expected = &expected
		}
		var truth answer
		truth, state = carryOut(state, request)
		text := fmt.Sprintf(`"code":"%s"`, truth.code)
		if truth.code == "ok" && request.op == "read" {
			text += fmt.Sprintf(`,"value":%d,"version":%d`, *truth.value, *truth.version)
			reads = append(reads, len(lines))
		}
		// It takes effect at 10 × number, and its question and its answer are up to four requests away.
		moment := 10 * number
		start := moment - chance.Intn(40)
		if oneOfSoMany > 0 && number%oneOfSoMany == 0 && request.takesValue() {
			lines = append(lines, unanswered(number%7, start-5_000, fields))
			continue
		}
		lines = append(lines, asked(number%7, start, moment+chance.Intn(40), fields, text))
	}
	return lines, reads
}

// With one answer of the past in it, a history must be refused.
func TestAStaleReadInALongHistoryIsFound(t *testing.T) {
	lines, reads := trueHistory(0)
	if !isLinearizable(t, lines...) {
		t.Fatal("a true history is refused")
	}
	stale := lines[reads[100]]
	stale = stale[strings.Index(stale, `"code"`) : len(stale)-2]
	place := reads[len(reads)/2]
	moment := 10 * (place + 1)
	lines[place] = asked(place%7, moment, moment+1, theRead, stale)
	if isLinearizable(t, lines...) {
		t.Fatal("a stale read is not noticed")
	}
}

// As behind the death of a leader: the search has to know about where a request was carried out that was under way for long.
func TestRequestsThatWereUnderWayForLongAreJudged(t *testing.T) {
	lines, _ := trueHistory(40)
	parts, err := read(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	model, operations := registers(parts[0].keys), parts[0].operations
	if result := porcupine.CheckOperationsTimeout(model, operations, time.Minute); result != porcupine.Ok {
		t.Fatalf("the verdict on a true history is %q", result)
	}
}

func TestSpansAreNarrowedByWhatOthersHaveSeen(t *testing.T) {
	create := asked(0, 0, 1, `"op":"create","value":1`, created)
	set := asked(1, 2, 90, theSet, `"code":"ok","version":1`)
	other := asked(2, 30, 32, `"op":"set","value":3`, `"code":"ok","version":1`)
	refusedOther := asked(2, 30, 32, `"op":"set","value":3`, `"code":"BadVersion"`)
	deletion := asked(2, 33, 35, `"op":"delete"`, created)
	shows := asked(3, 40, 50, theRead, read2)
	cases := []struct {
		name  string
		lines []string
		span  span
	}{
		{"nothing is seen", []string{set, create, other}, span{2, 90}},
		{"its value is seen", []string{set, create, shows}, span{2, 50}},
		{"another value is seen before", []string{set, create, asked(2, 20, 25, theRead, read1), shows}, span{20, 50}},
		{"another value is written before", []string{set, create, other, shows}, span{30, 50}},
		{"another one is refused before", []string{set, create, refusedOther, shows}, span{2, 50}},
		{"it is not there before", []string{set, create, deletion, shows}, span{33, 50}},
		{"another value is seen later", []string{set, create, shows, asked(2, 51, 60, theRead, read1)}, span{2, 50}},
		{"another value is seen meanwhile", []string{set, create, shows, asked(2, 39, 41, theRead, read1)}, span{2, 50}},
		{"it has no answer", []string{unanswered(1, 2, theSet), create, shows}, span{2, 50}},
		{"two write the value", []string{set, create, asked(2, 3, 4, theSet, `"code":"ok"`), shows}, span{2, 90}},
		{"what is seen contradicts itself", []string{
			set, create, asked(2, 20, 25, theRead, read2), other, shows,
		}, span{2, 90}},
	}
	for _, test := range cases {
		parts, err := read(strings.NewReader(strings.Join(test.lines, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		first := parts[0].operations[0]
		if found := (span{first.Call, first.Return}); found != test.span {
			t.Errorf("%s: %v instead of %v", test.name, found, test.span)
		}
	}
}

func TestWhatIsNoHistoryIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"key":"/a","op":"set","start":1}`,
		`{"key":"/a","op":"read","value":1,"start":1}`,
		`{"key":"/a","op":"swap","start":1}`,
		`{"key":"/a","op":"read","start":2,"answer":{"end":1,"code":"ok"}}`,
		`{"parts":[{"key":"/a","op":"read"},{"key":"/a","op":"read"}],"start":1}`,
		`{"key":"/a","op":"read","parts":[{"key":"/b","op":"read"}],"start":1}`,
		`{"parts":[{"key":"/a","op":"read"},{"key":"/b","op":"read"}],"start":1,"answer":{"end":2,"code":"ok","parts":[{}]}}`,
		`{"parts":[{"key":"/a","op":"read"},{"key":"/b","op":"read"}],"start":1,"answer":{"end":2,"code":"NoNode","refused":2}}`,
		`{"key":`,
	} {
		if _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("taken for a request: %s", text)
		}
	}
}
