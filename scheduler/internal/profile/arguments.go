package profile

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/plugins/defaultbinder"
	"kctl/scheduler/internal/plugins/defaultpreemption"
	"kctl/scheduler/internal/plugins/interpodaffinity"
	"kctl/scheduler/internal/plugins/nodeaffinity"
	"kctl/scheduler/internal/plugins/noderesources"
	"kctl/scheduler/internal/plugins/podtopologyspread"
	"kctl/scheduler/internal/shape"
)

// arguments decodes args strictly; if they have a kind, it must be this one.
func arguments(args runtime.RawExtension, kind string, into runtime.Object) error {
	if len(args.Raw) == 0 {
		return nil
	}
	if err := decode(args.Raw, into); err != nil {
		return err
	}
	gvk := into.GetObjectKind().GroupVersionKind()
	if gvk.Kind != "" && gvk.Kind != kind {
		return fmt.Errorf("kind %q: must be %s", gvk.Kind, kind)
	}
	if v := gvk.GroupVersion().String(); v != "" && v != apiVersion {
		return fmt.Errorf("apiVersion %q: must be %s", v, apiVersion)
	}
	return nil
}

func newNodeAffinity(raw runtime.RawExtension, _ Services) (framework.Plugin, error) {
	var args configv1.NodeAffinityArgs
	if err := arguments(raw, "NodeAffinityArgs", &args); err != nil {
		return nil, err
	}
	return nodeaffinity.New(args.AddedAffinity)
}

func newFit(raw runtime.RawExtension, services Services) (framework.Plugin, error) {
	var args configv1.NodeResourcesFitArgs
	if err := arguments(raw, "NodeResourcesFitArgs", &args); err != nil {
		return nil, err
	}
	for i, name := range args.IgnoredResources {
		if err := qualified(fmt.Sprintf("ignoredResources[%d]", i), name); err != nil {
			return nil, err
		}
	}
	for i, group := range args.IgnoredResourceGroups {
		name := fmt.Sprintf("ignoredResourceGroups[%d]", i)
		if strings.Contains(group, "/") {
			return nil, invalid(name, group, "resource group name can't contain '/'")
		}
		if err := qualified(name, group); err != nil {
			return nil, err
		}
	}
	options := noderesources.FitOptions{
		IgnoredResources: slices.Concat(args.IgnoredResources, services.IgnoredResources),
		IgnoredGroups:    args.IgnoredResourceGroups,
	}
	if args.ScoringStrategy != nil {
		if err := readStrategy(args.ScoringStrategy, &options); err != nil {
			return nil, err
		}
	}
	return noderesources.NewFit(options), nil
}

func readStrategy(s *configv1.ScoringStrategy, into *noderesources.FitOptions) (err error) {
	ratio, at := s.RequestedToCapacityRatio, field.NewPath("scoringStrategy", "requestedToCapacityRatio")
	switch s.Type {
	case configv1.LeastAllocated:
	case configv1.MostAllocated:
		into.MostAllocated = true
	case configv1.RequestedToCapacityRatio:
		if ratio == nil {
			return field.Required(at, "must be specified when type is RequestedToCapacityRatio")
		}
		if into.Shape, err = readShape(ratio.Shape, at.Child("shape").String()); err != nil {
			return err
		}
	default:
		return field.NotSupported(field.NewPath("scoringStrategy.type"), s.Type,
			[]configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio})
	}
	if ratio != nil && s.Type != configv1.RequestedToCapacityRatio {
		return field.Forbidden(at, "must be nil when type is not RequestedToCapacityRatio")
	}
	into.Weights, err = weights(s.Resources, "scoringStrategy.resources")
	return err
}

// qualified returns an error for a name that no resource and no label can have.
func qualified(at, name string) error {
	if faults := validation.IsQualifiedName(name); len(faults) > 0 {
		return invalid(at, name, strings.Join(faults, ", "))
	}
	return nil
}

// readShape reads the points of a field, whose scores go to 10.
func readShape(points []configv1.UtilizationShapePoint, name string) (shape.Function, error) {
	const most = 10
	if len(points) == 0 {
		return nil, field.Required(field.NewPath(name), "at least one point must be specified")
	}
	var read shape.Function
	for i, p := range points {
		switch {
		case p.Utilization < 0 || p.Utilization > 100:
			return nil, invalid(fmt.Sprintf("%s[%d].utilization", name, i), p.Utilization, "not in valid range [0, 100]")
		case p.Score < 0 || p.Score > most:
			return nil, invalid(fmt.Sprintf("%s[%d].score", name, i), p.Score, fmt.Sprintf("not in valid range [0, %d]", most))
		case i > 0 && p.Utilization <= points[i-1].Utilization:
			return nil, invalid(fmt.Sprintf("%s[%d].utilization", name, i), p.Utilization, "values must be sorted in increasing order")
		}
		read = append(read, shape.Point{Utilization: int64(p.Utilization), Score: int64(p.Score) * framework.MaxNodeScore / most})
	}
	return read, nil
}

func newBalanced(raw runtime.RawExtension, _ Services) (framework.Plugin, error) {
	var args configv1.NodeResourcesBalancedAllocationArgs
	if err := arguments(raw, "NodeResourcesBalancedAllocationArgs", &args); err != nil {
		return nil, err
	}
	resources, err := weights(args.Resources, "resources")
	if err != nil {
		return nil, err
	}
	seen := map[corev1.ResourceName]bool{}
	for i, r := range resources {
		if seen[r.Resource] {
			return nil, field.Duplicate(field.NewPath("resources").Index(i).Child("name"), r.Resource)
		}
		seen[r.Resource] = true
		if r.Weight != 1 {
			return nil, invalid(fmt.Sprintf("resources[%d].weight", i), r.Weight, "must be 1")
		}
	}
	return noderesources.NewBalanced(resources), nil
}

