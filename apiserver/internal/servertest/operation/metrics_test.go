package operation

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestMetricsUnderUpstreamsNames: the same requests are counted as by
// kube-apiserver, with the same labels: custom resources and their rules,
// watches, plugins, unreachable webhooks, and deprecated versions.
func TestMetricsUnderUpstreamsNames(t *testing.T) {
	t.Parallel()
	c := start(t)
	post := func(path, body string) int {
		answer, _ := c.Ask(http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, []byte(body))
		return answer.StatusCode
	}
	get := func(path string) (int, string) {
		answer, text := c.Ask(http.MethodGet, path, nil, nil)
		return answer.StatusCode, string(text)
	}
	post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
		"properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.n < 10"}]}}}}}]}}`)
	post("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", `{"metadata":{"name":"w"},"webhooks":[{"name":"w.example.com",
		"clientConfig":{"url":"https://127.0.0.1:1/"},"admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore",
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["secrets"]}]}]}`)
	c.Until("custom resources to be served", func(context.Context) bool {
		code, _ := get("/apis/example.com/v1/widgets")
		return code == http.StatusOK
	})
	const widgets = "/apis/example.com/v1/namespaces/default/widgets"
	for n, want := range map[string]int{"5": http.StatusCreated, "50": http.StatusUnprocessableEntity} {
		if code := post(widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w`+n+`"},"spec":{"n":`+n+`}}`); code != want {
			t.Errorf("%s: %d", n, code)
		}
	}
	get(widgets + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
	get("/api/v1/endpoints")
	post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `{"metadata":{"name":"closed"},"webhooks":[{"name":"closed.example.com",
		"clientConfig":{"url":"https://127.0.0.1:1/"},"admissionReviewVersions":["v1"],"sideEffects":"None",
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["limitranges"]}]}]}`)
	c.Until("the other webhook to be known", func(context.Context) bool {
		return post("/api/v1/namespaces/default/limitranges", `{"metadata":{"generateName":"l"}}`) == http.StatusInternalServerError
	})
	var text string
	c.Until("the webhook to be known", func(context.Context) bool {
		post("/api/v1/namespaces/default/secrets", `{"metadata":{"generateName":"s"}}`)
		_, text = get("/metrics")
		return strings.Contains(text, `apiserver_admission_webhook_fail_open_count{name="w.example.com",type="admit"}`)
	})
	for _, want := range []string{
		`apiserver_request_total{code="422",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_response_sizes_count{component="apiserver",group="",resource="endpoints",scope="cluster",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1`,
		`apiserver_watch_events_total{group="example.com",resource="widgets",version="v1"} 2`, // the object, and the bookmark after it
		`apiserver_watch_events_sizes_count{group="example.com",resource="widgets",version="v1"} 2`,
		`apiserver_watch_list_duration_seconds_count{group="example.com",resource="widgets",scope="namespace",version="v1"} 1`,
		`apiserver_storage_events_received_total{group="example.com",resource="widgets"} 1`,
		`apiserver_cel_compilation_duration_seconds_count `,
		`apiserver_cel_evaluation_duration_seconds_count `,
		`apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle",operation="CREATE",rejected="false",type="admit"}`,
		`apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="false",type="validate"}`,
		`apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="closed.example.com",operation="CREATE",rejection_code="503",type="validating"}`,
		`authentication_duration_seconds_bucket{result="success",le="16.384"}`,
		`authorization_attempts_total{result="allowed"}`,
		`authorization_duration_seconds_count{result="allowed"}`,
		`apiserver_admission_webhook_request_total{code="503",name="w.example.com",operation="CREATE",rejected="false",type="admit"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "apiserver_cel_evaluation_duration_seconds_count 0\n") {
		t.Error("the rule was not measured")
	}
}
