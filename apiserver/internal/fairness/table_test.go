package fairness

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/flowcontrol"
)

func builtin() Configuration {
	return Configuration{Schemas: flowcontrol.BuiltinSchemas(), Levels: flowcontrol.BuiltinLevels()}
}

func newController(stored ...*flowcontrolv1.FlowSchema) *Controller {
	configuration := builtin()
	configuration.Schemas = append(configuration.Schemas, stored...)
	return New(Options{
		Seats: 600, Builtin: configuration,
		Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Logger: zap.NewNop(),
	})
}

func user(name string, groups ...string) *request.User {
	return &request.User{Username: name, Groups: append(groups, "system:authenticated")}
}

func resource(verb, group, name, namespace string) *request.Info {
	return &request.Info{Resource: true, Verb: verb, APIGroup: group, ResourceName: name, Namespace: namespace, Path: "/of/no/matter"}
}

func path(verb, path string) *request.Info { return &request.Info{Verb: verb, Path: path} }

// TestBuiltinSchemas: which level each user belongs to in every cluster.
func TestBuiltinSchemas(t *testing.T) {
	c := newController()
	kubelet := user("system:node:n", "system:nodes")
	status := resource("patch", "", "nodes", "")
	status.Subresource = "status"
	account := user("system:serviceaccount:kube-system:x", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	for _, test := range []struct {
		user *request.User
		info *request.Info
		want string
	}{
		{user("root", "system:masters"), resource("list", "", "pods", ""), "exempt"},
		{user("root", "system:masters"), path("post", "/x"), "exempt"},
		{user("jane"), path("get", "/readyz"), "probes"},
		{user("jane"), path("get", "/readyz/etcd"), "global-default"},
		{&request.User{Groups: []string{"system:unauthenticated"}}, path("get", "/livez"), "probes"},
		{kubelet, status, "system-node-high"},
		{kubelet, resource("update", "coordination.k8s.io", "leases", "kube-node-lease"), "system-node-high"},
		{kubelet, resource("list", "", "pods", ""), "system-nodes"},
		{user("system:kube-scheduler"), resource("update", "coordination.k8s.io", "leases", "kube-system"), "system-leader-election"},
		{user("system:kube-scheduler"), resource("watch", "coordination.k8s.io", "leases", "kube-system"), "kube-scheduler"},
		{user("system:kube-controller-manager"), resource("list", "", "pods", ""), "kube-controller-manager"},
		{account, resource("list", "", "pods", ""), "kube-system-service-accounts"},
		{account, resource("get", "coordination.k8s.io", "leases", "any"), "system-leader-election"},
		{user("system:serviceaccount:kube-system-2:x", "system:serviceaccounts"), resource("list", "", "pods", ""), "service-accounts"},
		{user("jane"), resource("create", "", "pods", "default"), "global-default"},
		{&request.User{Username: "of no group"}, resource("create", "", "pods", "default"), "catch-all"},
	} {
		if got := c.table.Load().find(test.user, test.info).name; got != test.want {
			t.Errorf("%s, %s %s%s: %s, want %s", test.user.Username, test.info.Verb, test.info.Path, test.info.ResourceName, got, test.want)
		}
	}
}

func schemaOf(precedence int32, level string, rules ...flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: flowcontrolv1.FlowSchemaSpec{
		MatchingPrecedence: precedence, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level}, Rules: rules,
	}}
}

// TestRules: the meaning of each field of a rule.
func TestRules(t *testing.T) {
	everybody := []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "*"}}}
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "pods", "pods/log"}
	rules := flowcontrolv1.PolicyRulesWithSubjects{
		Subjects: everybody,
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: many, Namespaces: []string{"here"}},
			{Verbs: []string{"list"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true},
			{Verbs: []string{"create"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Namespaces: []string{"*"}},
		},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/logs", "/debug/*"}}},
	}
	c := newController(schemaOf(50, "system", rules))
	logs := resource("get", "", "pods", "here")
	logs.Subresource = "log"
	exec := resource("get", "", "pods", "here")
	exec.Subresource = "exec"
	for _, test := range []struct {
		info *request.Info
		want bool
	}{
		{resource("get", "", "pods", "here"), true},
		{logs, true},
		{exec, false},
		{resource("get", "", "pods", "there"), false},
		{resource("get", "", "pods", ""), false},
		{resource("get", "", "secrets", "here"), false},
		{resource("get", "apps", "pods", "here"), false},
		{resource("list", "apps", "anything", ""), true},
		{resource("list", "apps", "anything", "here"), false},
		{resource("create", "apps", "deployments", "anywhere"), true},
		{resource("create", "apps", "deployments", ""), false},
		{path("get", "/logs"), true},
		{path("get", "/logs/x"), false},
		{path("get", "/debug"), false},
		{path("get", "/debug/pprof/x"), true},
		{path("post", "/logs"), false},
	} {
		if got := c.table.Load().find(user("jane"), test.info).name == "own"; got != test.want {
			t.Errorf("%+v: %v, want %v", test.info, got, test.want)
		}
	}
}

// TestFlows: requests that the schema does not distinguish are one flow.
func TestFlows(t *testing.T) {
	pods := resource("get", "", "pods", "here")
	for _, test := range []struct {
		by            flowcontrolv1.FlowDistinguisherMethodType
		users, spaces bool
	}{
		{"", false, false},
		{flowcontrolv1.FlowDistinguisherMethodByUserType, true, false},
		{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, false, true},
	} {
		s := &schema{by: test.by, seed: 42}
		if got := s.flow(user("a"), pods) != s.flow(user("b"), pods); got != test.users {
			t.Errorf("%q tells users apart: %v", test.by, got)
		}
		if got := s.flow(user("a"), pods) != s.flow(user("a"), resource("get", "", "pods", "there")); got != test.spaces {
			t.Errorf("%q tells namespaces apart: %v", test.by, got)
		}
	}
}
