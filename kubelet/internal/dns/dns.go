// Package dns works out the resolver configuration of a pod from its policy,
// the node's own configuration and the cluster's name servers.
//
// The pod runtime asks it when it makes a sandbox. It reads the node's
// resolv.conf each time, so that changes apply to new pods, and writes nothing.
package dns

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilnet "k8s.io/utils/net"

	"kctl/proto/core"
)

// Limits of resolvers (resolv.conf(5) of glibc, and upstream's for searches).
const (
	maxServers     = 3
	maxSearches    = 32
	ofCluster      = 3                                    // search paths that a pod of the cluster has besides
	maxSearchChars = 2048                                 // of all search paths, with the spaces between them
	maxSearchPath  = validation.DNS1123SubdomainMaxLength // of one: a longer one ends programs with glibc 2.28
)

// Configurer works out configurations; it is safe for concurrent use.
type Configurer struct {
	// ResolvConf is the node's own; without one, pods that would get it ask nobody but
	// themselves.
	ResolvConf string
	Servers    []string        // of the cluster
	Domain     string          // of the cluster
	NodeIPs    func() []string // of the node, one of each family that it has; nil for none
	// Warn reports what a pod asks for and can't have, as the reason and the text
	// of an event. May be nil.
	Warn func(pod *core.Pod, reason, text string)
	// WarnNode reports, once, what pods ask for and the node does not have. May be nil.
	WarnNode func(reason, text string)

	nodeWarned sync.Once
}

// ForPod is the pod's configuration (Kubernetes docs, "DNS for Services and Pods").
func (c *Configurer) ForPod(pod *core.Pod) (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	policy := pod.Spec.DNSPolicy
	cluster := policy == corev1.DNSClusterFirstWithHostNet || policy == corev1.DNSClusterFirst && !pod.Spec.HostNetwork
	switch {
	case policy == corev1.DNSNone:
	case cluster && len(c.Servers) > 0:
		host, err := c.hostConfig()
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
		if cluster {
			c.warnMissing(pod)
		}
		host, err := c.hostConfig()
		if err != nil {
			return nil, err
		}
		config = host
		if c.ResolvConf == "" { // a runtime that is given none would take the machine's
			config.Servers, config.Searches = c.themselves(), []string{"."}
		}
	}
	if own := pod.Spec.DNSConfig; own != nil {
		config.Servers = append(config.Servers, own.Nameservers...)
		config.Searches = append(config.Searches, own.Searches...)
		for _, o := range own.Options {
			text := o.Name
			if o.Value != nil && *o.Value != "" {
				text += ":" + *o.Value
			}
			config.Options = withOption(config.Options, text)
		}
	}
	all, paths := distinct(config.Servers), distinct(config.Searches)
	config.Servers, config.Searches = all[:min(len(all), maxServers)], shortened(paths)
	if len(config.Servers) < len(all) {
		c.warn(pod, "DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "+
			strings.Join(config.Servers, " "))
	}
	if len(config.Searches) < len(paths) {
		c.warn(pod, "DNSConfigForming", "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "+
			strings.Join(config.Searches, " "))
	}
	return config, nil
}

// themselves is where programs ask only their own pod.
func (c *Configurer) themselves() (servers []string) {
	if c.NodeIPs == nil {
		return []string{"127.0.0.1"}
	}
	for _, ip := range c.NodeIPs() {
		if utilnet.IsIPv6String(ip) {
			servers = append(servers, "::1")
		} else {
			servers = append(servers, "127.0.0.1")
		}
	}
	return servers
}

// CheckNode warns if the node's own configuration can't be read, or has more search paths than pods
// can be given with those of the cluster.
func (c *Configurer) CheckNode() {
	const reason = "CheckLimitsForResolvConf"
	host, err := c.hostConfig()
	most := maxSearches
	if c.Domain != "" {
		most -= ofCluster
	}
	switch {
	case c.WarnNode == nil:
	case err != nil:
		c.WarnNode(reason, err.Error())
	case len(host.Searches) > most:
		c.WarnNode(reason, fmt.Sprintf("Resolv.conf file '%s' contains search line consisting of more than %d domains!", c.ResolvConf, most))
	case slices.ContainsFunc(host.Searches, func(path string) bool { return len(path) > maxSearchPath }):
		c.WarnNode(reason, fmt.Sprintf("Resolv.conf file %q contains a search path which length is more than allowed %d chars!",
			c.ResolvConf, maxSearchPath))
	case len(strings.Join(host.Searches, " ")) > maxSearchChars:
		c.WarnNode(reason, fmt.Sprintf("Resolv.conf file '%s' contains search line which length is more than allowed %d chars!",
			c.ResolvConf, maxSearchChars))
	}
}

// warnMissing names the policy that upstream's kubelet names, whichever of the two
// it is: people look for the text.
func (c *Configurer) warnMissing(pod *core.Pod) {
	const reason = "MissingClusterDNS"
	text := fmt.Sprintf("kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
		corev1.DNSClusterFirst, corev1.DNSDefault)
	c.warn(pod, reason, fmt.Sprintf("pod: %q. %s", fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), text))
	if c.WarnNode != nil {
		c.nodeWarned.Do(func() { c.WarnNode(reason, text) })
	}
}

func (c *Configurer) warn(pod *core.Pod, reason, text string) {
	if c.Warn != nil {
		c.Warn(pod, reason, text)
	}
}

// distinct drops duplicates.
func distinct(values []string) []string {
	var kept []string
	for _, v := range values {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// shortened drops search paths that are too long, and the last ones of those that are too
// many, or too long together.
func shortened(paths []string) []string {
	paths = slices.Clone(paths[:min(len(paths), maxSearches)])
	paths = slices.DeleteFunc(paths, func(path string) bool { return len(path) > maxSearchPath })
	for len(paths) > 0 && len(strings.Join(paths, " ")) > maxSearchChars {
		paths = paths[:len(paths)-1]
	}
	return paths
}

// withOption adds an option in place of an earlier one of the same name.
func withOption(options []string, option string) []string {
	name, _, _ := strings.Cut(option, ":")
	options = slices.DeleteFunc(options, func(old string) bool {
		before, _, _ := strings.Cut(old, ":")
		return before == name
	})
	return append(options, option)
}

// hostConfig is the node's own configuration.
func (c *Configurer) hostConfig() (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	if c.ResolvConf == "" {
		return config, nil
	}
	data, err := os.ReadFile(c.ResolvConf)
	if err != nil {
		return nil, fmt.Errorf("resolver configuration of the node: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			config.Servers = append(config.Servers, fields[1])
		case "search", "domain":
			config.Searches = nil
			for _, path := range fields[1:] {
				if path != "." {
					config.Searches = append(config.Searches, strings.TrimSuffix(path, "."))
				}
			}
		case "options":
			for _, option := range fields[1:] {
				config.Options = withOption(config.Options, option)
			}
		}
	}
	return config, nil
}
