package profile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/plugins/unsupported"
)

// Build makes the configuration's profiles, by scheduler name.
func (c *Configuration) Build(services Services) (map[string]*framework.Profile, error) {
	profiles := map[string]*framework.Profile{}
	plugins, err := registry(services.Plugins)
	if err != nil {
		return nil, err
	}
	for _, e := range c.Extenders {
		for _, r := range e.ManagedResources {
			if r.IgnoredByScheduler {
				services.IgnoredResources = append(services.IgnoredResources, r.Name)
			}
		}
	}
	sort, args := "", ""
	for i := range c.Profiles {
		name := *c.Profiles[i].SchedulerName
		p, notes, err := build(&c.Profiles[i], plugins, services)
		if err != nil {
			return nil, c.source.locate(fmt.Sprintf("profiles[%d]", i), fmt.Errorf("profile %s: %w", name, err))
		}
		if sort != "" && p.QueueSort.Name() != sort {
			return nil, fmt.Errorf("profile %s: all profiles share one queue and must have the same queueSort plugin", name)
		}
		sort = p.QueueSort.Name()
		own := argumentsOf(&c.Profiles[i], sort)
		if i > 0 && own != args {
			return nil, fmt.Errorf("profile %s: all profiles share one queue and must have the same arguments of %s", name, sort)
		}
		args = own
		profiles[name] = p
		c.Notes = append(c.Notes, notes...)
	}
	return profiles, nil
}

// argumentsOf are what a profile gives to a plugin.
func argumentsOf(p *configv1.KubeSchedulerProfile, plugin string) string {
	for _, config := range p.PluginConfig {
		if config.Name == plugin {
			return string(config.Args.Raw)
		}
	}
	return ""
}

// builder makes each plugin of a profile once, however many points name it.
type builder struct {
	services Services
	registry map[string]factory
	args     map[string]runtime.RawExtension
	made     map[string]framework.Plugin
	notes    map[string]string // by plugin: why something that is said of it has no effect
}

// build also returns notes on what the configuration asks for without effect.
func build(config *configv1.KubeSchedulerProfile, registry map[string]factory, services Services) (*framework.Profile, []string, error) {
	b := &builder{
		services: services,
		registry: registry,
		args:     map[string]runtime.RawExtension{},
		made:     map[string]framework.Plugin{},
		notes:    map[string]string{},
	}
	p, err := b.build(config)
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(b.notes)) {
		notes = append(notes, "profile "+*config.SchedulerName+": plugin "+name+": "+b.notes[name])
	}
	return p, notes, err
}

func (b *builder) build(config *configv1.KubeSchedulerProfile) (*framework.Profile, error) {
	for _, pc := range config.PluginConfig {
		here, err := b.known(pc.Name)
		if err != nil {
			return nil, at("pluginConfig["+pc.Name+"]", fmt.Errorf("pluginConfig: %w", err))
		}
		if !here {
			continue
		}
		if _, twice := b.args[pc.Name]; twice {
			return nil, at("pluginConfig["+pc.Name+"]", fmt.Errorf("pluginConfig: %s is duplicated", pc.Name))
		}
		b.args[pc.Name] = pc.Args
	}
	plugins := config.Plugins
	if plugins == nil {
		plugins = &configv1.Plugins{}
	}
	if err := refuseSets(plugins); err != nil {
		return nil, err
	}
	multi, err := b.merge("multiPoint", defaults, plugins.MultiPoint)
	if err != nil {
		return nil, err
	}
	p := &framework.Profile{SchedulerName: *config.SchedulerName}
	if config.PercentageOfNodesToScore != nil {
		p.PercentageOfNodesToScore = *config.PercentageOfNodesToScore
	}
	if err := b.fill(p, plugins, multi); err != nil {
		return nil, err
	}
	for name := range b.args {
		if b.made[name] == nil {
			b.notes[name] = "it is not enabled at any point: its arguments have no effect"
		}
	}
	if p.QueueSort == nil {
		return nil, fmt.Errorf("no queueSort plugin is enabled")
	}
	if len(p.Bind) == 0 {
		return nil, fmt.Errorf("no bind plugin is enabled")
	}
	return p, nil
}

// refuseSets refuses points that this scheduler does not have.
func refuseSets(p *configv1.Plugins) error {
	for point, set := range map[string]configv1.PluginSet{
		"placementGenerate": p.PlacementGenerate,
		"placementScore":    p.PlacementScore, "podGroupPostFilter": p.PodGroupPostFilter,
	} {
		if len(set.Enabled) > 0 {
			return at("plugins."+point, fmt.Errorf("plugins.%s: plugin %s: this extension point is not supported", point, set.Enabled[0].Name))
		}
	}
	return nil
}

// known reports whether a requested plugin exists here, or is not needed.
func (b *builder) known(name string) (here bool, err error) {
	if b.registry[name] != nil {
		return true, nil
	}
	instead, upstream := absent[name]
	switch {
	case !upstream:
		return false, fmt.Errorf("unknown plugin %q", name)
	case instead == "":
		return false, fmt.Errorf("plugin %s is not supported by this scheduler", name)
	}
	b.notes[name] = instead
	return false, nil
}

// listed is the path of a plugin in a set.
func listed(point, list, name string) string {
	return "plugins." + point + "." + list + "[" + name + "]"
}

