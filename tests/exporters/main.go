// Command exporters tells as JSON what programs in Go understand of a server's four-letter words: the plugin of Telegraf for ZooKeeper,
// which reads mntr, and the parsers of go-zookeeper, which read srvr and ruok. (That of cons reads no answer, neither ZooKeeper's nor
// Paddock's: it wants a session of the connection by which it asks.)
//
//	exporters HOST:PORT
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/plugins/inputs/zookeeper"
)

// gathered takes what Telegraf's plugin has read. No other method of an accumulator is called by it.
type gathered struct {
	telegraf.Accumulator
	Fields map[string]interface{} `json:"fields"`
	Tags   map[string]string      `json:"tags"`
	err    error
}

func (g *gathered) AddFields(_ string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	g.Fields, g.Tags = fields, tags
}

func (g *gathered) AddError(err error) {
	if err != nil {
		g.err = err
	}
}

func ofTelegraf(address string) (*gathered, error) {
	plugin := &zookeeper.Zookeeper{Servers: []string{address}, ParseFloats: "float"}
	if err := plugin.Init(); err != nil {
		return nil, err
	}
	told := &gathered{}
	if err := plugin.Gather(told); err != nil {
		return nil, err
	}
	return told, told.err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: exporters HOST:PORT")
		os.Exit(2)
	}
	servers, patience := os.Args[1:], 10*time.Second
	telegraf, err := ofTelegraf(servers[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "telegraf:", err)
		os.Exit(1)
	}
	// JSON has one kind of numbers only.
	kinds := map[string]string{}
	for name, value := range telegraf.Fields {
		kinds[name] = fmt.Sprintf("%T", value)
	}
	stats, isRead := zk.FLWSrvr(servers, patience)
	err = json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"telegraf": telegraf,
		"kinds":    kinds,
		"srvr":     stats[0],
		"is_read":  isRead,
		"is_ok":    zk.FLWRuok(servers, patience)[0],
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
