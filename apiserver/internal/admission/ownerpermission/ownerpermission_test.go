package ownerpermission

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// rights are a user's permissions: "verb namespace resource/subresource name".
type rights []string

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	for _, right := range r {
		if right == strings.Join([]string{a.Verb, a.Namespace, a.ResourceName + "/" + a.Subresource, a.Name}, " ") {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "", nil
}

func owned(owners ...metav1.OwnerReference) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", OwnerReferences: owners}}
}

func owner(kind, name string, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), BlockOwnerDeletion: new(blocks)}
}

// TestValidate compares refusals with kube-apiserver v1.37.0's.
func TestValidate(t *testing.T) {
	const (
		mayNotDelete = "cannot set an ownerRef on a resource you can't delete: , <nil>"
		mayNotBlock  = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
		unknown      = `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Foo: no matches for kind "Foo" in version "v1"`
	)
	free, blocks := owner("Pod", "p", false), owner("Pod", "p", true)
	node := owner("Node", "n", true)
	mayDelete := "delete n configmaps/ x"
	for name, test := range map[string]struct {
		old, now *core.ConfigMap
		may      rights
		want     string
	}{
		"made with an owner":             {nil, owned(free), nil, ""},
		"made, blocks":                   {nil, owned(blocks), nil, mayNotBlock},
		"made, blocks and may":           {nil, owned(blocks), rights{"update n pods/finalizers p"}, ""},
		"made, blocks what is elsewhere": {nil, owned(node), rights{"update n nodes/finalizers n"}, mayNotBlock},
		"made, blocks a node":            {nil, owned(node), rights{"update  nodes/finalizers n"}, ""},
		"made, blocks one of two":        {nil, owned(blocks, node), rights{"update n pods/finalizers p"}, mayNotBlock},
		"made, blocks nobody knows what": {nil, owned(owner("Foo", "f", true)), nil, unknown},
		"made, may all":                  {nil, owned(owner("Foo", "f", true)), rights{"update n */finalizers *"}, ""},
		"same":                           {owned(blocks), owned(blocks), nil, ""},
		"new owner":                      {owned(), owned(free), nil, mayNotDelete},
		"no owner":                       {owned(free), owned(), nil, mayNotDelete},
		"new owner and may":              {owned(), owned(free), rights{mayDelete}, ""},
		"blocks now":                     {owned(free), owned(blocks), rights{mayDelete}, mayNotBlock},
		"blocks no more":                 {owned(blocks), owned(free), rights{mayDelete}, ""},
		"blocks as before, and more":     {owned(blocks), owned(blocks, owner("Pod", "q", false)), rights{mayDelete}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			served := map[string]core.Resource{"Pod": core.Pods, "Node": core.Nodes}
			p := &Plugin{Authorizer: test.may, Resource: func(kind schema.GroupVersionKind) (core.Resource, bool) {
				r, ok := served[kind.Kind]
				return r, ok
			}}
			a := &admission.Attributes{
				Operation: admission.Create, Resource: core.ConfigMaps, Namespace: "n", Name: "x", Object: test.now, User: &request.User{Username: "u"},
			}
			if test.old != nil {
				a.Operation, a.OldObject = admission.Update, test.old
			}
			got := ""
			if err := p.Validate(t.Context(), a); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	for op, handles := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false} {
		if got := (&Plugin{}).Handles(op); got != handles {
			t.Errorf("%s: %v", op, got)
		}
	}
}

// Only the status of pods may name other owners without the right to delete them.
func TestSubresources(t *testing.T) {
	foreign := core.Pods
	foreign.Group = "example.com"
	user := &request.User{Username: "u"}
	for name, test := range map[string]struct {
		resource    core.Resource
		subresource string
		user        *request.User
		ok          bool
	}{
		"a pod's status":              {core.Pods, "status", user, true},
		"a pod":                       {core.Pods, "", user, false},
		"a pod's other part":          {core.Pods, "ephemeralcontainers", user, false},
		"the status of others":        {core.Nodes, "status", user, false},
		"the status of others' pods":  {foreign, "status", user, false},
		"what the server itself does": {core.Pods, "", nil, true},
	} {
		a := &admission.Attributes{
			Operation: admission.Update, Resource: test.resource, Subresource: test.subresource, User: test.user,
			OldObject: owned(), Object: owned(owner("Pod", "p", false)),
		}
		if err := (&Plugin{Authorizer: rights{}}).Validate(t.Context(), a); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
