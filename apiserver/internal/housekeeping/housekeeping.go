package housekeeping

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission/typecheck"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/podcidr"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/signing"
	"kctl/proto/core"
)

// Dependencies are what the loops need.
type Dependencies struct {
	// Resources are the stores of all served resources.
	Resources []registry.Resource
	// DynamicResources are the stores of resources that come and go while the server runs; nil
	// for none.
	DynamicResources DynamicResources
	// AggregatedServers are servers with objects that no store here has; nil for none.
	AggregatedServers AggregatedServers
	// Pods is run by the server, which needs it not only for the loops.
	Pods *informer.Informer[informer.Pod]
	// RootCA is published to every namespace; empty for nothing to publish.
	RootCA []byte
	// AccountTokens makes tokens for secrets; nil if the server signs none.
	AccountTokens AccountTokens
	// QuotaUsage is the usage of resource quotas; shared with admission.
	QuotaUsage *quota.Usage
	// Authorizer decides who may have a kubelet's certificate, and Signing signs
	// it; nil if the server has no key for that.
	Authorizer authz.Authorizer
	Signing    *signing.Authority
	// LegacyTokenPeriod is how long auto-generated tokens in secrets may stay
	// unused.
	LegacyTokenPeriod time.Duration
	// NodeGrace is how long a node may be silent before its status is Unknown.
	NodeGrace time.Duration
	// MaxTerminatedPods is how many pods that have ended are kept; no limit if it is 0 or less.
	MaxTerminatedPods int
	// PodCIDRs are the ranges, one per family, from which nodes get theirs; none
	// if others assign them. No pod gets an address in ServiceRanges.
	PodCIDRs      []*podcidr.Range
	ServiceRanges []netip.Prefix

	// Documents describe the types that policies select; nil if nothing does.
	Documents typecheck.Documents

	// Metrics gets the loops' metrics, and Queues measures their queues; nil for none.
	Metrics prometheus.Registerer
	Queues  *Queues

	Clock  clock.Clock
	Logger *zap.Logger
}

// DynamicResources are resources that come and go.
type DynamicResources interface {
	// Resources are the present ones; missing says why there may be others, nil if there
	// are none.
	Resources() (present []registry.Resource, missing error)
	// Lookup returns one with its subresources; ok is false if there is none of that name and
	// version.
	Lookup(ctx context.Context, gvr schema.GroupVersionResource) (served registry.Served, warning string, ok bool, err error)
	// OnChange adds a function to be called when that may have changed, until
	// forget is called.
	OnChange(callback func()) (forget func())
}

// AggregatedServers are other servers that have objects.
type AggregatedServers interface {
	// EmptyNamespace deletes the objects in a namespace, and calls stays for each
	// that still exists. undiscovered are the servers that can't say now what they
	// have.
	EmptyNamespace(ctx context.Context, namespace string,
		stays func(of schema.GroupResource, finalizers []string)) (undiscovered map[schema.GroupVersion]error, failures []error)
	// Collectable are the resources whose objects take part in garbage collection:
	// those that can be listed, watched and deleted.
	Collectable() []registry.Objects
	// OnChange adds a function to be called when these may have changed, until
	// forget is called.
	OnChange(callback func()) (forget func())
}

// Store returns the store of a resource, which must be served.
func (d *Dependencies) Store(resource core.Resource) (registry.Resource, error) {
	for _, r := range d.Resources {
		if r.Info().Resource == resource {
			return r, nil
		}
	}
	return nil, fmt.Errorf("housekeeping: %s are not served", resource.Name)
}

// Loop runs until its context ends.
type Loop func(ctx context.Context) error

// loops by name, in the order in which users see them.
var loops = []struct {
	name string
	make func(d *Dependencies) (Loop, error)
}{
	{"serviceaccount-controller", newServiceAccounts},
	{"serviceaccount-token-controller", newSecretTokens},
	{"legacy-serviceaccount-token-cleaner-controller", newLegacyTokens},
	{"token-cleaner-controller", newTokenCleaner},
	{"certificatesigningrequest-approving-controller", newCertificateApprover},
	{"certificatesigningrequest-signing-controller", newCertificateSigner},
	{"certificatesigningrequest-cleaner-controller", newCertificateCleaner},
	{"root-ca-certificate-publisher-controller", newRootCA},
	{"namespace-controller", newNamespaces},
	{"node-lifecycle-controller", newNodeLifecycle},
	{nodeIPAMName, newNodeIPAM},
	{"taint-eviction-controller", newTaintEviction},
	{"pod-garbage-collector-controller", newPodGarbage},
	{"garbage-collector-controller", newGarbageCollector},
	{aggregationName, newClusterRoleAggregation},
	{"resourcequota-controller", newQuotas},
	{"disruption-controller", newDisruptions},
	{volumeBinderName, newVolumeBinder},
	{"persistentvolumeclaim-protection-controller", newClaimProtection},
	{"persistentvolume-protection-controller", newVolumeProtection},
	{"volumeattributesclass-protection-controller", newClassProtection},
	{serviceCIDRsName, newServiceCIDRs},
	{policyStatusName + "-controller", newPolicyStatus},
}

// Names are the names of all loops, as --controllers takes them: those of
// kube-controller-manager.
func Names() []string {
	names := make([]string, 0, len(loops))
	for _, l := range loops {
		names = append(names, l.name)
	}
	return names
}

// New makes the selected loops.
func New(d Dependencies, wanted func(name string) bool) ([]Loop, error) {
	var out []Loop
	for _, l := range loops {
		if !wanted(l.name) {
			continue
		}
		loop, err := l.make(&d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		out = append(out, loop)
	}
	return out, nil
}

// runTogether runs the parts of one loop.
func runTogether(parts ...func(ctx context.Context) error) Loop {
	return func(ctx context.Context) error { return runAll(ctx, parts) }
}
