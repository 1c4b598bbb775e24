package extensions

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/proto/pki"
)

const apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"

// federation is a cluster with an extension server.
type federation struct {
	*custom
	extension         *extension
	proxies           *pki.Pair
	certFile, keyFile string // what the server shows to the extension
}

func startFederation(t *testing.T) *federation {
	t.Helper()
	proxies, err := pki.NewCA("proxies", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := proxies.Issue(pki.Subject{CommonName: "aggregator", Client: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(t.TempDir(), "proxy.crt"), filepath.Join(t.TempDir(), "proxy.key")
	if err := pair.Save(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *config.Options) { o.Aggregation.ProxyCertFile, o.Aggregation.ProxyKeyFile = certFile, keyFile })
	return &federation{&custom{c}, startExtension(t, c.CA, proxies), proxies, certFile, keyFile}
}

func (f *federation) port() int {
	return f.extension.Listener.Addr().(*net.TCPAddr).Port
}

// register creates the service and the APIService of the extension server.
func (f *federation) register() {
	f.T.Helper()
	f.want(http.StatusCreated, "POST", "/api/v1/namespaces/default/services", map[string]any{
		"metadata": map[string]any{"name": "far"}, "spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	})
	f.want(http.StatusCreated, "POST", apiServicesPath, f.apiService())
}

func (f *federation) apiService() map[string]any {
	return map[string]any{
		"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": map[string]any{"name": "v1.far.example.com"},
		"spec": map[string]any{
			"group": "far.example.com", "version": "v1", "groupPriorityMinimum": 19000, "versionPriority": 15, "caBundle": f.CA.Cert,
			"service": map[string]any{"namespace": "default", "name": "far", "port": f.port()},
		},
	}
}

// condition is "reason: message" of the APIService's condition.
func (f *federation) condition(ctx context.Context, name string) string {
	var s struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := f.Root().Do(ctx, "GET", apiServicesPath+"/"+name, nil, &s); err != nil {
		return err.Error()
	}
	for _, c := range s.Status.Conditions {
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	return ""
}

func (f *federation) untilCondition(want string) {
	f.T.Helper()
	f.Until(want, func(ctx context.Context) bool { return strings.HasPrefix(f.condition(ctx, "v1.far.example.com"), want) })
}

// freshness is what aggregated discovery says about the extension server's
// group: its freshness and its resources.
func (f *federation) freshness() (freshness string, resources []string) {
	_, content, _ := f.call("GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	items, _ := content["items"].([]any)
	for _, item := range items {
		group := item.(map[string]any)
		if group["metadata"].(map[string]any)["name"] != "far.example.com" {
			continue
		}
		version := group["versions"].([]any)[0].(map[string]any)
		freshness, _ = version["freshness"].(string)
		list, _ := version["resources"].([]any)
		for _, r := range list {
			if name := r.(map[string]any)["resource"].(string); name != "gadgets" {
				resources = append(resources, name)
			}
		}
	}
	return freshness, resources
}

const thingsPath = "/apis/far.example.com/v1/namespaces/default/things"

func TestAggregation(t *testing.T) {
	t.Parallel()
	f := startFederation(t)
	f.want(http.StatusNotFound, "GET", thingsPath, nil)
	f.register()
	f.untilCondition("True Passed: all checks passed")
	f.Until("the group in discovery", func(context.Context) bool {
		freshness, resources := f.freshness()
		return freshness == "Current" && slices.Equal(resources, []string{"things"})
	})

	t.Run("requests are passed on", f.passesOn)
	t.Run("streams", f.streams)
	t.Run("discovery", f.discovers)
	t.Run("descriptions", f.describes)
	t.Run("a custom resource of the same group", f.conflicts)
	t.Run("namespaces", f.empties)
	t.Run("owners", f.collects)
	t.Run("a server that fails", f.fails)
	t.Run("an end", f.ends)
}

func (f *federation) passesOn(t *testing.T) {
	f.Bind("mary", "cluster-admin", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mary"})
	f.Until("mary to be an admin", func(context.Context) bool {
		code, _, _ := f.call("GET", thingsPath, nil, "Impersonate-User", "mary")
		return code == http.StatusOK
	})
	f.want(http.StatusCreated, "POST", thingsPath, map[string]any{"metadata": map[string]any{"name": "one"}},
		"X-Remote-User", "intruder", "X-Remote-Group", "system:masters",
		"Impersonate-User", "mary", "Impersonate-Group", "dev", "Impersonate-Extra-Scopes%2fA", "read")
	f.extension.mu.Lock()
	seen := f.extension.seen
	f.extension.mu.Unlock()
	for name, want := range map[string][]string{
		"X-Remote-User": {"mary"}, "X-Remote-Group": {"dev", "system:authenticated"}, "X-Remote-Extra-Scopes%2fa": {"read"},
		"Authorization": nil, "Impersonate-User": nil, "Impersonate-Group": nil, "X-Forwarded-Uri": {thingsPath}, "X-Forwarded-Proto": {"https"},
	} {
		if got := seen.Values(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if one := f.want(http.StatusOK, "GET", thingsPath+"/one", nil); one["metadata"].(map[string]any)["name"] != "one" {
		t.Errorf("got %v", one)
	}
	// Clients must not be able to remove or add identity headers on the way.
	f.Speak("GET " + thingsPath +
		" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer master\r\nX-Remote-User: intruder\r\nX-Remote-Extra-A: b\r\nX_Remote_User: intruder\r\n" +
		"Connection: close, X-Remote-User, X-Remote-Group, X-Forwarded-Uri\r\n\r\n")
	f.extension.mu.Lock()
	seen = f.extension.seen
	f.extension.mu.Unlock()
	if user, groups := seen.Values("X-Remote-User"), seen.Values("X-Remote-Group"); len(user) != 1 || user[0] == "intruder" ||
		!slices.Contains(groups, "system:masters") ||
		seen.Get("X-Forwarded-Uri") != thingsPath || seen.Get("X-Remote-Extra-A") != "" || seen.Get("X_remote_user") != "" {
		t.Errorf("the extension server got %v", seen)
	}
	// A request that is not authorized is not passed on.
	if err := f.Token("nobody").Do(t.Context(), "GET", thingsPath, nil, nil); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("nobody got %v", err)
	}
	if answer, text := f.Ask("GET", thingsPath+"/one", nil, nil); answer.StatusCode != http.StatusOK || answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s %s to whichever page: %v", answer.Status, text, answer.Header)
	}
	answer, text := f.Ask("GET", thingsPath+"/w/elsewhere", nil, nil)
	if answer.StatusCode != http.StatusBadGateway || !strings.HasPrefix(string(text), "the backend attempted to redirect") {
		t.Errorf("a redirect: %s %s", answer.Status, text)
	}
}

func (f *federation) streams(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), "GET", f.Address+thingsPath+"?watch=true", nil)
	f.Must(err)
	request.Header.Set("Authorization", "Bearer master")
	answer, err := f.Root().HTTP().Do(request)
	f.Must(err)
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for _, event := range []string{`{"type":"ADDED"}`, `{"type":"DELETED"}`} {
		f.extension.events <- event // the next event comes only when the last one was read
		if line, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != event {
			t.Errorf("%q, %v", line, err)
		}
	}

	connection, err := f.Socket(thingsPath+"/w/echo", "")
	f.Must(err)
	defer connection.Close()
	text := ""
	if err := errors.Join(websocket.Message.Send(connection, "hello"), websocket.Message.Receive(connection, &text)); err != nil || text != "hello" {
		t.Errorf("%q, %v", text, err)
	}
}

func (f *federation) discovers(t *testing.T) {
	groups := f.want(http.StatusOK, "GET", "/apis", nil)["groups"].([]any)
	var names []string
	for _, group := range groups {
		names = append(names, group.(map[string]any)["name"].(string))
	}
	if !slices.Equal(names[:3], []string{"apiregistration.k8s.io", "far.example.com", "apps"}) {
		t.Errorf("groups in the order %v", names)
	}
	if group := f.want(http.StatusOK, "GET", "/apis/far.example.com", nil); group["kind"] != "APIGroup" {
		t.Errorf("the group: %v", group)
	}
	if list := f.want(http.StatusOK, "GET", "/apis/far.example.com/v1", nil); list["groupVersion"] != "far.example.com/v1" {
		t.Errorf("the version: %v", list)
	}
	_, _, header := f.call("GET", "/apis", nil)
	if code, _, _ := f.call("GET", "/apis", nil, "If-None-Match", header.Get("ETag")); code != http.StatusNotModified {
		t.Errorf("the same again: %d", code)
	}
}

// describes: the extension server's documents are merged into the v2 document,
// and listed in v3.
func (f *federation) describes(t *testing.T) {
	f.Until("the description in v2", func(context.Context) bool {
		document := f.want(http.StatusOK, "GET", "/openapi/v2", nil)
		_, path := document["paths"].(map[string]any)[thingsPath]
		_, definition := document["definitions"].(map[string]any)["com.example.Thing"]
		return path && definition
	})
	list := f.want(http.StatusOK, "GET", "/openapi/v3", nil)["paths"].(map[string]any)
	at, _ := list["apis/far.example.com/v1"].(map[string]any)
	url, _ := at["serverRelativeURL"].(string)
	if url != "/openapi/v3/apis/far.example.com/v1?hash=ABC" || list["apis/apps/v1"] == nil {
		t.Fatalf("listed: %v", list)
	}
	if document := f.want(http.StatusOK, "GET", url, nil); document["info"].(map[string]any)["title"] != "far" {
		t.Errorf("the document: %v", document)
	}
	answer, _ := f.Ask("GET", "/openapi/v2", http.Header{"Accept": {"application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}}, nil)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("as protobuf: %s", answer.Status)
	}
}

// conflicts: a group and version with a service stays with that server, even if
// a definition is created for it.
func (f *federation) conflicts(t *testing.T) {
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	}
	f.want(http.StatusCreated, "POST", definitionsPath, map[string]any{
		"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": map[string]any{"name": "things.far.example.com"},
		"spec": map[string]any{
			"group": "far.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "things", "kind": "Thing"},
			"versions": []any{version("v1", true), version("v1beta1", false)},
		},
	})
	f.Until("the definition to be established", func(ctx context.Context) bool {
		return f.Root().Do(ctx, "GET", "/apis/far.example.com/v1beta1/things", nil, nil) == nil
	})
	if list := f.want(http.StatusOK, "GET", thingsPath, nil); list["kind"] != "ThingList" || list["metadata"] != nil {
		t.Errorf("answered here: %v", list)
	}
	f.Until("an APIService for the other version", func(ctx context.Context) bool {
		return strings.HasPrefix(f.condition(ctx, "v1beta1.far.example.com"), "True Local")
	})
	if got := f.want(http.StatusOK, "GET", apiServicesPath+"/v1.far.example.com", nil); got["spec"].(map[string]any)["service"] == nil {
		t.Errorf("the APIService was taken over: %v", got)
	}
	f.want(http.StatusOK, "DELETE", definitionsPath+"/things.far.example.com", nil)
	f.Until("the APIService to go", func(ctx context.Context) bool {
		return strings.Contains(f.condition(ctx, "v1beta1.far.example.com"), "not found")
	})
}

// fails: an extension server's failures affect nothing else.
func (f *federation) fails(t *testing.T) {
	f.gadget("holds", f.owned("held"))
	f.untilGadget("holds", false, 1)
	recheck := func(mode, want string) {
		t.Helper()
		f.extension.misbehave(mode)
		// A change of the service triggers a new check at once.
		f.want(http.StatusOK, "PATCH", "/api/v1/namespaces/default/services/far",
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{"mode": mode}}},
			"Content-Type", "application/merge-patch+json")
		f.untilCondition(want)
	}
	recheck("broken",
		fmt.Sprintf("False FailedDiscoveryCheck: failing or missing response from https://localhost:%d/apis/far.example.com/v1: bad status from "+
			"https://localhost:%d/apis/far.example.com/v1: 500", f.port(), f.port()))
	f.Until("the answer that it is unavailable", func(context.Context) bool {
		answer, text := f.Ask("GET", thingsPath, nil, nil)
		return answer.StatusCode == http.StatusServiceUnavailable && string(text) == "service unavailable\n"
	})
	if freshness, resources := f.freshness(); freshness != "Stale" || len(resources) > 0 {
		t.Errorf("discovery says %s %v", freshness, resources)
	}
	f.cannotEmpty()
	collected := f.cannotCollect()
	if _, metrics := f.Ask("GET", "/metrics", nil, nil); !strings.Contains(string(metrics), `aggregator_unavailable_apiservice{name="v1.far.example.com"} 1`) ||
		!strings.Contains(string(metrics), `aggregator_unavailable_apiservice_total{name="v1.far.example.com",reason="FailedDiscoveryCheck"} 1`) {
		t.Error("no metric tells that it is unavailable")
	}
	for _, mode := range []string{"lying", "slow"} {
		recheck("broken", "False FailedDiscoveryCheck")
		recheck(mode, "True Passed")
		if freshness, resources := f.freshness(); freshness == "" || !slices.Equal(resources, map[string][]string{"Current": {"things"}}[freshness]) {
			t.Errorf("of a %s server, discovery says %s %v", mode, freshness, resources)
		}
		f.want(http.StatusOK, "GET", thingsPath, nil)
	}
	recheck("broken", "False FailedDiscoveryCheck")
	recheck("plain", "True Passed")
	f.Until("the plain list to be taken", func(context.Context) bool {
		freshness, _ := f.freshness()
		return freshness == "Current"
	})
	f.untilGone("stuck")
	recheck("broken", "False FailedDiscoveryCheck")
	recheck("", "True Passed")
	collected() // the first list did not have gadgets yet
}

func (f *federation) ends(t *testing.T) {
	f.want(http.StatusOK, "DELETE", "/api/v1/namespaces/default/services/far", nil)
	f.untilCondition(`False ServiceNotFound: service/far in "default" is not present`)
	f.want(http.StatusOK, "DELETE", apiServicesPath+"/v1.far.example.com", nil)
	f.Until("the group to go", func(context.Context) bool {
		code, _, _ := f.call("GET", thingsPath, nil)
		freshness, _ := f.freshness()
		return code == http.StatusNotFound && freshness == ""
	})
}
