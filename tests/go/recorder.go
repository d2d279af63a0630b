package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// Data are numbers with blanks behind them, so that the log grows: disks fill, files of the log come and go.
	dataBytes       = 1000
	betweenRequests = 8 * time.Millisecond
	recorderTimeout = 4 * time.Second
)

// As often as they stand here.
var kinds = []string{
	"create", "create", "set", "set", "set", "checked set", "replace", "delete", "read", "read", "read", "read", "read",
}

// A request as the checker reads it, with its answer.
type request struct {
	Client   int     `json:"client"`
	Key      string  `json:"key"`
	Op       string  `json:"op"`
	Value    *int64  `json:"value"`
	Expected *int32  `json:"expected"`
	Start    int64   `json:"start"`
	Answer   *answer `json:"answer"`
	kind     string
}

type answer struct {
	End     int64  `json:"end"`
	Code    string `json:"code"`
	Value   *int64 `json:"value"`
	Version *int32 `json:"version"`
}

// errUnsynced is a read whose connection is not that of its sync: another kind of read.
var errUnsynced = errors.New("another connection")

// A recorder asks things of a few znodes and writes down what it was told.
type recorder struct {
	number int
	keys   []string
	chance *rand.Rand
	values int64
	// What the session knows of each znode, so that its requests often fit.
	versions map[string]int32
	*session
}

func newRecorder(number int, seed int64, keys []string, hosts string) *recorder {
	chance := rand.New(rand.NewSource(seed + int64(number)))
	return &recorder{
		number: number, keys: keys, chance: chance, values: int64(number) * 1_000_000,
		versions: map[string]int32{}, session: connect(hosts, recorderTimeout),
	}
}

func (r *recorder) close() { r.Conn.Close() }

func (r *recorder) work(stop <-chan struct{}) {
	for pause(stop, betweenRequests) {
		r.ask(r.choose())
	}
}

func (r *recorder) ask(asked request) {
	asked.Start = nowNs()
	told, err := r.perform(asked)
	end := nowNs()
	switch {
	case err == nil:
		told.Code = "ok"
	case errors.Is(err, zk.ErrNoNode):
		told = answer{Code: "NoNode"}
	case errors.Is(err, zk.ErrNodeExists):
		told = answer{Code: "NodeExists"}
	case errors.Is(err, zk.ErrBadVersion):
		told = answer{Code: "BadVersion"}
	case errors.Is(err, errUnsynced), errors.Is(err, zk.ErrNoServer):
		// No server could be reached, and the request was never sent.
		return
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrSessionMoved):
		r.tell(asked)
		return
	case strings.Contains(err.Error(), "-119"):
		say("refused %d NOTREADONLY", r.number)
		return
	default:
		say("complaint %d %s of %s: %v", r.number, asked.kind, asked.Key, err)
		return
	}
	told.End = end
	r.remember(asked, told)
	asked.Answer = &told
	r.tell(asked)
}

func (r *recorder) tell(asked request) {
	line, err := json.Marshal(asked)
	if err != nil {
		panic(err)
	}
	say("%s", line)
}

func (r *recorder) choose() request {
	asked := request{Client: r.number, Key: r.keys[r.chance.Intn(len(r.keys))]}
	asked.kind = kinds[r.chance.Intn(len(kinds))]
	version, isKnown := r.versions[asked.Key]
	if asked.kind == "checked set" && !isKnown {
		asked.kind = "set"
	}
	r.values++
	value := r.values
	isExpected := isKnown && (asked.kind == "checked set" || r.chance.Intn(10) < 7)
	asked.Op = strings.TrimPrefix(asked.kind, "checked ")
	switch asked.Op {
	case "create":
		asked.Value = &value
	case "set", "replace":
		asked.Value = &value
	}
	if isExpected && (asked.Op == "set" || asked.Op == "replace" || asked.Op == "delete") {
		asked.Expected = &version
	}
	return asked
}

func (r *recorder) perform(asked request) (answer, error) {
	version := int32(-1)
	if asked.Expected != nil {
		version = *asked.Expected
	}
	open := zk.WorldACL(zk.PermAll)
	switch asked.kind {
	case "create":
		_, err := r.Create(asked.Key, text(asked), 0, open)
		return answer{}, err
	case "set":
		stat, err := r.Set(asked.Key, text(asked), version)
		return at(stat), err
	case "checked set":
		results, err := r.commit(
			&zk.CheckVersionRequest{Path: asked.Key, Version: version},
			&zk.SetDataRequest{Path: asked.Key, Data: text(asked), Version: -1})
		if err != nil {
			return answer{}, err
		}
		return at(results[1].Stat), nil
	case "replace":
		_, err := r.commit(
			&zk.DeleteRequest{Path: asked.Key, Version: version},
			&zk.CreateRequest{Path: asked.Key, Data: text(asked), Acl: open})
		return answer{}, err
	case "delete":
		return answer{}, r.Delete(asked.Key, version)
	}
	return r.read(asked.Key)
}

// read is a sync and a getData behind it, over one connection.
func (r *recorder) read(key string) (answer, error) {
	before := r.changeCount()
	if _, err := r.Sync(key); err != nil {
		return answer{}, err
	}
	data, stat, err := r.Get(key)
	if r.changeCount() != before {
		return answer{}, errUnsynced
	}
	if err != nil {
		return answer{}, err
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return answer{}, err
	}
	told := at(stat)
	told.Value = &value
	return told, nil
}

// commit returns the results of a multi, or why it was refused, which the other results only point to.
func (r *recorder) commit(operations ...interface{}) ([]zk.MultiResponse, error) {
	results, err := r.Multi(operations...)
	for _, known := range []error{zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion} {
		for _, result := range results {
			if errors.Is(result.Error, known) {
				return nil, known
			}
		}
	}
	return results, err
}

func (r *recorder) remember(asked request, told answer) {
	switch {
	case told.Code != "ok" || asked.Op == "delete":
		delete(r.versions, asked.Key)
	case told.Version != nil:
		r.versions[asked.Key] = *told.Version
	default:
		r.versions[asked.Key] = 0
	}
}

func at(stat *zk.Stat) answer {
	if stat == nil {
		return answer{}
	}
	version := stat.Version
	return answer{Version: &version}
}

func text(asked request) []byte {
	return []byte(fmt.Sprintf("%-*d", dataBytes, *asked.Value))
}
