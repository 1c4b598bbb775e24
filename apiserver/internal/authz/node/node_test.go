package node

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/request"
)

type pods []facts.Pod

func (p pods) Get(namespace, name string) (facts.Pod, bool) {
	for _, pod := range p {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return facts.Pod{}, false
}

func (p pods) ByIndex(node string) (out []facts.Pod) {
	for _, pod := range p {
		if pod.Node == node {
			out = append(out, pod)
		}
	}
	return out
}

func TestAuthorize(t *testing.T) {
	a := &Authorizer{Pods: pods{
		{Namespace: "shop", Name: "web", Node: "n1", ServiceAccount: "web", Secrets: []string{"key"}, ConfigMaps: []string{"conf"}},
		{Namespace: "shop", Name: "db", Node: "n2", ServiceAccount: "db", Secrets: []string{"password"}},
	}}
	kubelet := &request.User{Username: "system:node:n1", Groups: []string{"system:nodes", "system:authenticated"}}
	impostor := &request.User{Username: "system:node:n1", Groups: []string{"system:authenticated"}}
	ask := func(verb, namespace, resource, subresource, name string) request.Info {
		return request.Info{Resource: true, Verb: verb, Namespace: namespace, ResourceName: resource, Subresource: subresource, Name: name}
	}
	selecting := func(i request.Info, selector string) request.Info {
		i.Fields = fields.ParseSelectorOrDie(selector)
		return i
	}
	lease := func(verb, namespace, name string) request.Info {
		i := ask(verb, namespace, "leases", "", name)
		i.APIGroup = "coordination.k8s.io"
		return i
	}
	tests := []struct {
		name string
		user *request.User
		info request.Info
		want bool
	}{
		{"own node", kubelet, ask("get", "", "nodes", "", "n1"), true},
		{"own node's status", kubelet, ask("patch", "", "nodes", "status", "n1"), true},
		{"register", kubelet, ask("create", "", "nodes", "", ""), true},
		{"another node", kubelet, ask("get", "", "nodes", "", "n2"), false},
		{"another node's status", kubelet, ask("patch", "", "nodes", "status", "n2"), false},
		{"all nodes", kubelet, ask("list", "", "nodes", "", ""), false},
		{"delete itself", kubelet, ask("delete", "", "nodes", "", "n1"), false},
		{"own pods", kubelet, selecting(ask("watch", "", "pods", "", ""), "spec.nodeName=n1"), true},
		{"another's pods", kubelet, selecting(ask("watch", "", "pods", "", ""), "spec.nodeName=n2"), false},
		{"all pods", kubelet, ask("list", "", "pods", "", ""), false},
		{"pods of one name everywhere", kubelet, selecting(ask("list", "", "pods", "", "db"), "metadata.name=db"), false},
		{"a name yet to come", kubelet, selecting(ask("watch", "shop", "pods", "", "new"), "metadata.name=new"), false},
		{"own pod", kubelet, ask("get", "shop", "pods", "", "web"), true},
		{"own pod's status", kubelet, ask("patch", "shop", "pods", "status", "web"), true},
		{"another's pod", kubelet, ask("get", "shop", "pods", "", "db"), false},
		{"another's pod's status", kubelet, ask("patch", "shop", "pods", "status", "db"), false},
		{"end a pod of its own", kubelet, ask("delete", "shop", "pods", "", "web"), true},
		{"end another's pod", kubelet, ask("delete", "shop", "pods", "", "db"), false},
		{"bind a pod", kubelet, ask("create", "shop", "pods", "binding", "web"), false},
		{"secret of its pod", kubelet, ask("get", "shop", "secrets", "", "key"), true},
		{"secret of another's pod", kubelet, ask("get", "shop", "secrets", "", "password"), false},
		{"secret of that name elsewhere", kubelet, ask("get", "ops", "secrets", "", "key"), false},
		{"all secrets", kubelet, ask("list", "shop", "secrets", "", ""), false},
		{"write the secret", kubelet, ask("update", "shop", "secrets", "", "key"), false},
		{"config map of its pod", kubelet, ask("watch", "shop", "configmaps", "", "conf"), true},
		{"token for its pod", kubelet, ask("create", "shop", "serviceaccounts", "token", "web"), true},
		{"token for another's pod", kubelet, ask("create", "shop", "serviceaccounts", "token", "db"), false},
		{"own lease", kubelet, lease("update", "kube-node-lease", "n1"), true},
		{"another's lease", kubelet, lease("update", "kube-node-lease", "n2"), false},
		{"a lease elsewhere", kubelet, lease("update", "kube-system", "n1"), false},
		{"events", kubelet, ask("create", "shop", "events", "", ""), true},
		{"roles", kubelet, ask("list", "", "roles", "", ""), false},
		{"a path", kubelet, request.Info{Verb: "get", Path: "/metrics"}, false},
		{"the name without the group", impostor, ask("get", "", "nodes", "", "n1"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			decision, reason, err := a.Authorize(t.Context(), &authz.Attributes{User: test.user, Info: test.info})
			if (decision == authz.Allow) != test.want || decision == authz.Deny || err != nil {
				t.Errorf("got %v (%s) %v", decision, reason, err)
			}
		})
	}
}
