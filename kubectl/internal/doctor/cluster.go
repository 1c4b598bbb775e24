package doctor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// workloads are the kinds whose pods a controller makes, which are not among those that the
// programs share. Of cron jobs nothing tells whether anybody looks at them.
var workloads = []core.Resource{
	{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true},
	{Group: "apps", Version: "v1", Name: "statefulsets", Kind: "StatefulSet", Namespaced: true},
	{Group: "apps", Version: "v1", Name: "daemonsets", Kind: "DaemonSet", Namespaced: true},
	{Group: "batch", Version: "v1", Name: "jobs", Kind: "Job", Namespaced: true},
}

// checkCluster looks at what the server knows of the cluster.
func (s *Server) checkCluster(ctx context.Context, server string) []Check {
	var nodes corev1.NodeList
	var leases, elections coordinationv1.LeaseList
	var requests certificatesv1.CertificateSigningRequestList
	var tokens corev1.SecretList
	var pods corev1.PodList
	var checks []Check
	list := s.lister(ctx, &checks)
	if list(core.Nodes, "", &nodes) && list(core.Leases, core.NamespaceNodeLease, &leases) {
		if list(core.Leases, core.NamespaceSystem, &elections) {
			checks = append(checks, s.judgeWrites(leases.Items, elections.Items)...)
		}
		checks = append(checks, s.judgeNodes(nodes.Items, leases.Items, server)...)
	}
	if list(core.Pods, "", &pods, rest.FieldSelector(unscheduled)) {
		checks = append(checks, s.judgeUnscheduled(pods.Items, func() map[string]time.Time {
			var all scheduledPods
			list(core.Pods, "", &all)
			return all.latest()
		})...)
	}
	var services apiServiceList
	if list(apiServices, "", &services) {
		checks = append(checks, judgeAPIServices(services)...)
	}
	if list(core.CertificateSigningRequests, "", &requests) {
		checks = append(checks, judgeRequests(requests.Items, s.serverNow()))
	}
	if list(core.Secrets, core.NamespaceSystem, &tokens, rest.FieldSelector("type="+string(corev1.SecretTypeBootstrapToken))) {
		checks = append(checks, judgeTokens(tokens.Items, s.serverNow()))
	}
	for _, kind := range workloads {
		var objects unstructured.UnstructuredList
		if list(kind, "", &objects) {
			checks = append(checks, judgeWorkloads(kind.Name, objects.Items, s.serverNow())...)
		}
	}
	return checks
}

// lister lists from the server; what could not be listed becomes a check.
func (s *Server) lister(ctx context.Context, checks *[]Check) func(core.Resource, string, any, ...rest.Option) bool {
	silent := false // having waited for one list in vain, it does not wait for the others
	return func(resource core.Resource, namespace string, into any, opts ...rest.Option) bool {
		if silent {
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		err := s.Client.Resource(resource, namespace).List(ctx, into, opts...)
		if err == nil {
			return true
		}
		advice := "check the API server's log"
		switch {
		case apierrors.IsForbidden(err):
			advice = "ask somebody who may to run this"
		case ctx.Err() != nil:
			silent, err = true, fmt.Errorf("no answer within %s; the remaining checks were skipped", answerWithin)
		}
		*checks = append(*checks, warn(resource.Name, advice, "not checked: %s", reason(err)))
		return false
	}
}

func reason(err error) string {
	if status := apierrors.ReasonForError(err); status != "" {
		return string(status)
	}
	return err.Error()
}

// judgeNodes looks at each node; those that are well share one line.
func (s *Server) judgeNodes(nodes []core.Node, leases []coordinationv1.Lease, server string) []Check {
	if len(nodes) == 0 {
		return []Check{warn("nodes", "join a machine: `kctl token create --print-join-command`", "there are none")}
	}
	renewed := map[string]*renewal{}
	for i := range leases {
		renewed[leases[i].Name] = renewalOf(&leases[i])
	}
	var checks []Check
	for i := range nodes {
		checks = append(checks, s.judgeNode(&nodes[i], renewed, server)...)
	}
	if len(checks) == 0 {
		checks = append(checks, ok("nodes", "%d, all of them ready", len(nodes)))
	}
	return checks
}

// renewal is when a lease was renewed, by the server's clock, and how far the holder's is ahead of that.
type renewal struct {
	at    time.Time
	ahead time.Duration
}

// renewalOf tells a clock that is wrong from a lease that is not renewed: the server notes when the
// holder wrote. Without that note the holder's own time counts.
func renewalOf(lease *coordinationv1.Lease) *renewal {
	if lease.Spec.RenewTime == nil {
		return nil
	}
	r := &renewal{at: lease.Spec.RenewTime.Time}
	for _, m := range lease.ManagedFields {
		if m.Time != nil && m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.Raw, []byte(`"f:renewTime"`)) {
			r.at, r.ahead = m.Time.Time, lease.Spec.RenewTime.Sub(m.Time.Time)
		}
	}
	return r
}

