package profile

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/plugins/defaultbinder"
	"kctl/scheduler/internal/plugins/defaultpreemption"
	"kctl/scheduler/internal/plugins/imagelocality"
	"kctl/scheduler/internal/plugins/interpodaffinity"
	"kctl/scheduler/internal/plugins/nodeaffinity"
	"kctl/scheduler/internal/plugins/nodedeclaredfeatures"
	"kctl/scheduler/internal/plugins/nodename"
	"kctl/scheduler/internal/plugins/nodeports"
	"kctl/scheduler/internal/plugins/noderesources"
	"kctl/scheduler/internal/plugins/nodeunschedulable"
	"kctl/scheduler/internal/plugins/nodevolumelimits"
	"kctl/scheduler/internal/plugins/podtopologyspread"
	"kctl/scheduler/internal/plugins/prioritysort"
	"kctl/scheduler/internal/plugins/schedulinggates"
	"kctl/scheduler/internal/plugins/tainttoleration"
	"kctl/scheduler/internal/plugins/unsupported"
	"kctl/scheduler/internal/plugins/volumebinding"
	"kctl/scheduler/internal/plugins/volumerestrictions"
	"kctl/scheduler/internal/plugins/volumezone"
	"kctl/scheduler/internal/selectors"
	"kctl/scheduler/internal/volumes"
)

// Services are what plugins are given.
type Services struct {
	framework.Handle
	Preemption defaultpreemption.Services
	// Selectors is asked about pods that are spread by default constraints.
	Selectors *selectors.Selectors
	// Volumes is asked about pods with claims.
	Volumes *volumes.Volumes
	// IgnoredResources are counted by extenders instead of plugins.
	IgnoredResources []string
	// Plugins are additional plugins, by name.
	Plugins map[string]framework.Factory
}

// factory makes a plugin from its arguments, which may be empty.
type factory func(args runtime.RawExtension, services Services) (framework.Plugin, error)

// builtin has every built-in plugin.
var builtin = map[string]factory{
	schedulinggates.Name:       plain(schedulinggates.New),
	prioritysort.Name:          plain(prioritysort.New),
	nodename.Name:              plain(nodename.New),
	nodeunschedulable.Name:     plain(nodeunschedulable.New),
	tainttoleration.Name:       plain(tainttoleration.New),
	nodeports.Name:             plain(nodeports.New),
	unsupported.Name:           plain(unsupported.New),
	nodedeclaredfeatures.Name:  plain(nodedeclaredfeatures.New),
	imagelocality.Name:         plain(imagelocality.New),
	volumebinding.Name:         newVolumeBinding,
	volumezone.Name:            aboutVolumes(volumezone.New),
	volumerestrictions.Name:    aboutVolumes(volumerestrictions.New),
	nodevolumelimits.Name:      aboutVolumes(nodevolumelimits.New),
	nodeaffinity.Name:          newNodeAffinity,
	podtopologyspread.Name:     newTopologySpread,
	interpodaffinity.Name:      newInterPodAffinity,
	noderesources.FitName:      newFit,
	noderesources.BalancedName: newBalanced,
	defaultbinder.Name:         newBinder,
	defaultpreemption.Name:     newPreemption,
}

// defaults are the plugins of a profile that names none, in upstream's order
// and with upstream's weights.
var defaults = []configv1.Plugin{
	{Name: unsupported.Name},
	{Name: schedulinggates.Name},
	{Name: prioritysort.Name},
	{Name: nodename.Name},
	{Name: nodeunschedulable.Name},
	{Name: tainttoleration.Name, Weight: new(int32(3))},
	{Name: nodeaffinity.Name, Weight: new(int32(2))},
	{Name: nodeports.Name},
	{Name: noderesources.FitName, Weight: new(int32(1))},
	{Name: volumerestrictions.Name},
	{Name: nodevolumelimits.Name},
	{Name: volumebinding.Name},
	{Name: volumezone.Name},
	{Name: podtopologyspread.Name, Weight: new(int32(2))},
	{Name: interpodaffinity.Name, Weight: new(int32(2))},
	{Name: defaultpreemption.Name},
	{Name: noderesources.BalancedName, Weight: new(int32(1))},
	{Name: imagelocality.Name, Weight: new(int32(1))},
	{Name: defaultbinder.Name},
	{Name: nodedeclaredfeatures.Name},
}

// absent are upstream's plugins that this scheduler does not have. Switching one
// off changes nothing. Those that are on by default upstream may be named here,
// as kube-scheduler --write-config-to does, and a note says what that means; any
// other is refused.
var absent = map[string]string{
	"DynamicResources": "not supported: pods with resource claims are rejected by " + unsupported.Name,
	"GangScheduling":   "",
}

// registry has every plugin that a configuration may name.
func registry(others map[string]framework.Factory) (map[string]factory, error) {
	all := maps.Clone(builtin)
	for name, create := range others {
		if builtin[name] != nil {
			return nil, fmt.Errorf("plugin %s: the name is already in use", name)
		}
		all[name] = func(args runtime.RawExtension, services Services) (framework.Plugin, error) {
			plugin, err := create(args.Raw, services.Handle)
			if err == nil && plugin.Name() != name {
				err = fmt.Errorf("it calls itself %s", plugin.Name())
			}
			return plugin, err
		}
	}
	return all, nil
}

var errNoArguments = errors.New("takes no arguments")

func plain[P framework.Plugin](create func() P) factory {
	return func(args runtime.RawExtension, _ Services) (framework.Plugin, error) {
		if len(args.Raw) > 0 {
			return nil, errNoArguments
		}
		return create(), nil
	}
}
