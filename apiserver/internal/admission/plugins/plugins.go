package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/admission/limitranger"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/namespaceautoprovision"
	"kctl/apiserver/internal/admission/priority"
	"kctl/apiserver/internal/admission/resourcequota"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/quota"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Store is the store of one resource: its registry.Resource.
type Store interface {
	lookup.Source
	namespaceautoprovision.Store
	List(ctx context.Context, namespace string, o registry.ListOptions) (registry.List, error)
}

// Objects are where plugins look up the objects they need.
type Objects struct {
	// Store returns the store of a built-in resource; nil if there is none.
	Store func(core.Resource) Store
	// Plugins for users' webhooks and policies, which follow the stored ones.
	MutatingWebhooks, ValidatingWebhooks admission.Plugin
	MutatingPolicies, ValidatingPolicies admission.Plugin
	// DefaultPriority knows the priority class for pods without one.
	DefaultPriority priority.Defaults
	LimitRanges     limitranger.Ranges
	// Quotas tracks the usage of the quotas that QuotaRules finds.
	Quotas     resourcequota.Usage
	QuotaRules quota.Quotas
	// Authorizer decides who may approve and sign certificates.
	Authorizer authz.Authorizer
	// Resource returns the resource of a kind, if it is served.
	Resource func(schema.GroupVersionKind) (core.Resource, bool)
}

// Settings are the flags' values.
type Settings struct {
	Enable, Disable []string
	// Files is the content of --admission-control-config-file.
	Files configuration.Files
	// Tolerations are for pods without tolerations of unready nodes.
	Tolerations defaulttoleration.Plugin
	// RangesGiven: nodes get the ranges of their pods from this server.
	RangesGiven bool
	Metrics     prometheus.Registerer
	Clock       clock.Clock
	// OnFileProblem hears of what is wrong with credentials that are shown to webhooks; nil for nobody.
	OnFileProblem func(error)
}

// dependencies are what plugins are built from.
type dependencies struct {
	Objects
	Settings
	// Shared, so that each is decoded once for all plugins.
	namespaces *lookup.Objects[*core.Namespace]
	nodes      *lookup.Objects[*core.Node]

	missing []string // resources that plugins have asked for, and that there are none of
}

func newDependencies(o Objects, s Settings) *dependencies {
	d := &dependencies{Objects: o, Settings: s}
	d.namespaces, d.nodes = find[*core.Namespace](d, core.Namespaces), find[*core.Node](d, core.Nodes)
	return d
}

// store returns the store of a resource. Chain refuses to go on if there is none.
func (d *dependencies) store(r core.Resource) Store {
	store := d.Store(r)
	if store == nil {
		d.missing = append(d.missing, r.Name)
	}
	return store
}

// find returns what looks up objects of a resource.
func find[T core.Object](d *dependencies, r core.Resource) *lookup.Objects[T] {
	return lookup.New[T](d.store(r))
}

// pluginEntry is one of upstream's plugins.
type pluginEntry struct {
	name string
	// enabledByDefault: it runs unless it is disabled; the others run if they are enabled.
	enabledByDefault bool
	// configurable plugins may have a part in the configuration file.
	configurable bool
	make         func(d *dependencies) (admission.Plugin, error)
}

// pluginNames lists the plugins that this server has, in the order in which they run.
func pluginNames() []string {
	var names []string
	for _, p := range allPlugins {
		names = append(names, p.name)
	}
	return names
}

func named(name string) (pluginEntry, bool) {
	i := slices.IndexFunc(allPlugins, func(e pluginEntry) bool { return e.name == name })
	if i < 0 {
		return pluginEntry{}, false
	}
	return allPlugins[i], true
}

// validate refuses names of --enable-admission-plugins and
// --disable-admission-plugins that no plugin has, or that both have.
func validate(enable, disable []string) error {
	for _, name := range slices.Concat(enable, disable) {
		if _, ok := named(name); !ok {
			return fmt.Errorf("admission plugin %q is not one that this server has: %s", name, strings.Join(pluginNames(), ", "))
		}
	}
	for _, name := range enable {
		if slices.Contains(disable, name) {
			return fmt.Errorf("admission plugin %q is both enabled and disabled", name)
		}
	}
	return nil
}

// validateFiles refuses parts of the configuration file that no plugin reads.
func validateFiles(files configuration.Files) error {
	for name := range files {
		e, ok := named(name)
		switch {
		case !ok:
			return fmt.Errorf("admission configuration: unknown plugin %q; known are %s", name, strings.Join(pluginNames(), ", "))
		case !e.configurable:
			return fmt.Errorf("admission configuration: plugin %s has no configuration", name)
		}
	}
	return nil
}

// Enabled reports whether the plugin of that name runs.
func (s Settings) Enabled(name string) bool {
	p, ok := named(name)
	return ok && s.enables(p)
}

func (s Settings) enables(p pluginEntry) bool {
	return p.enabledByDefault && !slices.Contains(s.Disable, p.name) || slices.Contains(s.Enable, p.name)
}

// Chain builds the chain of all enabled plugins.
func Chain(o Objects, s Settings) (*admission.Chain, error) {
	if err := validate(s.Enable, s.Disable); err != nil {
		return nil, err
	}
	if err := validateFiles(s.Files); err != nil {
		return nil, err
	}
	d := newDependencies(o, s)
	var on []admission.Plugin
	for _, p := range allPlugins {
		if !s.enables(p) {
			continue
		}
		plugin, err := p.make(d)
		if err != nil {
			return nil, err
		}
		on = append(on, admission.Named{Plugin: plugin, Name: p.name})
	}
	if len(d.missing) > 0 {
		return nil, fmt.Errorf("admission: there are no %s", strings.Join(d.missing, ", "))
	}
	return admission.NewChain(on...), nil
}
