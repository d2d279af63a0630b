// Command clients has sessions of go-zookeeper for the torture: what tests/support/recorder.py does with kazoo, with the same
// arguments and the same lines on standard output.
//
//	clients SEED FIRST KEYS LOCK HOSTS...
//
// One session for each HOSTS, a connection string: they are clients FIRST, FIRST + 1 and so on, and SEED decides what they ask
// of KEYS, znodes with commas between. One that begins with "lock@" takes turns at LOCK instead. It ends when standard input does.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// A worker is a session that works until standard input ends.
type worker interface {
	work(stop <-chan struct{})
	close()
}

func main() {
	if len(os.Args) < 6 {
		fmt.Fprintln(os.Stderr, "usage: clients SEED FIRST KEYS LOCK HOSTS...")
		os.Exit(2)
	}
	seed, first := number(os.Args[1]), int(number(os.Args[2]))
	keys, lock := strings.Split(os.Args[3], ","), os.Args[4]
	var workers []worker
	for place, hosts := range os.Args[5:] {
		client := first + place
		if strings.HasPrefix(hosts, "lock@") {
			workers = append(workers, newContender(client, lock, strings.TrimPrefix(hosts, "lock@")))
		} else {
			workers = append(workers, newRecorder(client, seed, keys, hosts))
		}
	}
	say("ready")
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, each := range workers {
		working.Add(1)
		go func(each worker) {
			defer working.Done()
			each.work(stop)
			each.close()
		}(each)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(stop)
	working.Wait()
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return value
}

var output sync.Mutex

// say writes one line.
func say(format string, words ...interface{}) {
	output.Lock()
	defer output.Unlock()
	fmt.Printf(format+"\n", words...)
}

// pause lets a time pass; false if all is over.
func pause(stop <-chan struct{}, length time.Duration) bool {
	select {
	case <-stop:
		return false
	case <-time.After(length):
		return true
	}
}

// nowNs is the time by the clock that the other clients' times are of, which Go does not show.
func nowNs() int64 {
	const monotonic = 1
	var now syscall.Timespec
	_, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&now)), 0)
	if err != 0 {
		panic(err)
	}
	return now.Nano()
}
