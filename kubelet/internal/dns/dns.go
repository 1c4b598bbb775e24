// Package dns works out the resolver configuration of a pod from its policy,
// the node's own configuration and the cluster's name servers.
//
// The pod runtime asks it when it makes a sandbox. It reads the node's
// resolv.conf each time, so that a change of it counts for new pods, and
// writes nothing.
package dns

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

// Limits of resolvers (resolv.conf(5) of glibc, and upstream's for searches).
const (
	maxServers  = 3
	maxSearches = 32
)

// Configurer works out configurations; it is safe for concurrent use.
type Configurer struct {
	// ResolvConf is the node's own; "" for none.
	ResolvConf string
	Servers    []string // of the cluster
	Domain     string   // of the cluster
}

// Of is the pod's configuration (Kubernetes docs, "DNS for Services and Pods").
func (c *Configurer) Of(pod *core.Pod) (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	policy := pod.Spec.DNSPolicy
	cluster := policy == corev1.DNSClusterFirstWithHostNet || policy == corev1.DNSClusterFirst && !pod.Spec.HostNetwork
	switch {
	case policy == corev1.DNSNone:
	case cluster && len(c.Servers) > 0:
		host, err := c.host()
		if err != nil {
			return nil, err
		}
		config.Servers = slices.Clone(c.Servers)
		config.Options = []string{"ndots:5"}
		if c.Domain != "" {
			config.Searches = []string{pod.Namespace + ".svc." + c.Domain, "svc." + c.Domain, c.Domain}
		}
		config.Searches = append(config.Searches, host.Searches...)
	default:
		// Without name servers of the cluster, ClusterFirst can only mean the node's.
		host, err := c.host()
		if err != nil {
			return nil, err
		}
		config = host
	}
	if own := pod.Spec.DNSConfig; own != nil {
		config.Servers = append(config.Servers, own.Nameservers...)
		config.Searches = append(config.Searches, own.Searches...)
		config.Options = mergeOptions(config.Options, own.Options)
	}
	config.Servers = distinct(config.Servers, maxServers)
	config.Searches = distinct(config.Searches, maxSearches)
	return config, nil
}

// distinct drops what is there twice, and what is more than a resolver reads.
func distinct(values []string, most int) []string {
	var kept []string
	for _, v := range values {
		if !slices.Contains(kept, v) && len(kept) < most {
			kept = append(kept, v)
		}
	}
	return kept
}

// mergeOptions lets the pod's options replace those of the same name.
func mergeOptions(options []string, own []corev1.PodDNSConfigOption) []string {
	for _, o := range own {
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		options = slices.DeleteFunc(options, func(old string) bool {
			name, _, _ := strings.Cut(old, ":")
			return name == o.Name
		})
		options = append(options, text)
	}
	return options
}

// host is the node's own configuration.
func (c *Configurer) host() (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	if c.ResolvConf == "" {
		return config, nil
	}
	data, err := os.ReadFile(c.ResolvConf)
	if err != nil {
		return nil, fmt.Errorf("resolver configuration of the node: %w", err)
	}
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			config.Servers = append(config.Servers, fields[1])
		case "search", "domain":
			config.Searches = slices.DeleteFunc(fields[1:], func(s string) bool { return s == "." })
		case "options":
			config.Options = append(config.Options, fields[1:]...)
		}
	}
	return config, nil
}
