package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/scheduler/internal/plugins/imagelocality"
	"kctl/scheduler/internal/plugins/interpodaffinity"
	"kctl/scheduler/internal/plugins/nodeaffinity"
	"kctl/scheduler/internal/plugins/nodename"
	"kctl/scheduler/internal/plugins/nodeports"
	"kctl/scheduler/internal/plugins/noderesources"
	"kctl/scheduler/internal/plugins/nodeunschedulable"
	"kctl/scheduler/internal/plugins/nodevolumelimits"
	"kctl/scheduler/internal/plugins/podtopologyspread"
	"kctl/scheduler/internal/plugins/tainttoleration"
	"kctl/scheduler/internal/plugins/volumebinding"
	"kctl/scheduler/internal/plugins/volumerestrictions"
	"kctl/scheduler/internal/plugins/volumezone"
)

// policy is the file of --policy-config-file, which upstream's scheduler read
// until Kubernetes 1.22 (Kubernetes v1.20 docs, "Scheduling Policies").
type policy struct {
	metav1.TypeMeta `json:",inline"`
	// If Predicates or Priorities are missing, the defaults apply; an empty list
	// means none.
	Predicates                     *[]predicate     `json:"predicates"`
	Priorities                     *[]priority      `json:"priorities"`
	Extenders                      []policyExtender `json:"extenders"`
	HardPodAffinitySymmetricWeight *int32           `json:"hardPodAffinitySymmetricWeight"`
	AlwaysCheckAllPredicates       bool             `json:"alwaysCheckAllPredicates"`
}

type predicate struct {
	Name     string `json:"name"`
	Argument *struct {
		LabelsPresence *struct {
			Labels   []string `json:"labels"`
			Presence bool     `json:"presence"`
		} `json:"labelsPresence"`
		ServiceAffinity json.RawMessage `json:"serviceAffinity"`
	} `json:"argument"`
}

type priority struct {
	Name     string `json:"name"`
	Weight   int64  `json:"weight"`
	Argument *struct {
		RequestedToCapacityRatio *struct {
			Shape     []configv1.UtilizationShapePoint `json:"shape"`
			Resources []configv1.ResourceSpec          `json:"resources"`
		} `json:"requestedToCapacityRatioArguments"`
		ServiceAntiAffinity json.RawMessage `json:"serviceAntiAffinity"`
		LabelPreference     json.RawMessage `json:"labelPreference"`
	} `json:"argument"`
}

// policyExtender differs from today's extender in two names and the unit of a duration.
type policyExtender struct {
	configv1.Extender `json:",inline"`
	EnableHTTPS       bool          `json:"enableHttps"`
	HTTPTimeout       time.Duration `json:"httpTimeout"` // in nanoseconds
}

// predicatePlugins are the filters that predicates became.
var predicatePlugins = map[string][]string{
	"GeneralPredicates":       {noderesources.FitName, nodename.Name, nodeports.Name, nodeaffinity.Name},
	"PodFitsResources":        {noderesources.FitName},
	"PodFitsHostPorts":        {nodeports.Name},
	"PodFitsPorts":            {nodeports.Name},
	"HostName":                {nodename.Name},
	"MatchNodeSelector":       {nodeaffinity.Name},
	"PodToleratesNodeTaints":  {tainttoleration.Name},
	"CheckNodeUnschedulable":  {nodeunschedulable.Name},
	"MatchInterPodAffinity":   {interpodaffinity.Name},
	"EvenPodsSpread":          {podtopologyspread.Name},
	"NoDiskConflict":          {volumerestrictions.Name},
	"NoVolumeZoneConflict":    {volumezone.Name},
	"CheckVolumeBinding":      {volumebinding.Name},
	"MaxCSIVolumeCountPred":   {nodevolumelimits.Name},
	"MaxEBSVolumeCount":       {nodevolumelimits.Name},
	"MaxGCEPDVolumeCount":     {nodevolumelimits.Name},
	"MaxAzureDiskVolumeCount": {nodevolumelimits.Name},
	"MaxCinderVolumeCount":    {nodevolumelimits.Name},
}

// mandatory are the filters that a policy could not switch off.
var mandatory = []string{tainttoleration.Name, nodeunschedulable.Name}

// priorityPlugins are the scores that priorities became.
var priorityPlugins = map[string]string{
	"LeastRequestedPriority":     noderesources.FitName,
	"MostRequestedPriority":      noderesources.FitName,
	"BalancedResourceAllocation": noderesources.BalancedName,
	"SelectorSpreadPriority":     podtopologyspread.Name,
	"ServiceSpreadingPriority":   podtopologyspread.Name,
	"EvenPodsSpreadPriority":     podtopologyspread.Name,
	"InterPodAffinityPriority":   interpodaffinity.Name,
	"NodeAffinityPriority":       nodeaffinity.Name,
	"TaintTolerationPriority":    tainttoleration.Name,
	"ImageLocalityPriority":      imagelocality.Name,
}

