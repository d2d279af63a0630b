package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Operations and errors of ZooKeeper's protocol.
const (
	create      = 1
	getData     = 4
	ping        = 11
	closing     = -11
	noNode      = -101
	systemError = -1
)

// keysOfZnode are the beginnings of the keys that zetcd has for a znode: its data, and six for its Stat and its ACL.
var keysOfZnode = []string{"/zk/\x01", "/zk/\x02", "/zk/\x03", "/zk/\x04", "/zk/\x05", "/zk/\x06", "/zk/\x07"}

// inFlightMax bounds the requests of a connection that are with etcd at the same time.
const inFlightMax = 256

// statBytes is about the length of the Stat, the ACL and the tag in the value of a front end's key.
const statBytes = 80

type store struct {
	etcd   *clientv3.Client
	create func(etcd *clientv3.Client, path, data string) error
}

// creates are the ways to create a znode.
var creates = map[string]func(etcd *clientv3.Client, path, data string) error{
	"put":   put,
	"zetcd": putSevenKeys,
	"txn":   putWithParent,
}

// serve answers the requests of a connection in their order.
func (s *store) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := readFrame(conn); err != nil {
		return
	}
	greeting := make([]byte, 4+4+8+4+16+1)
	binary.BigEndian.PutUint32(greeting[4:], 30_000)
	binary.BigEndian.PutUint64(greeting[8:], 1)
	binary.BigEndian.PutUint32(greeting[16:], 16)
	if writeFrame(conn, greeting) != nil {
		return
	}
	answers := make(chan chan []byte, inFlightMax)
	defer close(answers)
	go func() {
		for answer := range answers {
			// The reader notices a connection that has ended.
			_ = writeFrame(conn, <-answer)
		}
	}()
	for {
		request, err := readFrame(conn)
		if err != nil || len(request) < 8 {
			return
		}
		answer := make(chan []byte, 1)
		answers <- answer
		go func() { answer <- s.answer(request) }()
	}
}

func (s *store) answer(request []byte) []byte {
	op, body := int32(binary.BigEndian.Uint32(request[4:])), request[8:]
	switch op {
	case ping, closing:
		return reply(request, 0, nil)
	case create:
		path, rest := buffer(body)
		data, _ := buffer(rest)
		if err := s.create(s.etcd, string(path), string(data)); err != nil {
			return reply(request, systemError, nil)
		}
		return reply(request, 0, body[:4+len(path)])
	case getData:
		path, _ := buffer(body)
		found, err := s.etcd.Get(context.Background(), keysOfZnode[0]+string(path))
		if err != nil || len(found.Kvs) == 0 {
			return reply(request, noNode, nil)
		}
		value := found.Kvs[0].Value
		answer := binary.BigEndian.AppendUint32(nil, uint32(len(value)))
		// A Stat of zeros.
		return reply(request, 0, append(append(answer, value...), make([]byte, 68)...))
	}
	// There is no znode to list or to remove.
	return reply(request, noNode, nil)
}

func put(etcd *clientv3.Client, path, data string) error {
	_, err := etcd.Put(context.Background(), keysOfZnode[0]+path, data)
	return err
}

func putSevenKeys(etcd *clientv3.Client, path, data string) error {
	puts := []clientv3.Op{clientv3.OpPut(keysOfZnode[0]+path, data)}
	for _, key := range keysOfZnode[1:] {
		puts = append(puts, clientv3.OpPut(key+path, "12345678"))
	}
	return putNew(etcd, path, puts)
}

// putWithParent puts what a front end does for one create. It compares one key only, so that no create fails.
func putWithParent(etcd *clientv3.Client, path, data string) error {
	stat := strings.Repeat("s", statBytes)
	parent := path[:1+strings.LastIndexByte(path, '/')]
	return putNew(etcd, path, []clientv3.Op{
		clientv3.OpPut(keysOfZnode[0]+path, data+stat),
		clientv3.OpPut(keysOfZnode[0]+parent, stat),
	})
}

func putNew(etcd *clientv3.Client, path string, puts []clientv3.Op) error {
	isNew := clientv3.Compare(clientv3.ModRevision(keysOfZnode[0]+path), "=", 0)
	_, err := etcd.Txn(context.Background()).If(isNew).Then(puts...).Commit()
	return err
}

// buffer splits off what has its length in front.
func buffer(bytes []byte) ([]byte, []byte) {
	if len(bytes) < 4 {
		return nil, nil
	}
	length := int(int32(binary.BigEndian.Uint32(bytes)))
	if length < 0 || length > len(bytes)-4 {
		return nil, bytes[4:]
	}
	return bytes[4 : 4+length], bytes[4+length:]
}

func reply(request []byte, code int32, body []byte) []byte {
	answer := append(make([]byte, 0, 16+len(body)), request[:4]...)
	answer = binary.BigEndian.AppendUint64(answer, 1)
	answer = binary.BigEndian.AppendUint32(answer, uint32(code))
	return append(answer, body...)
}

func readFrame(conn net.Conn) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > 1<<20 {
		// A four-letter word.
		return nil, io.ErrUnexpectedEOF
	}
	frame := make([]byte, size)
	_, err := io.ReadFull(conn, frame)
	return frame, err
}

func writeFrame(conn net.Conn, frame []byte) error {
	_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}
