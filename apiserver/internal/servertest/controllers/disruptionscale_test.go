package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

// post creates an object from JSON, and returns its UID.
func (c *cluster) post(path, body string) types.UID {
	c.T.Helper()
	header := servertest.AsMaster()
	header["Content-Type"] = "application/json"
	answer, text := c.Request(http.MethodPost, path, header, body)
	var created metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(text), &created); answer.StatusCode != http.StatusCreated || err != nil {
		c.T.Fatal(text)
	}
	return created.UID
}

// define has custom resources of the group example.com served, with the given subresources.
func (c *cluster) define(plural, kind, subresources string) {
	c.T.Helper()
	c.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"metadata":{"name":"%[1]s.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":%[1]q,"kind":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,"subresources":%[3]s,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}},
		"status":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}`, plural, kind, subresources))
	c.Until(plural+" are served", func(context.Context) bool {
		answer, _ := c.Request(http.MethodGet, "/apis/example.com/v1/namespaces/default/"+plural, servertest.AsMaster(), "")
		return answer.StatusCode == http.StatusOK
	})
}

// TestBudgetsOfOtherOwners has pods of owners that are no workloads of ours: each has the number of
// its scale, or nobody can tell. Upstream's controller, which may run beside ours, says the same.
func TestBudgetsOfOtherOwners(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.define("herds", "Herd", `{"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}}`)
	c.define("loners", "Loner", `{}`)
	owned := func(name, version, kind string, uid types.UID) {
		pod := servertest.Pod(name)
		pod.Labels = map[string]string{"app": "web"}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: new(true)}}
		c.Created("default", pod)
		c.is(name, "True")
	}
	says := func(want string) {
		t.Helper()
		c.Until("the budget says: "+want, func(ctx context.Context) bool {
			var b policyv1.PodDisruptionBudget
			c.Must(c.Root().Resource(budgets, "default").Get(ctx, "web", &b))
			condition := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
			return condition != nil && condition.Reason == policyv1.SyncFailedReason && condition.Message == want && b.Status.DisruptionsAllowed == 0
		})
	}
	const of = `{"metadata":{"name":"%s"},"spec":{"size":3},"apiVersion":"example.com/v1","kind":%q}`
	herds, loners := "/apis/example.com/v1/namespaces/default/herds", "/apis/example.com/v1/namespaces/default/loners"
	owned("herd", "example.com/v1", "Herd", c.post(herds, fmt.Sprintf(of, "herd", "Herd")))
	c.budget("web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(3))})
	c.allows("web", 1, 0, 3, 1)

	owned("loner", "example.com/v1", "Loner", c.post(loners, fmt.Sprintf(of, "loner", "Loner")))
	says("loners.example.com does not implement the scale subresource")

	gone := func(pod string) { c.Must(c.Root().Resource(core.Pods, "default").Delete(t.Context(), pod, nil, nil)) }
	gone("loner")
	c.allows("web", 1, 0, 3, 1)
	owned("stranger", "example.com/v1", "Stranger", "of-nobody")
	says(`no matches for kind "Stranger" in version "example.com/v1"`)
	gone("stranger")
	c.allows("web", 1, 0, 3, 1)
}
