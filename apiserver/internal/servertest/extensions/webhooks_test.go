package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// refusal is the answer to a create of a config map with the label.
func (c *cluster) refusal(hook string) (*metav1.Status, *core.ConfigMap) {
	c.T.Helper()
	stored := &core.ConfigMap{}
	err := c.Root().Resource(core.ConfigMaps, "default").Create(c.T.Context(), labelled("c-"+hook, hook), stored)
	if err == nil {
		return nil, stored
	}
	var status apierrors.APIStatus
	if !asStatus(err, &status) {
		c.T.Fatalf("%s: %v", hook, err)
	}
	s := status.Status()
	return &s, nil
}

// bothKinds are answers that webhooks of both kinds may give: bad ones, with
// the error in upstream's words, and good ones.
func bothKinds(h *hooks) map[string]string {
	status := func(s *metav1.Status) func(*admissionv1.AdmissionReview) {
		return func(r *admissionv1.AdmissionReview) { r.Response.Allowed, r.Response.Result = false, s }
	}
	failed := func(name string) string {
		return fmt.Sprintf(`500 InternalError Internal error occurred: failed calling webhook "%s.hooks.test": `, name)
	}
	h.on("deny", status(nil))
	h.on("message", status(&metav1.Status{Message: "I say no"}))
	h.on("code", status(&metav1.Status{Message: "teapot", Code: 418, Reason: "Teapot"}))
	h.on("highest", status(&metav1.Status{Message: "m", Code: 999, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}))
	h.on("beyond", status(&metav1.Status{Message: "m", Code: 1000}))
	h.on("reason", status(&metav1.Status{Reason: "just because"}))
	h.on("fine", status(&metav1.Status{Message: "m", Code: 200}))
	h.on("wordy", status(&metav1.Status{Message: strings.Repeat("m", 2<<20), Details: &metav1.StatusDetails{Name: strings.Repeat("n", 2<<20)}}))
	h.raw("wordier", func(w http.ResponseWriter, _ *http.Request, r *admissionv1.AdmissionReview) {
		r.Request, r.Response = nil, nil
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"` + strings.Repeat("m", 2<<20) + `"}`))
	})
	h.on("uid", func(r *admissionv1.AdmissionReview) { r.Response.UID = "nope" })
	h.on("nothing", func(r *admissionv1.AdmissionReview) { r.Response = nil })
	h.on("version", func(r *admissionv1.AdmissionReview) { r.APIVersion = "admission.k8s.io/v1beta1" })
	h.on("kind", func(r *admissionv1.AdmissionReview) { r.Kind = "Foo" })
	h.on("untyped", func(r *admissionv1.AdmissionReview) { r.Response.Patch = []byte("[]") })
	h.raw("garbage", says("{{{"))
	h.raw("empty", says(""))
	h.raw("long", says(strings.Repeat("x", 10<<20)))
	h.raw("error", func(w http.ResponseWriter, _ *http.Request, r *admissionv1.AdmissionReview) {
		r.Request, r.Response = nil, nil
		http.Error(w, "no luck", http.StatusInternalServerError)
	})
	h.raw("elsewhere", func(w http.ResponseWriter, _ *http.Request, r *admissionv1.AdmissionReview) {
		r.Request, r.Response = nil, nil
		w.Header().Set("Location", "/allowed")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	return map[string]string{
		"deny":    `400  admission webhook "deny.hooks.test" denied the request without explanation`,
		"message": `400  admission webhook "message.hooks.test" denied the request: I say no`,
		"code":    `418 Teapot admission webhook "code.hooks.test" denied the request: teapot`,
		"highest": `999  admission webhook "highest.hooks.test" denied the request: m`,
		"beyond":  `400  admission webhook "beyond.hooks.test" denied the request: m`,
		"reason":  `400 just because admission webhook "reason.hooks.test" denied the request: just because`,
		"fine":    `400  admission webhook "fine.hooks.test" denied the request: m`,
		"wordy":   `400  admission webhook "wordy.hooks.test" denied the request: mmm`,
		"wordier": failed("wordier") + "failed to call webhook: mmm",
		"uid":     failed("uid") + "received invalid webhook response: expected response.uid=",
		"nothing": failed("nothing") + "received invalid webhook response: webhook response was absent",
		"version": failed("version") +
			"received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got " +
			"admission.k8s.io/v1beta1, Kind=AdmissionReview",
		"kind":    failed("kind") + "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ",
		"untyped": failed("untyped") + "received invalid webhook response: webhook returned response.patch but not response.patchType",
		"garbage": failed("garbage") +
			"failed to call webhook: couldn't get version/kind; json parse error: invalid character '{' looking for beginning of object key string",
		"empty":     failed("empty") + "failed to call webhook: 0-length response with status code: 200 and content type: ",
		"long":      failed("long") + "failed to call webhook: the response is longer than 8388608 bytes",
		"error":     failed("error") + `failed to call webhook: an error on the server ("no luck") has prevented the request from succeeding`,
		"elsewhere": failed("elsewhere") + "failed to call webhook: the server responded with the status code 307",
		"allowed":   "",
	}
}

// checkRefusals registers a webhook for each name and compares the answers to
// creates with its label.
func (c *cluster) checkRefusals(h *hooks, mutating bool, want map[string]string) {
	c.T.Helper()
	var webhooks []admissionregistrationv1.MutatingWebhook
	for name := range want {
		webhooks = append(webhooks, h.webhook(name))
	}
	c.register(h, mutating, webhooks...)
	for name, want := range want {
		got := ""
		if status, _ := c.refusal(name); status != nil {
			got = fmt.Sprintf("%d %s %s", status.Code, status.Reason, status.Message)
			if status.Size() > 100_000 { // what a webhook writes is cut
				c.T.Errorf("%s: a status of %d bytes", name, status.Size())
			}
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			c.T.Errorf("%s:\n got: %.300s\nwant: %s", name, got, want)
		}
	}
}

func TestValidatingWebhookAnswers(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	want := bothKinds(h)
	h.on("patch", patches(`[{"op":"add","path":"/data/b","value":"2"}]`))
	want["patch"] = `500 InternalError Internal error occurred: failed calling webhook "patch.hooks.test": received invalid webhook response: validating webhook may not return response.patch`
	c.checkRefusals(h, false, want)
}

func TestMutatingWebhookAnswers(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	want := bothKinds(h)
	for name, patch := range map[string][2]string{
		"nopatch": {`nope`,
			`500 InternalError Internal error occurred: failed calling webhook "nopatch.hooks.test": received undecodable patch in webhook response: invalid character 'o' in literal null (expecting 'u')`},
		"missing": {`[{"op":"remove","path":"/nothere"}]`,
			"500 InternalError Internal error occurred: error in remove for path: '/nothere': Unable to remove nonexistent key: nothere: missing value"},
		"breaks": {`[{"op":"add","path":"/data","value":"x"}]`,
			"500 InternalError Internal error occurred: json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"},
		"invalid": {`[{"op":"add","path":"/data","value":{"a b":"c"}}]`, `422 Invalid ConfigMap "c-invalid" is invalid: data[a b]: Invalid value: "a b": `},
		"namespace": {`[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]`,
			"400 BadRequest the namespace of the provided object does not match the namespace sent on the request"},
		"root":      {`[{"op":"replace","path":"","value":[]}]`, "500 InternalError "},
		"null":      {`[{"op":"replace","path":"","value":null}]`, "500 InternalError "},
		"valueless": {`[{"op":"replace","path":""}]`, "500 InternalError Internal error occurred: an operation does not apply: its value is missing"},
		"tests":     {`[{"op":"test","path":""}]`, "500 InternalError Internal error occurred: an operation does not apply: its value is missing"},
		"copies": {`[` + strings.Repeat(`{"op":"copy","from":"/data","path":"/data/x"},{"op":"copy","from":"/data","path":"/data/y"},`, 25) +
			`{"op":"remove","path":"/data"}]`, "500 InternalError "},
		"many": {`[` + strings.Repeat(`{"op":"test","path":"/data/a","value":"1"},`, 10001) + `{"op":"remove","path":"/data"}]`,
			`500 InternalError Internal error occurred: failed calling webhook "many.hooks.test": received a patch of 10002 operations in webhook response, the limit is 10000`},
		"kind": {`[{"op":"replace","path":"/kind","value":"Secret"}]`,
			"500 InternalError Internal error occurred: the object was made a /v1, Kind=Secret, it has to stay a /v1, Kind=ConfigMap"},
		"version": {`[{"op":"replace","path":"/apiVersion","value":"v9"}]`,
			"500 InternalError Internal error occurred: the object was made a /v9, Kind=ConfigMap, it has to stay"},
		"homeless": {`[{"op":"remove","path":"/metadata/namespace"}]`, ""},
		"unknown":  {`[{"op":"add","path":"/unknown","value":1}]`, ""},
		"good":     {`[{"op":"add","path":"/data/b","value":"2"}]`, ""},
	} {
		h.on(name, patches(patch[0]))
		want[name] = patch[1]
	}
	h.on("type", func(r *admissionv1.AdmissionReview) {
		r.Response.Patch, r.Response.PatchType = []byte("[]"), new(admissionv1.PatchType("Foo"))
	})
	want["type"] = `500 InternalError Internal error occurred: failed calling webhook "type.hooks.test": unsupported patch type "Foo"`
	c.checkRefusals(h, true, want)
	stored := &core.ConfigMap{}
	c.Must(c.Root().Resource(core.ConfigMaps, "default").Get(t.Context(), "c-good", stored))
	if stored.Data["a"] != "1" || stored.Data["b"] != "2" {
		t.Errorf("the patch made %v", stored.Data)
	}
}

// TestWebhooksThatFail: failure policies apply to webhooks that can't be
// reached, and a hanging one delays a request no longer than its timeout.
func TestWebhooksThatFail(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits
	hang := func(_ http.ResponseWriter, r *http.Request, _ *admissionv1.AdmissionReview) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}
	ignore := func(w *admissionregistrationv1.MutatingWebhook) {
		w.FailurePolicy = new(admissionregistrationv1.Ignore)
	}
	second := func(w *admissionregistrationv1.MutatingWebhook) { w.TimeoutSeconds = new(int32(1)) }
	dead := func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.URL = new("https://127.0.0.1:1/") }
	untrusted := func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.CABundle = c.CA.Cert }
	noAuthority := func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.CABundle = []byte("foo") }
	nowhere := func(w *admissionregistrationv1.MutatingWebhook) {
		w.ClientConfig = admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "nosvc"}}
	}
	condition := func(text string) func(w *admissionregistrationv1.MutatingWebhook) {
		return func(w *admissionregistrationv1.MutatingWebhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: text}}
		}
	}
	h.raw("hang", hang)
	h.raw("hang-ignored", hang)
	h.on("skipped", func(r *admissionv1.AdmissionReview) { r.Response.Allowed = false })
	h.on("met", func(r *admissionv1.AdmissionReview) { r.Response.Allowed = false })
	want := map[string]string{
		"hang":         `failed calling webhook "hang.hooks.test": failed to call webhook: Post "` + h.URL + `/hang?timeout=1s": context deadline exceeded`,
		"hang-ignored": "",
		"dead":         `failed calling webhook "dead.hooks.test": failed to call webhook: Post "https://127.0.0.1:1/?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`,
		"dead-ignored": "",
		"untrusted":    "tls: failed to verify certificate: x509: certificate signed by unknown authority",
		"no-authority": "unable to load root certificates",
		"nowhere":      `failed to call webhook: Post "https://nosvc.default.svc:443/?timeout=10s": service "nosvc" not found`,
		"bad":          `configmaps "c-bad" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope`,
		"bad-ignored":  "",
		"skipped":      "",
		"met":          "denied the request",
	}
	c.register(h, true,
		h.webhook("hang", second), h.webhook("hang-ignored", second, ignore), h.webhook("dead", dead), h.webhook("dead-ignored", dead, ignore),
		h.webhook("untrusted", untrusted), h.webhook("no-authority", noAuthority), h.webhook("nowhere", nowhere),
		h.webhook("bad", condition("object.nope == 1")), h.webhook("bad-ignored", condition("object.nope == 1"), ignore),
		h.webhook("skipped", condition("request.userInfo.username != 'root'")),
		h.webhook("met", condition("authorizer.requestResource.check('delete').allowed() && namespaceObject.metadata.name == 'default'")))
	for name, want := range want {
		status, _ := c.refusal(name)
		got := ""
		if status != nil {
			got = status.Message
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\n got: %s\nwant: %s", name, got, want)
		}
	}
}