// merge applies a set to the default plugins.
func (b *builder) merge(point string, on []configv1.Plugin, set configv1.PluginSet) ([]configv1.Plugin, error) {
	off := map[string]bool{}
	for _, d := range set.Disabled {
		if d.Name == unsupported.Name {
			return nil, at(listed(point, "disabled", d.Name),
				fmt.Errorf("plugins.%s: %s can't be disabled: without it, unsupported settings would be silently ignored", point, d.Name))
		}
		if _, upstream := absent[d.Name]; d.Name != "*" && !upstream && b.registry[d.Name] == nil {
			b.notes[d.Name] = "there is none of this name to be switched off"
		}
		off[d.Name] = true
	}
	replaced := map[string]*configv1.Plugin{}
	for i, e := range set.Enabled {
		here, err := b.known(e.Name)
		if err != nil {
			return nil, at(listed(point, "enabled", e.Name), fmt.Errorf("plugins.%s.enabled: %w", point, err))
		}
		if !here {
			continue
		}
		if replaced[e.Name] != nil {
			return nil, at(listed(point, "enabled", e.Name), fmt.Errorf("plugins.%s.enabled: %s is duplicated", point, e.Name))
		}
		replaced[e.Name] = &set.Enabled[i]
	}
	var merged []configv1.Plugin
	for _, d := range on {
		if (off["*"] || off[d.Name]) && d.Name != unsupported.Name {
			continue
		}
		if r := replaced[d.Name]; r != nil {
			d, replaced[d.Name] = *r, nil // keeps its place, takes the new weight
		}
		merged = append(merged, d)
	}
	for _, e := range set.Enabled {
		if replaced[e.Name] != nil {
			merged = append(merged, e)
		}
	}
	return merged, nil
}

func (b *builder) plugin(name string) (framework.Plugin, error) {
	if p := b.made[name]; p != nil {
		return p, nil
	}
	p, err := b.registry[name](b.args[name], b.services)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: arguments: %w", name, at("pluginConfig["+name+"].args", err))
	}
	b.made[name] = p
	return p, nil
}

// fill sets every extension point of p.
func (b *builder) fill(p *framework.Profile, sets *configv1.Plugins, multi []configv1.Plugin) error {
	points := []func() error{
		func() error { return list(b, "preEnqueue", multi, sets.PreEnqueue, &p.PreEnqueue) },
		func() error { return list(b, "preFilter", multi, sets.PreFilter, &p.PreFilter) },
		func() error { return list(b, "filter", multi, sets.Filter, &p.Filter) },
		func() error { return list(b, "postFilter", multi, sets.PostFilter, &p.PostFilter) },
		func() error { return list(b, "preScore", multi, sets.PreScore, &p.PreScore) },
		func() error { return b.scores(p, multi, sets.Score) },
		func() error { return list(b, "reserve", multi, sets.Reserve, &p.Reserve) },
		func() error { return list(b, "permit", multi, sets.Permit, &p.Permit) },
		func() error { return list(b, "preBind", multi, sets.PreBind, &p.PreBind) },
		func() error { return list(b, "bind", multi, sets.Bind, &p.Bind) },
		func() error { return list(b, "postBind", multi, sets.PostBind, &p.PostBind) },
		func() error { return b.queueSort(p, multi, sets.QueueSort) },
	}
	for _, point := range points {
		if err := point(); err != nil {
			return err
		}
	}
	return nil
}

// taking are the plugins of one point: those of multiPoint that take part in it,
// changed by the point's own set.
func taking[P framework.Plugin](b *builder, point string, multi []configv1.Plugin, set configv1.PluginSet) ([]configv1.Plugin, error) {
	merged, err := b.merge(point, multi, set)
	if err != nil {
		return nil, err
	}
	var takes []configv1.Plugin
	for _, m := range merged {
		plugin, err := b.plugin(m.Name)
		if err != nil {
			return nil, err
		}
		if _, ok := plugin.(P); ok {
			takes = append(takes, m)
		} else if slices.ContainsFunc(set.Enabled, func(e configv1.Plugin) bool { return e.Name == m.Name }) {
			return nil, at(listed(point, "enabled", m.Name), fmt.Errorf("plugins.%s.enabled: %s does not implement this extension point",
				point, m.Name))
		}
	}
	return takes, nil
}

func list[P framework.Plugin](b *builder, point string, multi []configv1.Plugin, set configv1.PluginSet, into *[]P) error {
	plugins, err := taking[P](b, point, multi, set)
	if err != nil {
		return err
	}
	for _, t := range plugins {
		*into = append(*into, b.made[t.Name].(P))
	}
	return nil
}

func (b *builder) scores(p *framework.Profile, multi []configv1.Plugin, set configv1.PluginSet) error {
	plugins, err := taking[framework.Score](b, "score", multi, set)
	if err != nil {
		return err
	}
	for _, t := range plugins {
		w := int64(1)
		if t.Weight != nil && *t.Weight != 0 {
			w = int64(*t.Weight)
		}
		if w < 0 {
			return at(listed("score", "enabled", t.Name), fmt.Errorf("plugins.score: weight %d of %s is less than 0", w, t.Name))
		}
		p.Score = append(p.Score, framework.WeightedScore{Score: b.made[t.Name].(framework.Score), Weight: w})
	}
	return nil
}

func (b *builder) queueSort(p *framework.Profile, multi []configv1.Plugin, set configv1.PluginSet) error {
	plugins, err := taking[framework.QueueSort](b, "queueSort", multi, set)
	if err != nil {
		return err
	}
	if len(plugins) > 1 {
		return fmt.Errorf("plugins.queueSort: only one plugin can order the queue")
	}
	if len(plugins) == 1 {
		p.QueueSort = b.made[plugins[0].Name].(framework.QueueSort)
	}
	return nil
}
