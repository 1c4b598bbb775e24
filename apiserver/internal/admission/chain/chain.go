package chain

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/adminaccess"
	"kctl/apiserver/internal/admission/certificates"
	"kctl/apiserver/internal/admission/claimstatus"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/admission/escalation"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/match/equivalent"
	"kctl/apiserver/internal/admission/plugins"
	"kctl/apiserver/internal/admission/priority"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// Options are what a Control is built from.
type Options struct {
	Flags     *config.Options
	Resources *resources.Set
	// Stores are the stores of all resources that are served now, for quotas.
	Stores func() []registry.Resource
	// Forms knows which resources show the same objects.
	Forms *equivalent.Resources
	// Webhooks is how webhooks are reached.
	Webhooks webhookclient.Access
	// Authorizer is asked whether the user may also do what a request implies;
	// Rules are those of the mode RBAC, beyond which no user may grant rights.
	Authorizer authz.Authorizer
	Rules      *rbac.Authorizer
	// Audited is whether requests are audited, so that plugins' annotations are kept.
	Audited bool
	Metrics *prometheus.Registry
	Clock   clock.WithTicker
	Logger  *zap.Logger
}

// Control decides what may be stored, and in what form.
type Control struct {
	// Chain passes every write through the plugins.
	Chain *admission.Chain
	// QuotaUsage is the usage of each quota.
	QuotaUsage *quota.Usage
	// Files are followed for as long as the server runs: directories of webhooks and policies.
	Files []*configfile.Follower

	followers []follower // what plugins go by
}

// follower keeps the stored objects of a kind, or what is derived from them, in memory.
type follower interface {
	Run(ctx context.Context) error
	// Synced is closed when all stored objects have been read.
	Synced() <-chan struct{}
}

// New makes the chain: the plugins that the flags ask for, and those that no flag
// switches off.
func New(o Options) (*Control, error) {
	files, err := configuration.Load(o.Flags.AdmissionControlConfigFile)
	if err != nil {
		return nil, err
	}
	byDefault := informer.Options[priority.Class]{Index: priority.ByDefault}
	classes := informer.New(o.Resources.PriorityClasses, priority.ClassOf, byDefault, o.Clock, o.Logger)
	limits := lookup.NewScoped[*corev1.LimitRange](o.Resources.LimitRanges, o.Clock, o.Logger)
	quotas := lookup.NewScoped[*corev1.ResourceQuota](o.Resources.ResourceQuotas, o.Clock, o.Logger)
	settings := plugins.Settings{
		Enable: o.Flags.EnableAdmissionPlugins, Disable: o.Flags.DisableAdmissionPlugins,
		Files: files, RangesGiven: o.Flags.NodeRanges.Allocate, Metrics: o.Metrics, Clock: o.Clock,
		OnFileProblem: daemon.LogFileProblems(o.Logger),
		Tolerations:   defaulttoleration.Plugin{NotReadySeconds: o.Flags.NotReadySeconds, UnreachableSeconds: o.Flags.UnreachableSeconds},
	}
	users, err := newUserRules(o, settings)
	if err != nil {
		return nil, fmt.Errorf("admission configuration: %w", err)
	}
	c := &Control{
		QuotaUsage: quota.NewUsage(quota.Options{Quotas: quotas, Store: o.Resources.ResourceQuotas, Stores: o.Stores, Clock: o.Clock}),
		followers:  append(users.followers, classes, limits, quotas),
	}
	chain, err := plugins.Chain(plugins.Objects{
		Store: func(r core.Resource) plugins.Store { return o.Resources.Store(r) }, DefaultPriority: classes,
		LimitRanges: limits, Quotas: c.QuotaUsage, QuotaRules: quotas,
		Authorizer: o.Authorizer, Resource: o.resourceOf,
		MutatingWebhooks: users.mutatingWebhooks, ValidatingWebhooks: users.validatingWebhooks,
		MutatingPolicies: users.mutatingPolicies, ValidatingPolicies: users.validatingPolicies,
	}, settings)
	if err != nil {
		return nil, err
	}
	if c.Files, err = users.followManifests(o, settings); err != nil {
		return nil, fmt.Errorf("admission configuration: %w", err)
	}
	c.Chain = chain.With(o.always()...).Measured(admission.NewMeter(o.Metrics, o.Clock))
	return c, nil
}

// always are the plugins that no flag switches off: upstream makes these checks in
// its storage and its filters rather than in plugins.
func (o Options) always() []admission.Plugin {
	always := []admission.Plugin{
		escalation.Plugin{Rules: o.Rules, Authorizer: o.Authorizer}, certificates.PodSigning{Authorizer: o.Authorizer},
		adminaccess.Plugin{Namespaces: lookup.New[*corev1.Namespace](o.Resources.Namespaces)}, claimstatus.Plugin{Authorizer: o.Authorizer},
	}
	if o.Audited {
		always = append(always, filters.AuditAdmission{})
	}
	return always
}

// resourceOf returns the resource of a kind, if it is served.
func (o Options) resourceOf(kind schema.GroupVersionKind) (core.Resource, bool) {
	served, ok := o.Forms.Resource(kind)
	if !ok {
		return core.Resource{}, false
	}
	return served.Info().Resource, true
}

// Run follows what plugins depend on until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range c.followers {
		group.Go(func() error { return f.Run(ctx) })
	}
	return group.Wait()
}

// Synced are closed when everything that plugins depend on has been read.
func (c *Control) Synced() []<-chan struct{} {
	synced := make([]<-chan struct{}, 0, len(c.followers))
	for _, f := range c.followers {
		synced = append(synced, f.Synced())
	}
	return synced
}