// The defaults of Kubernetes 1.20.
var (
	defaultPredicates = []predicate{
		{Name: "GeneralPredicates"}, {Name: "PodToleratesNodeTaints"}, {Name: "CheckNodeUnschedulable"},
		{Name: "MatchInterPodAffinity"}, {Name: "EvenPodsSpread"}, {Name: "NoDiskConflict"}, {Name: "NoVolumeZoneConflict"},
		{Name: "CheckVolumeBinding"}, {Name: "MaxCSIVolumeCountPred"},
	}
	defaultPriorities = []priority{
		{Name: "SelectorSpreadPriority", Weight: 1}, {Name: "InterPodAffinityPriority", Weight: 1},
		{Name: "LeastRequestedPriority", Weight: 1}, {Name: "BalancedResourceAllocation", Weight: 1},
		{Name: "NodeAffinityPriority", Weight: 1}, {Name: "TaintTolerationPriority", Weight: 1},
		{Name: "ImageLocalityPriority", Weight: 1}, {Name: "EvenPodsSpreadPriority", Weight: 2},
	}
)

// LoadPolicy reads a policy file and converts it.
func LoadPolicy(path string) (*Configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scheduler policy: %w", err)
	}
	c, err := parsePolicy(data)
	if err != nil {
		return nil, fmt.Errorf("scheduler policy %s: %w", path, err)
	}
	return c, nil
}

// parsePolicy converts a policy in JSON or YAML to today's equivalent.
func parsePolicy(data []byte) (*Configuration, error) {
	from, p := newSource(data), &policy{}
	if err := decode(data, p); err != nil {
		return nil, from.locate("", err)
	}
	if p.Kind != "Policy" || p.APIVersion != "v1" {
		return nil, from.locate("apiVersion", fmt.Errorf("apiVersion %q, kind %q: must be v1, Policy", p.APIVersion, p.Kind))
	}
	conversion := &conversion{filters: slices.Clone(mandatory), weights: map[string]int32{}, spread: configv1.ListDefaulting}
	if err := conversion.convert(p); err != nil {
		return nil, from.locate("", err)
	}
	file, err := conversion.configuration(p)
	if err != nil {
		return nil, err
	}
	c, err := complete(file)
	if err == nil {
		c.Notes = conversion.notes
	}
	return c, err
}

// conversion collects what a policy requests.
type conversion struct {
	filters  []string
	weights  map[string]int32 // of scores
	strategy *configv1.ScoringStrategy
	by       string // the priority that chose the strategy
	added    []corev1.NodeSelectorRequirement
	spread   configv1.PodTopologySpreadConstraintsDefaulting
	notes    []string
}

func (c *conversion) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *conversion) convert(p *policy) error {
	predicates, priorities := defaultPredicates, defaultPriorities
	if p.Predicates != nil {
		predicates = *p.Predicates
	}
	if p.Priorities != nil {
		priorities = *p.Priorities
	}
	for i := range predicates {
		if err := c.predicate(&predicates[i]); err != nil {
			return at(fmt.Sprintf("predicates[%d]", i), err)
		}
	}
	for i := range priorities {
		if err := c.priority(&priorities[i]); err != nil {
			return at(fmt.Sprintf("priorities[%d]", i), err)
		}
	}
	if p.AlwaysCheckAllPredicates {
		c.note("alwaysCheckAllPredicates has no effect: an attempt stops at a node's first refusal, and /debug/explain tells all of them")
	}
	if p.HardPodAffinitySymmetricWeight != nil && !c.has(interpodaffinity.Name) {
		c.note("hardPodAffinitySymmetricWeight has no effect without MatchInterPodAffinity and InterPodAffinityPriority")
	}
	return nil
}

func (c *conversion) predicate(p *predicate) error {
	if p.Argument != nil && len(p.Argument.ServiceAffinity) > 0 {
		return fmt.Errorf("predicate %s: serviceAffinity is not supported: it has no counterpart today", p.Name)
	}
	if p.Argument != nil && p.Argument.LabelsPresence != nil {
		operator := corev1.NodeSelectorOpDoesNotExist
		if p.Argument.LabelsPresence.Presence {
			operator = corev1.NodeSelectorOpExists
		}
		for _, label := range p.Argument.LabelsPresence.Labels {
			c.added = append(c.added, corev1.NodeSelectorRequirement{Key: label, Operator: operator})
		}
		c.filter(nodeaffinity.Name)
		c.note("predicate %s became addedAffinity of %s, which also holds pods to their own node selectors", p.Name, nodeaffinity.Name)
		return nil
	}
	plugins, known := predicatePlugins[p.Name]
	if !known {
		return fmt.Errorf("predicate %q is not supported", p.Name)
	}
	for _, plugin := range plugins {
		c.filter(plugin)
		c.note("predicate %s became the filter of plugin %s", p.Name, plugin)
	}
	return nil
}

func (c *conversion) filter(plugin string) {
	if !slices.Contains(c.filters, plugin) {
		c.filters = append(c.filters, plugin)
	}
}

