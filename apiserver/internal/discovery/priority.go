package discovery

import "k8s.io/apimachinery/pkg/runtime/schema"

// Priority is the order in which clients see a group, and a version in it;
// higher comes first.
type Priority struct{ Group, Version int32 }

// customPriority is the priority of custom resources.
var customPriority = Priority{1000, 100}

// groupPriorities are upstream's priorities of the groups, the newest version first.
var groupPriorities = map[string]int32{
	"":                             18000,
	"apiregistration.k8s.io":       20000,
	"apps":                         17800,
	"events.k8s.io":                17750,
	"authentication.k8s.io":        17700,
	"authorization.k8s.io":         17600,
	"autoscaling":                  17500,
	"batch":                        17400,
	"certificates.k8s.io":          17300,
	"networking.k8s.io":            17200,
	"policy":                       17100,
	"rbac.authorization.k8s.io":    17000,
	"storage.k8s.io":               16800,
	"apiextensions.k8s.io":         16700,
	"admissionregistration.k8s.io": 16700,
	"scheduling.k8s.io":            16600,
	"coordination.k8s.io":          16500,
	"node.k8s.io":                  16300,
	"discovery.k8s.io":             16200,
	"resource.k8s.io":              16200,
	"flowcontrol.apiserver.k8s.io": 16100,
	"storagemigration.k8s.io":      15800,
}

var versionPriorities = map[schema.GroupVersion]int32{
	{Version: "v1"}:                                        1,
	{Group: "autoscaling", Version: "v2"}:                  30,
	{Group: "resource.k8s.io", Version: "v1"}:              21,
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: 21,
}

// DefaultPriority is that of a group and version without another one.
func DefaultPriority(gv schema.GroupVersion) Priority {
	group, ok := groupPriorities[gv.Group]
	if !ok {
		return customPriority
	}
	if version, ok := versionPriorities[gv]; ok {
		return Priority{group, version}
	}
	if gv.Version == "v1" || gv.Version == "v2" {
		return Priority{group, 15}
	}
	return Priority{group, 9}
}