// leaseAge is how long a node may be silent before the control plane considers it lost.
const leaseAge = 40 * time.Second

// judgeWrites tells whether anything is written: an etcd without room answers reads, and
// nothing but leases that nobody renews any more, neither nodes nor the control plane, shows it.
func (s *Server) judgeWrites(nodes, elections []coordinationv1.Lease) []Check {
	var newest time.Time
	for _, lease := range slices.Concat(nodes, elections) {
		if r := renewalOf(&lease); r != nil && r.at.After(newest) {
			newest = r.at
		}
	}
	age := s.serverNow().Sub(newest)
	if len(nodes) == 0 || len(elections) == 0 || age <= leaseAge {
		return nil
	}
	return []Check{fail("writes",
		"look in the API server's log for etcd's answers to writes: if it says `database space exceeded`, free space in etcd "+
			"(docs/troubleshooting.md). The kubelets themselves may be fine",
		"nobody has renewed a lease for %s, neither nodes nor the control plane: the API server is probably unable to write",
		age.Round(time.Second))}
}

func (s *Server) judgeNode(node *core.Node, renewed map[string]*renewal, server string) []Check {
	name, now := "node/"+node.Name, s.serverNow()
	var checks []Check
	ready := corev1.NodeCondition{Status: corev1.ConditionUnknown, Message: "it has not reported its status"}
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			ready = condition
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			if condition.Status == corev1.ConditionTrue {
				checks = append(checks, warn(name, "free some on the node, or move pods elsewhere: it takes no new pods and may evict existing ones",
					"%s: %s", condition.Type, condition.Message))
			}
		}
	}
	up := s.Up
	if s.UpNode != "" && node.Name != s.UpNode {
		up = ""
	}
	log := "on that machine look at the kubelet (" + ServiceHint(up, "kubelet") + ") and at the container runtime, and run `kctl doctor` there"
	lease := renewed[node.Name]
	switch {
	case ready.Status != corev1.ConditionTrue && strings.Contains(ready.Message, "network not ready"): // upstream's kubelet says so, too
		checks = append(checks, fail(name, networkAdvice(node), "not ready: %s", ready.Message))
	case ready.Status != corev1.ConditionTrue:
		checks = append(checks, fail(name, log, "not ready: %s", ready.Message))
	case lease != nil && now.Sub(lease.at) > leaseAge:
		checks = append(checks, fail(name, log, "its kubelet has not renewed its lease for %s", now.Sub(lease.at).Round(time.Second)))
	case node.Spec.Unschedulable:
		checks = append(checks, warn(name, "run `kctl uncordon "+node.Name+"` to let it take pods again", "takes no new pods (cordoned)"))
	}
	if lease != nil && lease.ahead.Abs() > someSkew {
		checks = append(checks, warn(name, clockAdvice, "its clock is %s off from the server's clock", lease.ahead.Abs().Round(time.Second)))
	}
	return append(checks, checkSkew(name, node.Status.NodeInfo.KubeletVersion, server)...)
}