func (c *conversion) priority(p *priority) error {
	switch {
	case p.Name == "EqualPriority":
		c.note("priority %s is left out: it ranks all nodes the same", p.Name)
		return nil
	case p.Name == "NodePreferAvoidPodsPriority":
		c.note("priority %s is left out: Kubernetes gave up the annotation that it reads", p.Name)
		return nil
	}
	plugin, known := priorityPlugins[p.Name]
	if p.Argument != nil && p.Argument.RequestedToCapacityRatio != nil {
		plugin, known = noderesources.FitName, true // under any name
	}
	if !known {
		return fmt.Errorf("priority %q is not supported", p.Name)
	}
	if p.Weight < 1 || p.Weight > 1_000_000 {
		return fmt.Errorf("weight: %d of priority %s is not between 1 and 1000000", p.Weight, p.Name)
	}
	if plugin == noderesources.FitName {
		if c.strategy != nil {
			return fmt.Errorf("priority %s can't be combined with %s: a profile scores resources with one strategy", p.Name, c.by)
		}
		c.strategy, c.by = strategyOf(p), p.Name
	}
	if p.Name == "SelectorSpreadPriority" || p.Name == "ServiceSpreadingPriority" {
		c.spread = configv1.SystemDefaulting
	}
	c.weights[plugin] = max(c.weights[plugin], int32(p.Weight))
	c.note("priority %s became the score of plugin %s", p.Name, plugin)
	return nil
}

func strategyOf(p *priority) *configv1.ScoringStrategy {
	equal := []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	switch {
	case p.Argument != nil && p.Argument.RequestedToCapacityRatio != nil:
		ratio := p.Argument.RequestedToCapacityRatio
		return &configv1.ScoringStrategy{
			Type:                     configv1.RequestedToCapacityRatio,
			Resources:                ratio.Resources,
			RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{Shape: ratio.Shape},
		}
	case p.Name == "MostRequestedPriority":
		return &configv1.ScoringStrategy{Type: configv1.MostAllocated, Resources: equal}
	}
	return &configv1.ScoringStrategy{Type: configv1.LeastAllocated, Resources: equal}
}

func (c *conversion) has(plugin string) bool {
	_, scores := c.weights[plugin]
	return scores || slices.Contains(c.filters, plugin)
}

// configuration enables every plugin that filters or scores at all points, and
// takes each out of the points where the policy does not have it.
func (c *conversion) configuration(p *policy) (*configv1.KubeSchedulerConfiguration, error) {
	plugins := &configv1.Plugins{}
	for _, d := range defaults {
		weight, scores := c.weights[d.Name]
		filters := slices.Contains(c.filters, d.Name)
		off := configv1.Plugin{Name: d.Name}
		switch {
		case !decides(d.Name):
			continue
		case !filters && !scores:
			plugins.MultiPoint.Disabled = append(plugins.MultiPoint.Disabled, off)
			continue
		case !filters:
			plugins.PreFilter.Disabled = append(plugins.PreFilter.Disabled, off)
			plugins.Filter.Disabled = append(plugins.Filter.Disabled, off)
		case !scores:
			plugins.PreScore.Disabled = append(plugins.PreScore.Disabled, off)
			plugins.Score.Disabled = append(plugins.Score.Disabled, off)
		}
		plugins.MultiPoint.Enabled = append(plugins.MultiPoint.Enabled, configv1.Plugin{Name: d.Name, Weight: &weight})
	}
	profile := configv1.KubeSchedulerProfile{Plugins: plugins}
	var errs []error
	for name, arguments := range c.arguments(p) {
		raw, err := json.Marshal(arguments)
		errs = append(errs, err)
		profile.PluginConfig = append(profile.PluginConfig, configv1.PluginConfig{Name: name, Args: runtime.RawExtension{Raw: raw}})
	}
	file := &configv1.KubeSchedulerConfiguration{Profiles: []configv1.KubeSchedulerProfile{profile}}
	for _, e := range p.Extenders {
		e.Extender.EnableHTTPS, e.Extender.HTTPTimeout = e.EnableHTTPS, metav1.Duration{Duration: e.HTTPTimeout}
		file.Extenders = append(file.Extenders, e.Extender)
	}
	return file, errors.Join(errs...)
}

// arguments are those of the plugins, by name.
func (c *conversion) arguments(p *policy) map[string]any {
	args := map[string]any{}
	if c.strategy != nil {
		args[noderesources.FitName] = configv1.NodeResourcesFitArgs{ScoringStrategy: c.strategy}
	}
	if len(c.added) > 0 {
		args[nodeaffinity.Name] = configv1.NodeAffinityArgs{AddedAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: c.added}},
			},
		}}
	}
	if c.has(podtopologyspread.Name) {
		args[podtopologyspread.Name] = configv1.PodTopologySpreadArgs{DefaultingType: c.spread}
	}
	if p.HardPodAffinitySymmetricWeight != nil && c.has(interpodaffinity.Name) {
		args[interpodaffinity.Name] = configv1.InterPodAffinityArgs{HardPodAffinityWeight: p.HardPodAffinitySymmetricWeight}
	}
	return args
}

// decides reports whether a plugin is one that policies are about.
func decides(plugin string) bool {
	for _, filters := range predicatePlugins {
		if slices.Contains(filters, plugin) {
			return true
		}
	}
	for _, scores := range priorityPlugins {
		if scores == plugin {
			return true
		}
	}
	return false
}
