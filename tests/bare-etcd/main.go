// bare-etcd puts an etcd beside the servers of a comparison.
//
//	bare-etcd put PORT DIR           a create is one put, a get one range: what plain etcd can do
//	bare-etcd zetcd PORT DIR         a create is one transaction with the seven keys that zetcd has for a znode
//	bare-etcd txn PORT DIR           a create is one transaction with two keys, as a front end's is: the znode and its parent
//	bare-etcd beside DIR COMMAND...  becomes the command, with ETCD_ENDPOINT in its words replaced by that of an etcd
//	bare-etcd apart DIR COMMAND...   the same, with the etcd in a group of processes of its own: what is measured is the command alone
//
// Each starts an etcd below DIR, which ends with it. The first three speak as much of ZooKeeper's protocol as
// `paddock bench` needs for its workloads create and get. ETCD_BIN names etcd's program.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/grpclog"
)

const usage = "bare-etcd put|zetcd|txn PORT DIR, or bare-etcd beside|apart DIR COMMAND..."

func init() {
	// etcd ends with the thread that has started it, which is to be the one that lives on in the command.
	runtime.LockOSThread()
}

func main() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(nowhere{}, nowhere{}, nowhere{}))
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bare-etcd:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) >= 3 && (words[0] == "beside" || words[0] == "apart") {
		return beside(words[1], words[2:], words[0] == "apart")
	}
	if len(words) != 3 {
		return fmt.Errorf("usage: %s", usage)
	}
	create, isKnown := creates[words[0]]
	if !isKnown {
		return fmt.Errorf("usage: %s", usage)
	}
	endpoint, err := startEtcd(words[2], false)
	if err != nil {
		return err
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+words[1])
	if err != nil {
		return err
	}
	store := &store{etcd: etcd, create: create}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go store.serve(conn)
	}
}

func beside(dir string, command []string, isApart bool) error {
	endpoint, err := startEtcd(dir, isApart)
	if err != nil {
		return err
	}
	for i, word := range command {
		command[i] = strings.ReplaceAll(word, "ETCD_ENDPOINT", endpoint)
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, command, os.Environ())
}

// startEtcd returns the endpoint of an etcd that serves, in the group of this process or in one of its own.
func startEtcd(dir string, isApart bool) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	clients, err := freeURL()
	if err != nil {
		return "", err
	}
	peers, err := freeURL()
	if err != nil {
		return "", err
	}
	log, err := os.Create(filepath.Join(dir, "etcd.log"))
	if err != nil {
		return "", err
	}
	etcd := exec.Command(os.Getenv("ETCD_BIN"),
		"--data-dir", filepath.Join(dir, "etcd"),
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default="+peers,
		"--quota-backend-bytes", "8589934592")
	etcd.Stdout, etcd.Stderr = log, log
	etcd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: isApart}
	if err := etcd.Start(); err != nil {
		return "", err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{clients}})
	if err != nil {
		return "", err
	}
	defer client.Close()
	context, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// It is asked again until it answers.
	for {
		if _, err = client.Get(context, "/"); err == nil || context.Err() != nil {
			return clients, err
		}
	}
}

func freeURL() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return "http://" + listener.Addr().String(), nil
}

type nowhere struct{}

func (nowhere) Write(text []byte) (int, error) { return len(text), nil }
