package flowcontrol

import (
	"fmt"
	"maps"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

// The two that every cluster has and no one can change: for requests that never
// wait, and for those that no schema matches.
const (
	exemptName   = "exempt"
	catchAllName = "catch-all"
)

// autoUpdateAnnotation is the annotation for whether the server maintains an object's spec.
// Users who want to change one set it to false.
const autoUpdateAnnotation = "apf.kubernetes.io/autoupdate-spec"

func limitedLevel(shares, lendable int32, queues, hand int32) flowcontrolv1.PriorityLevelConfigurationSpec {
	response := flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	if queues > 0 {
		response = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{
			Queues: queues, HandSize: hand, QueueLengthLimit: 50,
		}}
	}
	return flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(shares), LendablePercent: new(lendable), LimitResponse: response,
		},
	}
}

// builtinLevels are those of every cluster (Kubernetes docs, "API Priority and
// Fairness", "Defaults").
var builtinLevels = map[string]flowcontrolv1.PriorityLevelConfigurationSpec{
	exemptName: {Type: flowcontrolv1.PriorityLevelEnablementExempt, Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{
		NominalConcurrencyShares: new(int32(0)), LendablePercent: new(int32(0)),
	}},
	catchAllName:      limitedLevel(5, 0, 0, 0),
	"system":          limitedLevel(30, 33, 64, 6),
	"node-high":       limitedLevel(40, 25, 64, 6),
	"leader-election": limitedLevel(10, 0, 16, 4),
	"workload-high":   limitedLevel(40, 50, 128, 6),
	"workload-low":    limitedLevel(100, 90, 128, 6),
	"global-default":  limitedLevel(20, 50, 128, 6),
}

// builtinSchema is one flow schema of every cluster.
type builtinSchema struct {
	name, level string
	precedence  int32
	method      flowcontrolv1.FlowDistinguisherMethodType
	subjects    []flowcontrolv1.Subject
	resources   []flowcontrolv1.ResourcePolicyRule
	paths       []flowcontrolv1.NonResourcePolicyRule
}

var (
	all         = []string{"*"}
	everything  = []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, ClusterScope: true, Namespaces: all}}
	everyPath   = []flowcontrolv1.NonResourcePolicyRule{{Verbs: all, NonResourceURLs: all}}
	everybody   = groups("system:unauthenticated", "system:authenticated")
	byUser      = flowcontrolv1.FlowDistinguisherMethodByUserType
	byNamespace = flowcontrolv1.FlowDistinguisherMethodByNamespaceType
	systems     = flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
		Namespace: metav1.NamespaceSystem, Name: "*",
	}}
)

var builtinSchemas = []builtinSchema{
	{exemptName, exemptName, 1, "", groups("system:masters"), everything, everyPath},
	{"probes", exemptName, 2, "", everybody, nil, []flowcontrolv1.NonResourcePolicyRule{
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/readyz", "/livez"}},
	}},
	{"system-leader-election", "leader-election", 100, byUser,
		append(users("system:kube-controller-manager", "system:kube-scheduler"), systems),
		[]flowcontrolv1.ResourcePolicyRule{rule([]string{"get", "create", "update"}, core.Leases.Group, false, core.Leases.Name)}, nil},
	{"system-node-high", "node-high", 400, byUser, groups("system:nodes"), []flowcontrolv1.ResourcePolicyRule{
		rule(all, "", true, "nodes", "nodes/status"), rule(all, core.Leases.Group, false, core.Leases.Name),
	}, nil},
	{"system-nodes", "system", 500, byUser, groups("system:nodes"), everything, everyPath},
	{"kube-controller-manager", "workload-high", 800, byNamespace, users("system:kube-controller-manager"), everything, everyPath},
	{"kube-scheduler", "workload-high", 800, byNamespace, users("system:kube-scheduler"), everything, everyPath},
	{"kube-system-service-accounts", "workload-high", 900, byNamespace, []flowcontrolv1.Subject{systems}, everything, everyPath},
	{"service-accounts", "workload-low", 9000, byUser, groups("system:serviceaccounts"), everything, everyPath},
	{"global-default", "global-default", 9900, byUser, everybody, everything, everyPath},
	{catchAllName, catchAllName, maxPrecedence, byUser, everybody, everything, everyPath},
}

func rule(verbs []string, group string, cluster bool, resources ...string) flowcontrolv1.ResourcePolicyRule {
	return flowcontrolv1.ResourcePolicyRule{
		Verbs: verbs, APIGroups: []string{group}, Resources: resources, ClusterScope: cluster, Namespaces: all,
	}
}

func groups(names ...string) []flowcontrolv1.Subject {
	var out []flowcontrolv1.Subject
	for _, name := range names {
		out = append(out, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}})
	}
	return out
}

func users(names ...string) []flowcontrolv1.Subject {
	var out []flowcontrolv1.Subject
	for _, name := range names {
		out = append(out, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: name}})
	}
	return out
}

func (s *builtinSchema) spec() flowcontrolv1.FlowSchemaSpec {
	spec := flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: s.level}, MatchingPrecedence: s.precedence,
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: s.subjects, ResourceRules: s.resources, NonResourceRules: s.paths}},
	}
	if s.method != "" {
		spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: s.method}
	}
	return *spec.DeepCopy()
}

const fixed = "spec of '%s' must equal the fixed value"

// validateMandatorySchema checks that the two mandatory schemas don't change.
func validateMandatorySchema(s *flowcontrolv1.FlowSchema) field.ErrorList {
	for i := range builtinSchemas {
		if own := &builtinSchemas[i]; own.name == s.Name && (s.Name == exemptName || s.Name == catchAllName) &&
			!equality.Semantic.DeepEqual(own.spec(), s.Spec) {
			return field.ErrorList{field.Invalid(specPath, s.Spec, fmt.Sprintf(fixed, s.Name))}
		}
	}
	return nil
}

// validateMandatoryLevel does the same for levels; how much exempt lends may change.
func validateMandatoryLevel(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	if l.Name == exemptName && l.Spec.Type != flowcontrolv1.PriorityLevelEnablementExempt {
		return field.ErrorList{field.Invalid(specPath.Child("type"), l.Spec.Type, "must be 'Exempt' for the configuration named exempt")}
	}
	if l.Name != exemptName && l.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt {
		return field.ErrorList{field.Invalid(specPath.Child("type"), l.Spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'")}
	}
	if l.Name == catchAllName && !equality.Semantic.DeepEqual(l.Spec, builtinLevels[catchAllName]) {
		return field.ErrorList{field.Invalid(specPath, l.Spec, fmt.Sprintf(fixed, l.Name))}
	}
	return nil
}

// BuiltinSchemas are the schemas of every cluster, as they are created.
func BuiltinSchemas() []*flowcontrolv1.FlowSchema {
	var out []*flowcontrolv1.FlowSchema
	for i := range builtinSchemas {
		out = append(out, &flowcontrolv1.FlowSchema{ObjectMeta: builtinMetadata(builtinSchemas[i].name), Spec: builtinSchemas[i].spec()})
	}
	return out
}

// BuiltinLevels are the levels of every cluster, as they are created.
func BuiltinLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	var out []*flowcontrolv1.PriorityLevelConfiguration
	for _, name := range slices.Sorted(maps.Keys(builtinLevels)) {
		spec := builtinLevels[name]
		out = append(out, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: builtinMetadata(name), Spec: *spec.DeepCopy()})
	}
	return out
}

func builtinMetadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{autoUpdateAnnotation: "true"}}
}
