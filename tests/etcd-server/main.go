// An etcd of a newer version than Debian's: https://github.com/etcd-io/etcd, as its own main.go starts it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
