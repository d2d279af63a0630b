// A zetcd, as its own main.go starts it on one etcd without TLS: https://github.com/etcd-io/zetcd.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"github.com/coreos/etcd/clientv3"
	"github.com/coreos/zetcd"
)

func main() {
	endpoint := flag.String("endpoint", "", "etcd's address")
	address := flag.String("zkaddr", "", "address for clients of ZooKeeper")
	flag.Parse()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{*endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", listener.Addr())
	zetcd.Serve(context.Background(), listener, zetcd.NewAuth(client), zetcd.NewZK(client))
}
