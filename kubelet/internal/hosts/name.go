package hosts

import (
	"cmp"
	"fmt"
	"strings"

	"kctl/proto/core"
)

// maxHostname is the kernel's limit on the length of a host name; a DNS label's
// is one less.
const maxHostname = 64

// Name is the host name of a pod's containers.
func Name(pod *core.Pod, clusterDomain string) (string, error) {
	name, domain := nameAndDomain(pod, clusterDomain)
	if pod.Spec.SetHostnameAsFQDN == nil || !*pod.Spec.SetHostnameAsFQDN || domain == "" {
		return name, nil
	}
	fqdn := name + "." + domain
	if len(fqdn) > maxHostname {
		return "",
			fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the "+
				"max, %d characters requested)",
				fqdn, maxHostname, len(fqdn))
	}
	return fqdn, nil
}

// nameAndDomain are the pod's own name as a DNS label, and its domain if it has
// a subdomain. A name that overrides all others is already complete (KEP-4762).
func nameAndDomain(pod *core.Pod, clusterDomain string) (name, domain string) {
	if override := pod.Spec.HostnameOverride; override != nil && *override != "" {
		return *override, ""
	}
	name = pod.Spec.Hostname
	if name == "" {
		name = pod.Name
		if len(name) > maxHostname-1 {
			name = strings.TrimRight(name[:maxHostname-1], "-.")
		}
	}
	if pod.Spec.Subdomain != "" {
		domain = fmt.Sprintf("%s.%s.svc.%s", pod.Spec.Subdomain, pod.Namespace, cmp.Or(clusterDomain, "cluster.local"))
	}
	return name, domain
}
