package admissioncontrol

import (
	"context"

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
	"kctl/apiserver/internal/admission/plugins"
	"kctl/apiserver/internal/admission/priority"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/callout"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/server/equivalent"
	"kctl/proto/core"
)

// Options are what a Control is made with.
type Options struct {
	Flags     *config.Options
	Resources *resources.Set
	// Stores are those of everything that is served now, for quotas.
	Stores func() []registry.Resource
	// Forms are the resources in which the same objects can be had.
	Forms *equivalent.Resources
	// Services finds what is behind the services that webhooks name.
	Services callout.Services
	// Authorizer says who may do what beside the request itself; Rules are those
	// of the mode RBAC, which nobody may go beyond.
	Authorizer authz.Authorizer
	Rules      *rbac.Authorizer
	// Audited is whether requests are, so that what plugins say of them is kept.
	Audited bool
	Metrics *prometheus.Registry
	Clock   clock.WithTicker
	Logger  *zap.Logger
}

// Control is how the server decides what may be stored, and in what form.
type Control struct {
	// Chain has every write pass the plugins.
	Chain *admission.Chain
	// QuotaUsage is what is used of each quota.
	QuotaUsage *quota.Usage

	followers []follower // what plugins go by
}

// follower keeps what is stored of a kind, or what was made of it, at hand.
type follower interface {
	Run(ctx context.Context) error
	// Synced is closed when all that is stored has been read.
	Synced() <-chan struct{}
}

// New makes the chain of the plugins that the flags ask for, and of those that no
// flag switches off.
func New(o Options) (*Control, error) {
	files, err := configuration.Load(o.Flags.AdmissionControlConfigFile)
	if err != nil {
		return nil, err
	}
	classes := facts.NewMirror(o.Resources.PriorityClasses, priority.ClassOf, facts.Options[priority.Class]{Index: priority.ByDefault}, o.Clock, o.Logger)
	limits := lookup.NewScoped[*corev1.LimitRange](o.Resources.LimitRanges, o.Clock, o.Logger)
	quotas := lookup.NewScoped[*corev1.ResourceQuota](o.Resources.ResourceQuotas, o.Clock, o.Logger)
	users := newUserRules(o)
	c := &Control{
		QuotaUsage: quota.NewUsage(quota.Options{Quotas: quotas, Store: o.Resources.ResourceQuotas, Stores: o.Stores, Clock: o.Clock}),
		followers:  append(users.followers, classes, limits, quotas),
	}
	chain, err := plugins.Chain(plugins.Objects{
		Namespaces: o.Resources.Namespaces, ServiceAccounts: o.Resources.ServiceAccounts, Pods: o.Resources.Pods, Nodes: o.Resources.Nodes,
		RuntimeClasses: o.Resources.RuntimeClasses, PriorityClasses: o.Resources.PriorityClasses, DefaultPriority: classes,
		Claims: o.Resources.Claims, Volumes: o.Resources.Volumes, CSIDrivers: o.Resources.CSIDrivers,
		StorageClasses: o.Resources.StorageClasses, IngressClasses: o.Resources.IngressClasses,
		LimitRanges: limits, Quotas: c.QuotaUsage, QuotaRules: quotas,
		Authorizer: o.Authorizer, Resource: o.resourceOf,
		MutatingWebhooks: users.mutatingWebhooks, ValidatingWebhooks: users.validatingWebhooks,
		MutatingPolicies: users.mutatingPolicies, ValidatingPolicies: users.validatingPolicies,
	}, plugins.Settings{
		Enable: o.Flags.EnableAdmissionPlugins, Disable: o.Flags.DisableAdmissionPlugins,
		Files: files, Clock: o.Clock,
		Tolerations: defaulttoleration.Plugin{NotReadySeconds: o.Flags.NotReadySeconds, UnreachableSeconds: o.Flags.UnreachableSeconds},
	})
	if err != nil {
		return nil, err
	}
	c.Chain = chain.With(o.always()...)
	return c, nil
}

// always are the plugins that no flag switches off: what they check is no plugin of
// upstream's, but stands in its storage and its filters.
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

// resourceOf is the resource whose objects are of a kind, if it is served.
func (o Options) resourceOf(kind schema.GroupVersionKind) (core.Resource, bool) {
	served, ok := o.Forms.Resource(kind)
	if !ok {
		return core.Resource{}, false
	}
	return served.Info().Resource, true
}

// Run follows what plugins go by until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range c.followers {
		group.Go(func() error { return f.Run(ctx) })
	}
	return group.Wait()
}

// Synced are closed when all that plugins go by has been read.
func (c *Control) Synced() []<-chan struct{} {
	synced := make([]<-chan struct{}, 0, len(c.followers))
	for _, f := range c.followers {
		synced = append(synced, f.Synced())
	}
	return synced
}