// networkAdvice is for a node whose runtime has no network for pods.
func networkAdvice(node *core.Node) string {
	advice := "put a network configuration into /etc/cni/net.d there, or let its kubelet make one (--node-network)"
	if len(node.Spec.PodCIDRs) == 0 {
		advice += "; for that, it waits for a range, which API servers with --allocate-node-cidrs and --cluster-cidr give"
	}
	return advice
}

// checkSkew compares a kubelet's version with the server's (Kubernetes docs, "Version
// Skew Policy": never newer, at most three minors older).
func checkSkew(name, kubelet, server string) []Check {
	k, err := version.ParseGeneric(kubelet)
	if err != nil {
		return nil
	}
	s, err := version.ParseGeneric(server)
	if err != nil {
		return nil
	}
	switch behind := int(s.Minor()) - int(k.Minor()); {
	case k.Major() != s.Major() || behind > 3:
		return []Check{fail(name, "upgrade its kubelet", "its kubelet is %s, too old for an API server %s", kubelet, server)}
	case behind < 0:
		return []Check{fail(name, "upgrade the API server first", "its kubelet is %s, newer than the API server's %s", kubelet, server)}
	}
	return nil
}

// judgeRequests looks for certificate requests that nobody has decided about.
func judgeRequests(requests []certificatesv1.CertificateSigningRequest, now time.Time) Check {
	const name = "certificate-requests"
	var pending []string
	for _, r := range requests {
		if len(r.Status.Conditions) == 0 && now.Sub(r.CreationTimestamp.Time) > time.Minute {
			pending = append(pending, r.Name+" of "+r.Spec.Username)
		}
	}
	if len(pending) == 0 {
		return ok(name, "none pending")
	}
	return warn(name, "run `kctl certificate approve NAME` for those that you recognize; logs and exec need kubelets' serving certificates",
		"pending: %s", abbreviate(pending))
}

// judgeWorkloads looks for those that no controller handles: the API server only stores
// them, and kube-controller-manager makes their pods.
func judgeWorkloads(kind string, objects []unstructured.Unstructured, now time.Time) []Check {
	var waiting []string
	for i := range objects {
		o := &objects[i]
		if UnheardLong(o, now) || o.GetKind() == "Job" && NeedsController(o) && lasts(o, 0, now) {
			waiting = append(waiting, o.GetNamespace()+"/"+o.GetName())
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return []Check{warn(kind, "run a kube-controller-manager, which creates the pods of "+kind+
		" (see docs/networking.md), or create pods directly",
		"no controller takes up: %s", abbreviate(waiting))}
}

// abbreviate names at most five of them.
func abbreviate(names []string) string {
	slices.Sort(names)
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}

// judgeTokens looks at bootstrap tokens, which it names by their ids only.
func judgeTokens(secrets []core.Secret, now time.Time) Check {
	const name = "bootstrap-tokens"
	var expired, endless []string
	for _, s := range secrets {
		id := strings.TrimPrefix(s.Name, core.BootstrapTokenSecretPrefix)
		// A token with an unreadable expiration counts as long expired.
		until, limited, _ := core.BootstrapTokenExpiry(&s)
		switch {
		case !limited:
			endless = append(endless, id)
		case now.Sub(until) > time.Minute:
			expired = append(expired, id)
		}
	}
	switch {
	case len(expired) > 0:
		return warn(name, "run `kctl token delete ID`, and check that the loop tokencleaner is enabled (--controllers): it deletes them",
			"expired but not deleted: %s", abbreviate(expired))
	case len(endless) > 0:
		return warn(name, "run `kctl token delete ID`, and create tokens with a --ttl", "never expire: %s", abbreviate(endless))
	}
	return ok(name, "%d, all of them expire", len(secrets))
}
