package operation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kctl/apiserver/internal/resources/flowcontrol"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

var (
	flowSchemas    = core.Resource{Group: flowcontrolv1.GroupName, Version: "v1", Name: "flowschemas", Kind: "FlowSchema"}
	priorityLevels = core.Resource{Group: flowcontrolv1.GroupName, Version: "v1", Name: "prioritylevelconfigurations", Kind: "PriorityLevelConfiguration"}
)

// own creates a priority level, and a flow schema that sends jane's requests
// there.
func (c *cluster) own(name string, response flowcontrolv1.LimitResponse) (*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration) {
	c.T.Helper()
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(int32(0)), BorrowingLimitPercent: new(int32(0)), LimitResponse: response,
		},
	}}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{
		MatchingPrecedence: 50, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "jane"}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
				Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
			}},
		}},
	}}
	c.Must(c.Root().Resource(flowSchemas, "").Create(c.T.Context(), schema, schema))
	c.Until("the schema is said to dangle", func(ctx context.Context) bool { return c.dangling(name) == "True NotFound" })
	c.Must(c.Root().Resource(priorityLevels, "").Create(c.T.Context(), level, level))
	c.Until("the schema is said to be tied", func(ctx context.Context) bool { return c.dangling(name) == "False Found" })
	c.Must(c.Root().Resource(flowSchemas, "").Get(c.T.Context(), name, schema))
	if !slices.ContainsFunc(schema.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "api-priority-and-fairness-config-consumer-v1" && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "status"
	}) {
		c.T.Errorf("the condition is not its manager's: %+v", schema.ManagedFields)
	}
	return schema, level
}

func (c *cluster) dangling(name string) string {
	schema := &flowcontrolv1.FlowSchema{}
	c.Must(c.Root().Resource(flowSchemas, "").Get(c.T.Context(), name, schema))
	for _, condition := range schema.Status.Conditions {
		if condition.Type == flowcontrolv1.FlowSchemaConditionDangling {
			return string(condition.Status) + " " + condition.Reason
		}
	}
	return ""
}

