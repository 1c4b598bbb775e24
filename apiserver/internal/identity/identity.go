// Package identity is the name by which API servers are told apart, kube-apiserver's: that
// of their Leases (package lease, below), and a label of the metrics that are compared
// between servers.
package identity

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Component is what the servers are called; upstream's, as they do the same.
const Component = "kube-apiserver"

// Hostname is the host's name, empty if it has none.
var Hostname = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// Name is this server's: "apiserver-" and a hash of the host's name, as upstream makes it.
// Servers that share a host share it.
func Name() string { return nameOn(Hostname()) }

func nameOn(host string) string {
	var parts []byte
	for _, part := range []string{host, Component} {
		parts = binary.BigEndian.AppendUint16(parts, uint16(len(part)))
		parts = append(parts, part...)
	}
	sum := sha256.Sum256(parts)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// Registerer registers metrics with this server's hash as the label apiserver_id_hash.
func Registerer(registry prometheus.Registerer) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"apiserver_id_hash": Hash(Name())}, registry)
}

// Hash stands for a text in labels of metrics, as upstream has it: a text that is long, or tells more
// than everybody should know who reads metrics.
func Hash(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