func asStatus(err error, into *apierrors.APIStatus) bool {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // the client wraps nothing
	*into = status
	return ok
}

// TestWebhooksCannotKeepThemselves: a webhook that refuses everything can be
// deleted.
func TestWebhooksCannotKeepThemselves(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	h.on("all", func(r *admissionv1.AdmissionReview) { r.Response.Allowed = false })
	c.Namespace("shop")
	all := h.webhook("all", func(w *admissionregistrationv1.MutatingWebhook) { w.ObjectSelector = nil })
	c.register(h, false, all)
	ctx := t.Context()
	if err := c.Root().Resource(core.ConfigMaps, "default").Create(ctx, labelled("x", "x"), nil); err == nil {
		t.Error("it does not refuse everything")
	}
	if err := c.Root().Resource(core.Namespaces, "").Delete(ctx, "shop", nil, nil); err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("a deletion: %v", err)
	}
	h.asked("all")
	name := "testwebhookscannotkeepthemselves-2"
	for _, kind := range []core.Resource{validatingWebhooks, mutatingWebhooks} {
		if kind == mutatingWebhooks {
			c.Must(c.Root().Resource(kind, "").Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
		}
		c.Must(c.Root().Resource(kind, "").Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), nil))
		c.Must(c.Root().Resource(kind, "").Delete(ctx, name, nil, nil))
	}
	if asked := h.asked("all"); len(asked) > 0 {
		t.Errorf("it was asked about webhooks: %+v", asked[0])
	}
	c.Until("nobody refuses", func(ctx context.Context) bool {
		return c.Root().Resource(core.ConfigMaps, "default").Create(ctx, labelled("x", "x"), nil) == nil
	})
}