func weights(specs []configv1.ResourceSpec, name string) ([]noderesources.Weight, error) {
	var out []noderesources.Weight
	for i, s := range specs {
		w := s.Weight
		if w == 0 {
			w = 1
		}
		path := field.NewPath(name).Index(i)
		switch {
		case s.Name == "":
			return nil, field.Required(path.Child("name"), "")
		case w < 1 || w > 100:
			return nil, field.Invalid(path.Child("weight"), w, fmt.Sprintf("resource weight of %s not in valid range (0, 100]", s.Name))
		}
		out = append(out, noderesources.Weight{Resource: corev1.ResourceName(s.Name), Weight: w})
	}
	return out, nil
}

func newTopologySpread(raw runtime.RawExtension, services Services) (framework.Plugin, error) {
	var args configv1.PodTopologySpreadArgs
	if err := arguments(raw, "PodTopologySpreadArgs", &args); err != nil {
		return nil, err
	}
	options := podtopologyspread.Options{Defaults: args.DefaultConstraints}
	switch args.DefaultingType {
	case configv1.SystemDefaulting, "":
		if len(args.DefaultConstraints) > 0 {
			return nil, invalid("defaultingType", configv1.SystemDefaulting, "when .defaultConstraints are not empty")
		}
		options.System = true
	case configv1.ListDefaulting:
	default:
		return nil, field.NotSupported(field.NewPath("defaultingType"), args.DefaultingType,
			[]configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting})
	}
	if err := checkConstraints(args.DefaultConstraints); err != nil {
		return nil, err
	}
	options.Selector = func(*core.Pod) labels.Selector { return nil }
	if services.Selectors != nil && (options.System || len(options.Defaults) > 0) {
		services.Selectors.Want()
		options.Selector = services.Selectors.Of
	}
	return podtopologyspread.New(options), nil
}

func checkConstraints(constraints []corev1.TopologySpreadConstraint) error {
	type kind struct {
		key    string
		action corev1.UnsatisfiableConstraintAction
	}
	seen := map[kind]bool{}
	for i, c := range constraints {
		k, path := kind{c.TopologyKey, c.WhenUnsatisfiable}, field.NewPath("defaultConstraints").Index(i)
		switch {
		case c.MaxSkew <= 0:
			return field.Invalid(path.Child("maxSkew"), c.MaxSkew, "not in valid range (0, inf)")
		case c.TopologyKey == "":
			return field.Required(path.Child("topologyKey"), "can not be empty")
		case qualified("", c.TopologyKey) != nil:
			return qualified(path.Child("topologyKey").String(), c.TopologyKey)
		case c.WhenUnsatisfiable == "":
			return field.Required(path.Child("whenUnsatisfiable"), "can not be empty")
		case c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway:
			return field.NotSupported(path.Child("whenUnsatisfiable"), c.WhenUnsatisfiable,
				[]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway})
		case c.LabelSelector != nil:
			return field.Forbidden(path.Child("labelSelector"), "constraint must not define a selector, as they deduced for each pod")
		case seen[k]:
			return field.Duplicate(path, fmt.Sprintf("{%s, %s}", k.key, k.action))
		}
		seen[k] = true
	}
	return nil
}

func newInterPodAffinity(raw runtime.RawExtension, services Services) (framework.Plugin, error) {
	var args configv1.InterPodAffinityArgs
	if err := arguments(raw, "InterPodAffinityArgs", &args); err != nil {
		return nil, err
	}
	options := interpodaffinity.Options{HardPodAffinityWeight: 1, IgnorePreferredTermsOfExistingPods: args.IgnorePreferredTermsOfExistingPods}
	if w := args.HardPodAffinityWeight; w != nil {
		if *w < 0 || *w > 100 {
			return nil, invalid("hardPodAffinityWeight", *w, "not in valid range [0, 100]")
		}
		options.HardPodAffinityWeight = int64(*w)
	}
	return interpodaffinity.New(options, services.Namespaces), nil
}

func newBinder(args runtime.RawExtension, services Services) (framework.Plugin, error) {
	if len(args.Raw) > 0 {
		return nil, errNoArguments
	}
	return defaultbinder.New(services.Client, services.Clock), nil
}

func newPreemption(raw runtime.RawExtension, services Services) (framework.Plugin, error) {
	var args configv1.DefaultPreemptionArgs
	if err := arguments(raw, "DefaultPreemptionArgs", &args); err != nil {
		return nil, err
	}
	options := defaultpreemption.DefaultOptions
	if p := args.MinCandidateNodesPercentage; p != nil {
		if *p < 0 || *p > 100 {
			return nil, invalid("minCandidateNodesPercentage", *p, "not in valid range [0, 100]")
		}
		options.MinCandidateNodesPercentage = int(*p)
	}
	if n := args.MinCandidateNodesAbsolute; n != nil {
		if *n < 0 {
			return nil, invalid("minCandidateNodesAbsolute", *n, "not in valid range [0, inf)")
		}
		options.MinCandidateNodesAbsolute = int(*n)
	}
	if options.MinCandidateNodesPercentage == 0 && options.MinCandidateNodesAbsolute == 0 {
		return nil, invalid("minCandidateNodesPercentage", 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
	}
	return defaultpreemption.New(options, services.Preemption), nil
}
