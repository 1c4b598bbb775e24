package etcd

import (
	"bytes"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/scheme"
)

// formerVersions are the versions, by group, in which upstream stores or has stored
// kinds that it still reads and that are stored as v1 here. An object stays in etcd as
// it is until it is written again, which for many never happens. In protobuf these
// versions have v1's form, except for what upgrade handles.
var formerVersions = map[string][]string{
	"admissionregistration.k8s.io": {"v1beta1"},
	"batch":                        {"v1beta1"},
	"certificates.k8s.io":          {"v1beta1"},
	"coordination.k8s.io":          {"v1beta1"},
	"flowcontrol.apiserver.k8s.io": {"v1beta2", "v1beta3"},
	"networking.k8s.io":            {"v1beta1"},
	"node.k8s.io":                  {"v1beta1"},
	"policy":                       {"v1beta1"},
	"rbac.authorization.k8s.io":    {"v1beta1"},
	"resource.k8s.io":              {"v1beta2"},
	"scheduling.k8s.io":            {"v1beta1"},
	"storage.k8s.io":               {"v1beta1"},
	"storagemigration.k8s.io":      {"v1beta1"},
}

// otherForm lists kinds with another form in a former version; EndpointSlices,
// whose group is not listed above, had one too.
var otherForm = map[schema.GroupKind]bool{
	{Group: "networking.k8s.io", Kind: "Ingress"}: true,
}

// renewed replaces a former version with v1 in the envelope of a value.
func renewed(value []byte) (renewed []byte, former schema.GroupVersionKind, ok bool) {
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(bytes.TrimPrefix(value, []byte(scheme.ProtobufPrefix))); err != nil {
		return nil, former, false
	}
	former = schema.FromAPIVersionAndKind(unknown.APIVersion, unknown.Kind)
	if !slices.Contains(formerVersions[former.Group], former.Version) || otherForm[former.GroupKind()] {
		return nil, former, false
	}
	unknown.APIVersion = former.Group + "/v1"
	body, err := unknown.Marshal()
	return append([]byte(scheme.ProtobufPrefix), body...), former, err == nil
}

// deprecatedLabel expresses in selectors of policy/v1 what only v1beta1 could say
// (KEP-85): there, an empty selector selects no pod.
const deprecatedLabel = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// upgrade translates what had another meaning in the former version.
func upgrade(object runtime.Object, former schema.GroupVersionKind) {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok || former.Version != "v1beta1" {
		return
	}
	only := func(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: deprecatedLabel, Operator: operator}}}
	}
	switch selector := budget.Spec.Selector; {
	case selector != nil && equality.Semantic.DeepEqual(selector, &metav1.LabelSelector{}):
		budget.Spec.Selector = only(metav1.LabelSelectorOpExists)
	case equality.Semantic.DeepEqual(selector, only(metav1.LabelSelectorOpDoesNotExist)):
		budget.Spec.Selector = &metav1.LabelSelector{}
	}
}