// TestWhatWebhooksAreAsked checks the reviews of each operation.
func TestWhatWebhooksAreAsked(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	ctx, root := t.Context(), c.Root()
	c.askAll(h)
	next := func(what string) *admissionv1.AdmissionRequest {
		t.Helper()
		return h.last(t, what)
	}
	h.asked("all")
	c.Must(root.Resource(core.ConfigMaps, "shop").Create(ctx, labelled("a", "x"), nil, rest.Query("dryRun", "All"), rest.Query("fieldManager", "me")))
	r := next("dry create")
	if r.Operation != "CREATE" || !*r.DryRun || r.Name != "a" || r.Namespace != "shop" || r.UserInfo.Username != "root" || r.Kind.Kind != "ConfigMap" ||
		r.Resource.Resource != "configmaps" || *r.RequestKind != r.Kind || *r.RequestResource != r.Resource ||
		string(r.OldObject.Raw) != "null" && r.OldObject.Raw != nil ||
		string(r.Options.Raw) != `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"me"}` {
		t.Errorf("dry create: %+v %s", r, r.Options.Raw)
	}
	c.Must(root.Resource(core.ConfigMaps, "shop").Create(ctx, labelled("a", "x"), nil))
	next("create")
	c.Must(root.Resource(core.ConfigMaps, "shop").Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"b":"2"}}`), nil))
	r = next("patch")
	var now, before core.ConfigMap
	if err := json.Unmarshal(r.Object.Raw, &now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.OldObject.Raw, &before); err != nil {
		t.Fatal(err)
	}
	if r.Operation != "UPDATE" || now.Kind != "ConfigMap" || now.Data["b"] != "2" || before.Kind != "ConfigMap" || len(before.Data) != 1 {
		t.Errorf("patch: %+v", r)
	}
	c.Must(root.Resource(core.ConfigMaps, "shop").Delete(ctx, "a", nil, nil))
	if r = next("delete"); r.Operation != "DELETE" || string(r.Object.Raw) != "null" && r.Object.Raw != nil || len(r.OldObject.Raw) < 10 {
		t.Errorf("delete: %+v", r)
	}
	c.Must(root.Resource(core.ConfigMaps, "shop").Create(ctx, labelled("a", "x"), nil))
	next("create of what goes with others")
	c.Must(root.Do(ctx, http.MethodDelete, core.ConfigMaps.Path("shop", ""), nil, nil, rest.Query("fieldSelector", "metadata.name=a")))
	if r = next("delete of a collection"); r.Operation != "DELETE" || r.Name != "" || len(r.OldObject.Raw) < 10 {
		t.Errorf("delete of a collection: %+v", r)
	}
	p := servertest.Pod("web")
	c.Must(root.Resource(core.Pods, "shop").Create(ctx, p, nil))
	next("pod")
	_ = root.Do(ctx, http.MethodPost, core.Pods.Path("shop", "web")+"/exec", nil, nil, // there is no such pod
		rest.Query("container", "c"), rest.Query("command", "ls"), rest.Query("command", "-l"), rest.Query("stdin", "true"))
	if r = next("exec"); r.Operation != "CONNECT" || r.SubResource != "exec" || r.RequestSubResource != "exec" || r.Kind.Kind != "PodExecOptions" ||
		r.Resource.Resource != "pods" ||
		string(r.Object.Raw) != `{"kind":"PodExecOptions","apiVersion":"v1","stdin":true,"container":"c","command":["ls","-l"]}` {
		t.Errorf("exec: %+v %s", r, r.Object.Raw)
	}
	binding := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	c.Must(root.Do(ctx, http.MethodPost, core.Pods.Path("shop", "web")+"/binding", binding, nil))
	if r = next("binding"); r.Operation != "CREATE" || r.SubResource != "binding" || r.Kind.Kind != "Binding" || r.Name != "web" {
		t.Errorf("binding: %+v", r)
	}
	c.Must(root.Resource(core.Pods, "shop").Patch(ctx, "web", types.MergePatchType, []byte(`{"status":{"message":"x"}}`), nil, rest.Sub("status")))
	if r = next("status"); r.Operation != "UPDATE" || r.SubResource != "status" || r.Kind.Kind != "Pod" {
		t.Errorf("status: %+v", r)
	}
}
