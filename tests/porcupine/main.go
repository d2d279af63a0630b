// Command porcupine says whether a history of requests to znodes is linearizable: whether there is an order in which
// they could have been carried out, one after the other, each between its question and its answer. A multi about several znodes
// is carried out as one.
//
//	porcupine HISTORY.jsonl
//
// tests/src/history.rs writes such files, one request a line. The exit code is 0 if there is such an order, 1 if not, and
// 2 if the file cannot be used or the search takes too long. A picture of what does not fit is put beside the history.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 2 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fail(2, "usage: porcupine HISTORY.jsonl")
	}
	path := os.Args[1]
	file, err := os.Open(path)
	if err != nil {
		fail(2, "%v", err)
	}
	parts, err := read(file)
	if err != nil {
		fail(2, "%s: %v", path, err)
	}
	requests, unknown, znodes := 0, 0, 0
	for _, part := range parts {
		model, names := registers(part.keys), strings.Join(part.keys, " and ")
		result, info := porcupine.CheckOperationsVerbose(model, part.operations, patience)
		switch result {
		case porcupine.Unknown:
			fail(2, "%s: no verdict on %s after %v", path, names, patience)
		case porcupine.Illegal:
			picture := path + ".html"
			if err := porcupine.VisualizePath(model, info, picture); err != nil {
				fail(1, "%s: not linearizable at %s, and no picture of it: %v", path, names, err)
			}
			fail(1, "%s: not linearizable at %s; see %s", path, names, picture)
		}
		requests += len(part.operations)
		unknown += part.unknown
		znodes += len(part.keys)
	}
	if requests == 0 {
		fail(2, "%s: there is nothing to check", path)
	}
	fmt.Printf("%d requests to %d znodes are linearizable; what came of %d is not known\n", requests, znodes, unknown)
}

func fail(code int, format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(code)
}
