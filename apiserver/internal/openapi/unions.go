package openapi

import "strings"

// unions are the types of whose fields at most one is set, with the field that says which, if
// there is one, and the others, as kube-apiserver v1.37.2 publishes them. Nothing here goes by
// them: clients may.
var unions = map[string]union{
	"core.v1.AppArmorProfile":                              {"type", []string{"localhostProfile"}},
	"core.v1.PodSchedulingGroup":                           {"", []string{"podGroupName"}},
	"core.v1.SeccompProfile":                               {"type", []string{"localhostProfile"}},
	"flowcontrol.v1.LimitResponse":                         {"type", []string{"queuing"}},
	"flowcontrol.v1.PriorityLevelConfigurationSpec":        {"type", []string{"exempt", "limited"}},
	"flowcontrol.v1.Subject":                               {"kind", []string{"group", "serviceAccount", "user"}},
	"scheduling.v1alpha3.WorkloadPodGroupDisruptionMode":   {"", []string{"all", "single"}},
	"scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy": {"", []string{"basic", "gang"}},
}

type union struct {
	discriminator string
	fields        []string
}

// extension is the value of x-kubernetes-unions. A field is chosen by its name with a capital.
func (u union) extension() any {
	chosenBy := map[string]any{}
	for _, field := range u.fields {
		chosenBy[field] = strings.ToUpper(field[:1]) + field[1:]
	}
	one := map[string]any{"fields-to-discriminateBy": chosenBy}
	if u.discriminator != "" {
		one["discriminator"] = u.discriminator
	}
	return []any{one}
}
