// Command coredns is CoreDNS with the plugins that a cluster's DNS server needs
// (deploy/addons/coredns.yaml). It leaves out those for clouds, which take most
// of the time to compile.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// Queries go through the plugins in this order.
	dnsserver.Directives = []string{"reload", "ready", "health", "errors", "cache", "kubernetes", "loop", "forward"}
	coremain.Run()
}
