package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// Whoever waits looks this often, should it have missed that the lock is free.
	look        = 200 * time.Millisecond
	lockTimeout = 2 * time.Second
	keptShortly = 300 * time.Millisecond
	// Longer than a session lasts that nobody hears.
	keptLong = 8 * time.Second
)

// A contender takes turns at a lock: an ephemeral znode that whoever creates it holds. It believes that it holds the lock from the
// answer to its create on, until it gives it back or is told that its connection is gone.
//
//	held CLIENT SINCE UNTIL    in nanoseconds of the monotonic clock
type contender struct {
	number int
	lock   string
	turns  int
	token  string
	*session
}

func newContender(number int, lock, host string) *contender {
	return &contender{number: number, lock: lock, session: connect(host, lockTimeout)}
}

func (c *contender) work(stop <-chan struct{}) {
	for pause(stop, time.Millisecond) {
		select {
		case <-c.told:
		default:
		}
		err := c.take()
		since := nowNs()
		switch {
		case err == nil:
			c.hold(stop, since)
		case errors.Is(err, zk.ErrNodeExists):
			// A create that was not answered may have been carried out.
			_, stat, changed, err := c.ExistsW(c.lock)
			if err == nil && stat.EphemeralOwner == c.SessionID() {
				c.hold(stop, nowNs())
				continue
			}
			select {
			case <-stop:
			case <-changed:
			case <-time.After(look):
			}
		default:
			pause(stop, look)
		}
	}
}

// take creates the lock and beside it a token of this turn. The library sends what waited for a connection even when that has
// brought another session: without its token it can not take the lock from whoever has it then.
func (c *contender) take() error {
	c.token = fmt.Sprintf("%s-%d-%d", c.lock, c.number, nowNs())
	open := zk.WorldACL(zk.PermAll)
	return first(c.Multi(
		&zk.CreateRequest{Path: c.lock, Acl: open, Flags: zk.FlagEphemeral},
		&zk.CreateRequest{Path: c.token, Acl: open, Flags: zk.FlagEphemeral}))
}

// first returns why a multi was refused, which most of its results only point to.
func first(results []zk.MultiResponse, err error) error {
	for _, result := range results {
		if errors.Is(result.Error, zk.ErrNodeExists) || errors.Is(result.Error, zk.ErrNoNode) {
			return result.Error
		}
	}
	return err
}

func (c *contender) hold(stop <-chan struct{}, since int64) {
	keep := keptShortly
	c.turns++
	if c.turns%3 == c.number%3 {
		keep = keptLong
	}
	isTold := false
	select {
	case <-c.told:
		// Perhaps of a connection before the one on which the answer came: then it finds that the lock is its own.
		isTold = true
	case <-time.After(keep):
	case <-stop:
	}
	until := nowNs()
	if told := c.lastToldNs(); told >= since {
		until = told
	}
	say("held %d %d %d", c.number, since, until)
	if !isTold {
		_ = first(c.Multi(
			&zk.DeleteRequest{Path: c.token, Version: -1}, &zk.DeleteRequest{Path: c.lock, Version: -1}))
	}
}

func (c *contender) close() { c.Conn.Close() }
