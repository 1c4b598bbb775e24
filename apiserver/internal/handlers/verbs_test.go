package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestRound(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() || made.Namespace != "default" || made.Kind != "ConfigMap" {
		t.Errorf("created %+v", made)
	}
	var got core.ConfigMap
	s.do("GET", collection+"/a", "").into(t, &got)
	if got.Data["k"] != "1" || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("got %+v", got)
	}
	s.do("PUT", collection+"/a", configMap("a", "2")).into(t, &got)
	if got.Data["k"] != "2" || got.UID != made.UID {
		t.Errorf("updated %+v", got)
	}
	if a := s.do("PUT", collection+"/b", configMap("b", "new")); a.code != http.StatusCreated {
		t.Errorf("create by PUT: %d %s", a.code, a.body)
	}
	var list corev1.ConfigMapList
	s.do("GET", collection, "").into(t, &list)
	if len(list.Items) != 2 || list.Kind != "ConfigMapList" || list.ResourceVersion == "" {
		t.Errorf("list %+v", list)
	}
	s.do("GET", "/api/v1/configmaps?labelSelector=app%3Dnew", "").into(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "b" {
		t.Errorf("selected %+v", list.Items)
	}
	var status metav1.Status
	s.do("DELETE", collection+"/a", "").into(t, &status)
	if status.Status != metav1.StatusSuccess || status.Details.Name != "a" || status.Details.UID != made.UID {
		t.Errorf("deleted: %+v", status)
	}
	s.do("GET", collection+"/a", "").wantStatus(t, 404, metav1.StatusReasonNotFound, `configmaps "a" not found`)
	if a := s.do("DELETE", collection+"?labelSelector=app%3Dnew", ""); a.code != http.StatusOK {
		t.Errorf("delete collection: %d %s", a.code, a.body)
	}
	list = corev1.ConfigMapList{}
	if s.do("GET", collection, "").into(t, &list); len(list.Items) != 0 {
		t.Errorf("left: %+v", list.Items)
	}
}

// A deletion after the dependents, requested in the way of older clients, is
// accepted, and done later.
func TestDeletedLater(t *testing.T) {
	s := start(t)
	for query, want := range map[string]int{
		"?propagationPolicy=Foreground": http.StatusOK,
		"?orphanDependents=false":       http.StatusAccepted,
		"?propagationPolicy=Background": http.StatusOK,
		"?orphanDependents=true":        http.StatusOK,
		"?orphanDependents=":            http.StatusOK, // true, as any flag without a value
	} {
		s.do("POST", collection, `{"metadata":{"name":"a","finalizers":["a.b/c"]}}`)
		if a := s.do("DELETE", collection+"/a"+query, ""); a.code != want {
			t.Errorf("%s: %d, want %d: %s", query, a.code, want, a.body)
		}
		s.do("PUT", collection+"/a", `{"metadata":{"name":"a"}}`)
	}
}

func TestPages(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.create(name, "v")
	}
	var names []string
	next := ""
	for page := 0; ; page++ {
		var list corev1.ConfigMapList
		s.do("GET", collection+"?limit=2&continue="+next, "").into(t, &list)
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		if page == 0 {
			if list.RemainingItemCount == nil || *list.RemainingItemCount != 3 {
				t.Errorf("remaining: %v", list.RemainingItemCount)
			}
			// A list shows one moment, however long reading its pages takes.
			s.create("bb", "late")
			s.do("DELETE", collection+"/e", "")
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	if got := strings.Join(names, ""); got != "abcde" {
		t.Errorf("pages together: %s", got)
	}
}

func TestSubresources(t *testing.T) {
	s := start(t)
	body := `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"a"},"target":{}}`
	var got core.Binding
	for path, want := range map[string]string{collection + "/a/echo": "default/a", "/api/v1/namespaces/default/bindings": "default/a"} {
		a := s.do("POST", path, body)
		if a.into(t, &got); a.code != 201 || got.Target.Name != want || got.Kind != "Binding" {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := s.do("GET", collection+"/a/echo/some/where", ""); string(a.body) != "connected to default/a at "+collection+"/a/echo/some/where" {
		t.Errorf("connected: %d %s", a.code, a.body)
	}
	s.do("PUT", collection+"/a/echo", body).wantStatus(t, 405, metav1.StatusReasonMethodNotAllowed, "")
}

func TestStatusIsSeparate(t *testing.T) {
	s := start(t)
	s.do("POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`)
	patch := `{"spec":{"unschedulable":true},"status":{"nodeInfo":{"kubeletVersion":"v1"}}}`
	for _, c := range []struct {
		path          string
		unschedulable bool
		version       string
	}{{"/api/v1/nodes/n/status", false, "v1"}, {"/api/v1/nodes/n", true, "v1"}} {
		var got core.Node
		a := s.do("PATCH", c.path, patch, "Content-Type", "application/strategic-merge-patch+json")
		if a.into(t, &got); got.Spec.Unschedulable != c.unschedulable || got.Status.NodeInfo.KubeletVersion != c.version {
			t.Errorf("%s: %d %s", c.path, a.code, a.body)
		}
	}
}
