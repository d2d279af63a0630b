package main

import (
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A session is a connection of go-zookeeper that knows when it was told of its end.
type session struct {
	*zk.Conn
	mutex sync.Mutex
	// changes counts what was told of the connection.
	changes int
	// toldNs is when the last end of a connection was told, by nowNs.
	toldNs int64
	told   chan struct{}
}

func connect(hosts string, timeout time.Duration) *session {
	s := &session{told: make(chan struct{}, 1)}
	servers := strings.Split(hosts, ",")
	conn, _, err := zk.Connect(servers, timeout,
		zk.WithHostProvider(&inOrder{}), zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithEventCallback(s.hear))
	if err != nil {
		panic(err)
	}
	s.Conn = conn
	return s
}

// hear is called before anything comes over another connection.
func (s *session) hear(event zk.Event) {
	if event.Type != zk.EventSession {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes++
	if event.State == zk.StateDisconnected || event.State == zk.StateExpired {
		s.toldNs = nowNs()
		select {
		case s.told <- struct{}{}:
		default:
		}
	}
}

func (s *session) changeCount() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.changes
}

func (s *session) lastToldNs() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.toldNs
}

// inOrder gives out the servers in the order in which they were named, so that the sessions are spread over the members.
type inOrder struct {
	servers []string
	next    int
	tried   int
}

func (p *inOrder) Init(servers []string) error { p.servers = servers; return nil }
func (p *inOrder) Len() int                    { return len(p.servers) }
func (p *inOrder) Connected()                  { p.tried = 0 }
func (p *inOrder) Next() (string, bool) {
	server := p.servers[p.next%len(p.servers)]
	p.next++
	p.tried++
	return server, p.tried > len(p.servers)
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}