const question = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`

// review sends a review that everybody may send.
func (c *cluster) review(token string, body io.Reader) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(c.T.Context(), http.MethodPost, c.Address+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.Root().HTTP().Do(request)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

// busy starts a request of jane's that runs until end is called; status then
// gets its status.
func (c *cluster) busy() (end func(), status <-chan string) {
	reader, writer := io.Pipe()
	done := make(chan string, 1)
	go func() {
		answer, text, err := c.review("nobody", reader)
		if err != nil {
			done <- err.Error()
			return
		}
		done <- fmt.Sprint(answer.StatusCode, " ", text)
	}()
	if _, err := io.WriteString(writer, question[:20]); err != nil {
		c.T.Error(err)
	}
	return func() {
		if _, err := io.WriteString(writer, question[20:]); err != nil {
			c.T.Error(err)
		}
		if err := writer.Close(); err != nil {
			c.T.Error(err)
		}
	}, done
}

func (c *cluster) untilMetric(line string) {
	c.T.Helper()
	c.Until(line, func(context.Context) bool {
		_, text := c.Request("GET", "/metrics", servertest.AsMaster(), "")
		return strings.Contains(text, line+"\n")
	})
}

// TestPriorityAndFairness: a noisy client waits or is refused, and nobody else
// notices.
func TestPriorityAndFairness(t *testing.T) {
	t.Parallel()
	// Requests may wait for longer than this test takes.
	c := start(t, func(o *config.Options) { o.RequestTimeout = time.Hour })
	t.Run("turned away", func(t *testing.T) {
		schema, level := c.own("reject", flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
		end, status := c.busy()
		c.untilMetric(`apiserver_flowcontrol_current_executing_requests{flow_schema="reject",priority_level="reject"} 1`)
		answer, text, err := c.review("nobody", strings.NewReader(question))
		c.Must(err)
		if answer.StatusCode != 429 || answer.Header.Get("Retry-After") != "1" || !strings.Contains(text, "Too many requests, please try again later.") {
			t.Errorf("%s, Retry-After %s: %s", answer.Status, answer.Header.Get("Retry-After"), text)
		}
		if h := answer.Header; h.Get("X-Kubernetes-PF-FlowSchema-UID") != string(schema.UID) || h.Get("X-Kubernetes-PF-PriorityLevel-UID") != string(level.UID) {
			t.Errorf("%v", h)
		}
		if answer, text, err := c.review("master", strings.NewReader(question)); err != nil || answer.StatusCode != 201 {
			t.Errorf("system:masters: %v %s %v", answer, text, err)
		}
		answer, text = c.Request("GET", "/version", map[string]string{"Authorization": "Bearer nobody"}, "")
		if answer.StatusCode != 200 {
			t.Errorf("another flow of the same user: %s %s", answer.Status, text)
		}
		end()
		if got := <-status; !strings.HasPrefix(got, "201 ") {
			t.Errorf("the request that was in the way: %s", got)
		}
		c.untilMetric(`apiserver_flowcontrol_rejected_requests_total{flow_schema="reject",priority_level="reject",reason="concurrency-limit"} 1`)
		c.Must(c.Root().Resource(flowSchemas, "").Delete(t.Context(), "reject", nil, nil))
	})
	t.Run("waits for seats that come", func(t *testing.T) {
		_, level := c.own("wait", flowcontrolv1.LimitResponse{
			Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 1},
		})
		end, status := c.busy()
		c.untilMetric(`apiserver_flowcontrol_current_inqueue_requests{flow_schema="wait",priority_level="wait"} 1`)
		if answer, text, err := c.review("nobody", strings.NewReader(question)); err != nil || answer.StatusCode != 429 {
			t.Errorf("a full queue: %v %s %v", answer, text, err)
		}
		c.Must(c.Root().Resource(priorityLevels, "").Patch(t.Context(), level.Name, types.MergePatchType,
			[]byte(`{"spec":{"limited":{"nominalConcurrencyShares":10}}}`), nil))
		end()
		if got := <-status; !strings.HasPrefix(got, "201 ") {
			t.Errorf("the request that waited: %s", got)
		}
		c.Must(c.Root().Resource(flowSchemas, "").Delete(t.Context(), "wait", nil, nil))
	})
	t.Run("watches give their seat back", func(t *testing.T) {
		bindings := c.Root().Resource(core.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterrolebindings"}, "")
		c.Must(bindings.Create(t.Context(), map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "jane"},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}},
		}, nil))
		c.own("watch", flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
		for i := range 3 {
			c.watchAs("nobody", "/api/v1/namespaces?watch=1")
			c.untilMetric(fmt.Sprintf(`apiserver_flowcontrol_request_execution_seconds_count{flow_schema="watch",priority_level="watch",type="watch"} %d`, i+1))
			c.untilMetric(`apiserver_flowcontrol_current_executing_requests{flow_schema="watch",priority_level="watch"} 0`)
		}
	})
	t.Run("lists cost by their size", func(t *testing.T) {
		_, level := c.own("size", flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
		c.Must(c.Root().Resource(priorityLevels, "").Patch(t.Context(), level.Name, types.MergePatchType,
			[]byte(`{"spec":{"limited":{"nominalConcurrencyShares":30}}}`), nil))
		c.Must(c.Root().Resource(definitions, "").Create(t.Context(), parcels(), nil))
		path := "/apis/size.test/v1/namespaces/default/parcels"
		parcel := `{"apiVersion":"size.test/v1","kind":"Parcel","metadata":{"name":"a"},"text":"` + strings.Repeat("x", 250_000) + `"}`
		c.Until("the parcel is there", func(context.Context) bool {
			answer, _ := c.Request("POST", path, servertest.AsMaster(), parcel)
			return answer.StatusCode == http.StatusCreated
		})
		c.Request("GET", path+"/a", servertest.AsMaster(), "") // the cache has it
		// The new limit of the level is in force once a list costs more than one seat.
		c.Until("a list costs three seats", func(context.Context) bool { return c.cost("size", path) == 3 })
		for query, want := range map[string]int{
			"?limit=1": 3, "?fieldSelector=metadata.name%3Da": 1, "?watch=1&timeoutSeconds=1": 3, "?watch=1&timeoutSeconds=1&resourceVersion=1": 1,
			"?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1": 3,
		} {
			if got := c.cost("size", path+query); got != want {
				t.Errorf("%s costs %d seats, want %d", query, got, want)
			}
		}
	})
	t.Run("what every cluster has is kept", func(t *testing.T) {
		stores := c.Server.Resources()
		keep := func(ctx context.Context) {
			c.Must(flowcontrol.Bootstrap(ctx, stores.FlowSchemas, stores.PriorityLevels))
		}
		schemas := c.Root().Resource(flowSchemas, "")
		c.Must(schemas.Patch(t.Context(), "service-accounts", types.MergePatchType, []byte(`{"spec":{"matchingPrecedence":77}}`), nil))
		c.Must(schemas.Patch(t.Context(), "global-default", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"matchingPrecedence":9901}}`), nil))
		c.Must(schemas.Patch(t.Context(), "probes", types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), nil))
		c.Must(schemas.Delete(t.Context(), "kube-scheduler", nil, nil))
		c.Must(schemas.Create(t.Context(), &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: "of-old", Annotations: map[string]string{"apf.kubernetes.io/autoupdate-spec": "true"}},
			Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence: 60, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "system"},
			},
		}, nil))
		keep(t.Context())
		precedence := func(name string) int32 {
			schema := &flowcontrolv1.FlowSchema{}
			c.Must(schemas.Get(t.Context(), name, schema))
			return schema.Spec.MatchingPrecedence
		}
		if a, b, d := precedence("service-accounts"), precedence("global-default"), precedence("kube-scheduler"); a != 9000 || b != 9901 || d != 800 {
			t.Errorf("precedences are %d, %d and %d", a, b, d)
		}
		probes := &flowcontrolv1.FlowSchema{}
		c.Must(schemas.Get(t.Context(), "probes", probes))
		if probes.Annotations["apf.kubernetes.io/autoupdate-spec"] != "true" {
			t.Errorf("annotations of probes: %v", probes.Annotations)
		}
		// Its condition is being written meanwhile: a changed object is left for the
		// next round.
		c.Until("what an earlier release kept is gone", func(ctx context.Context) bool {
			keep(ctx)
			return apierrors.IsNotFound(schemas.Get(ctx, "of-old", probes))
		})
		if err := schemas.Patch(t.Context(), "catch-all", types.MergePatchType, []byte(`{"spec":{"matchingPrecedence":9999}}`), nil); !apierrors.IsInvalid(err) {
			t.Errorf("a change of catch-all: %v", err)
		}
	})
}

