package rbac

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// described is what an index holds, in an order of its own.
func described(x *index) string {
	var out []string
	for key, rules := range x.roles {
		out = append(out, fmt.Sprint("role ", key, rules))
	}
	for key, rules := range x.clusterRoles {
		out = append(out, fmt.Sprint("cluster role ", key, rules))
	}
	for namespace, bySubject := range x.bindings {
		if len(bySubject) == 0 {
			out = append(out, "nothing in "+namespace)
		}
		for subject, bindings := range bySubject {
			text := []string{}
			for _, b := range bindings {
				text = append(text, fmt.Sprint(b))
			}
			slices.Sort(text)
			out = append(out, fmt.Sprint(namespace, subject, text))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// stored are the present objects of a store.
func stored[T core.Object](t *testing.T, s *registrytest.Store) (all []T) {
	t.Helper()
	list, err := s.List(t.Context(), "", registry.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		obj, err := s.Decode(item)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, obj.(T))
	}
	return all
}

// TestPolicyFollowsEachChange: after any changes the policy is the one of what is stored.
func TestPolicyFollowsEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 7))
		stores := map[string]*registrytest.Store{"roles": registrytest.New(core.Roles), "clusterroles": registrytest.New(core.ClusterRoles),
			"rolebindings": registrytest.New(core.RoleBindings), "clusterrolebindings": registrytest.New(core.ClusterRoleBindings)}
		kinds := slices.Sorted(maps.Keys(stores))
		a := NewAuthorizer()
		f := NewFollower(a, Sources{Roles: stores["roles"], RoleBindings: stores["rolebindings"], ClusterRoles: stores["clusterroles"],
			ClusterRoleBindings: stores["clusterrolebindings"]}, clock.RealClock{}, zap.NewNop())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		<-f.Synced()
		some := func(of ...string) string { return of[random.IntN(len(of))] }
		for i := range 600 {
			kind, meta := kinds[random.IntN(len(kinds))], metav1.ObjectMeta{Namespace: some("shop", "ops"), Name: some("a", "b", "c")}
			var subjects []rbacv1.Subject
			for range random.IntN(4) {
				subjects = append(subjects, rbacv1.Subject{Kind: some("User", "Group", "ServiceAccount", "Other"), Name: some("x", "y"), Namespace: some("", "shop")})
			}
			if strings.HasPrefix(kind, "cluster") {
				meta.Namespace = ""
			}
			ref, granted := clusterRef(some("a", "b")), rules([]string{some("get", "list")}, []string{""}, []string{"pods"})
			switch {
			case stores[kind].Peek(meta.Namespace, meta.Name) != nil && random.IntN(2) == 0:
				if _, _, err := stores[kind].Delete(t.Context(), meta.Namespace, meta.Name, registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			case kind == "roles":
				stores[kind].Put(&rbacv1.Role{ObjectMeta: meta, Rules: granted})
			case kind == "clusterroles":
				stores[kind].Put(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: granted})
			case kind == "rolebindings":
				stores[kind].Put(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			default:
				stores[kind].Put(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			}
			synctest.Wait()
			want := described(newIndex(Policy{Roles: stored[*rbacv1.Role](t, stores["roles"]), RoleBindings: stored[*rbacv1.RoleBinding](t, stores["rolebindings"]),
				ClusterRoles:        stored[*rbacv1.ClusterRole](t, stores["clusterroles"]),
				ClusterRoleBindings: stored[*rbacv1.ClusterRoleBinding](t, stores["clusterrolebindings"])}))
			if got := described(a.index); got != want {
				t.Fatalf("after %d changes:\n%s\nwant:\n%s", i+1, got, want)
			}
		}
		cancel()
		<-done
	})
}