// watchAs opens a watch for as long as the test runs, and returns when its
// answer has begun.
func (c *cluster) watchAs(token, path string) {
	c.T.Helper()
	client := c.Token(token)
	request, err := http.NewRequestWithContext(c.T.Context(), http.MethodGet, c.Address+path, nil)
	c.Must(err)
	answer, err := client.HTTP().Do(request)
	c.Must(err)
	c.T.Cleanup(func() { _ = answer.Body.Close() }) // ended by the server
	if answer.StatusCode != http.StatusOK {
		c.T.Errorf("watch: %s", answer.Status)
	}
}

// definitions define custom resources.
var definitions = core.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}

// parcels defines parcels.size.test.
func parcels() map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "parcels.size.test"},
		"spec": map[string]any{
			"group": "size.test", "scope": "Namespaced", "names": map[string]any{"plural": "parcels", "kind": "Parcel"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}
}

// cost is how many seats of a level of its own a request of jane's asks for.
func (c *cluster) cost(level, path string) int {
	c.T.Helper()
	before := c.seats(level)
	c.Request("GET", path, map[string]string{"Authorization": "Bearer nobody"}, "")
	return c.seats(level) - before
}

// seats is how many seats a level's requests have asked for.
func (c *cluster) seats(level string) int {
	c.T.Helper()
	_, text := c.Request("GET", "/metrics", servertest.AsMaster(), "")
	_, value, found := strings.Cut(text, fmt.Sprintf("apiserver_flowcontrol_work_estimated_seats_sum{flow_schema=%q,priority_level=%q} ", level, level))
	if !found {
		return 0 // nothing has asked yet
	}
	value, _, _ = strings.Cut(value, "\n")
	sum, err := strconv.Atoi(value)
	c.Must(err)
	return sum
}
