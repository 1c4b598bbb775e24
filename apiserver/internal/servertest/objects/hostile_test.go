package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// TestHostile sends a server what clients should not send, and checks it again
// afterwards: it answers, and has kept nothing.
func TestHostile(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Must(c.Root().Resource(core.ConfigMaps, "default").Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, nil))
	t.Run("paths", c.in(hostilePaths))
	t.Run("bodies", c.in(hostileBodies))
	t.Run("selectors", c.in(hostileSelectors))
	t.Run("connections", c.in(hostileConnections))
	t.Run("streams", c.in(rapidReset))
	t.Run("writers", c.in(manyWriters))
	var maps corev1.ConfigMapList
	c.Must(c.Root().Resource(core.ConfigMaps, "default").List(t.Context(), &maps, rest.Query("fieldSelector", "metadata.name!="+core.RootCAConfigMap)))
	if len(maps.Items) != 1 || maps.Items[0].Name != "kept" || maps.Items[0].Labels != nil {
		t.Errorf("afterwards there is %+v", maps.Items)
	}
}

func (c *cluster) in(f func(*cluster)) func(*testing.T) {
	return func(t *testing.T) {
		f(&cluster{c.In(t)})
	}
}

// hostilePaths: no path can be mistaken for another.
func hostilePaths(c *cluster) {
	const maps = "/api/v1/namespaces/default/configmaps"
	for path, want := range map[string]string{
		"/api/v1" + "//namespaces":          "404 NotFound",
		"/" + maps:                          "404  ",
		maps + "/":                          "200 ",
		maps + "/kept/":                     "200 ",
		"/apis/apps/v1/deployments//":       "200 ",
		"/api/v1/namespaces/default%2F":     "200 ",
		maps + "/..":                        `400 BadRequest Name parameter invalid: "..": may not be '..'`,
		maps + "/%2e%2e/secrets":            `400 BadRequest Name parameter invalid: "..": may not be '..'`,
		maps + "/..%2f..%2fsecrets":         `400 BadRequest Name parameter invalid: "..": may not be '..'`,
		maps + "/.":                         `400 BadRequest Name parameter invalid: ".": may not be '.'`,
		maps + "/a%252fb":                   `400 BadRequest Name parameter invalid: "a%2fb": may not contain '%'`,
		"/api/v1/namespaces/../configmaps":  `400 BadRequest Namespace parameter invalid: "..": may not be '..'`,
		"/api/v1/namespaces/%2e%2e/pods/x":  `400 BadRequest Namespace parameter invalid: "..": may not be '..'`,
		maps + "/a%00b":                     "404 NotFound",
		maps + "/%ff":                       "404 NotFound",
		maps + "/a%2fb":                     "404 NotFound",
		"/healthz/../api/v1/secrets":        "404  ",
		"/readyz//etcd":                     "404  ",
		"/metrics/../api":                   "404  ",
		"/openapi/v3/..%2f..%2fapi":         "404  ",
		"/api/v1/nodes/x/proxy/../../../x":  "404 NotFound",
		maps + "?continue=%ff%fe":           "400 BadRequest invalid continue token",
		maps + "?limit=1e9":                 "400 BadRequest limit",
		maps + "?watch=1&resourceVersion=x": "400 BadRequest invalid resource version",
		maps + "?watch=1&timeoutSeconds=1&resourceVersion=9999999999": "200 ", // this revision may still come
	} {
		answer, text := c.Ask(http.MethodGet, path, nil, nil)
		var status metav1.Status
		_ = json.Unmarshal(text, &status)
		if got := fmt.Sprintf("%d %s %s", answer.StatusCode, status.Reason, status.Message); !strings.HasPrefix(got, want) {
			c.T.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// hostileBodies are small when sent, and large or deep when decoded. Each has a
// limit of its own, and the server has one for all.
func hostileBodies(c *cluster) {
	const maps, pods = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
	const deep = 100_000
	arrays, objects := strings.Repeat("[", deep)+strings.Repeat("]", deep), strings.Repeat(`{"a":`, deep/2)+"1"+strings.Repeat("}", deep/2)
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	// Few values, so that YAML parsers don't mind, but 4 MB of JSON for each KB.
	longLaughs := "metadata: {name: x}\na: &a " + strings.Repeat("x", 4<<10) + "\nb: [" + strings.Repeat("*a,", 1<<10) + "*a]\n"
	many := func(head, item string, n int, tail string) string {
		return head + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + tail
	}
	var owners strings.Builder // all different, because duplicate owners are dropped
	owners.WriteString(`{"metadata":{"name":"x","ownerReferences":[{"uid":"0"}`)
	for i := range 19_999 {
		fmt.Fprintf(&owners, `,{"uid":"%d"}`, i+1)
	}
	owners.WriteString("]}}")
	for _, test := range []struct {
		name, method, path, media, body string
		code                            int
		says                            string
	}{
		{"deep arrays", "POST", maps, "json", `{"metadata":{"name":"x"},"a":` + arrays + `}`, 400, "exceeded max depth"},
		{"deep objects", "PUT", maps + "/kept", "json", `{"metadata":{"name":"kept"},"data":` + objects + `}`, 400, "exceeded max depth"},
		{"deep YAML", "POST", maps, "yaml", "a: " + arrays, 400, "exceeded max depth"},
		{"deep apply", "PATCH", maps + "/x?fieldManager=a", "apply-patch+yaml", "a: " + objects, 400, "exceeded max depth"},
		{"deep merge patch", "PATCH", maps + "/kept", "merge-patch+json", `{"data":` + objects + `}`, 400, "invalid JSON patch"},
		{"deep strategic patch", "PATCH", maps + "/kept", "strategic-merge-patch+json", `{"data":` + arrays + `}`, 400, "invalid JSON patch"},
		{"deep JSON patch", "PATCH", maps + "/kept", "json-patch+json", `[{"op":"add","path":"/data","value":` + objects + `}]`, 400, "invalid JSON patch"},
		{"deep options", "DELETE", maps + "/kept", "json", `{"a":` + arrays + `}`, 400, "exceeded max depth"},
		{"deep review", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "json", `{"spec":{"a":` + objects + `}}`, 400, "exceeded max depth"},
		{"deep token", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", "json", `{"spec":` + arrays + `}`, 400, "exceeded max depth"},
		{"laughs", "POST", maps, "yaml", laughs, 400, "excessive aliasing"},
		{"laughs applied", "PATCH", maps + "/x?fieldManager=a", "apply-patch+yaml", laughs, 400, "excessive aliasing"},
		{"laughs patched", "PATCH", maps + "/kept", "strategic-merge-patch+json", laughs, 400, "invalid JSON patch"},
		{"long laughs", "POST", maps, "yaml", longLaughs, 400, "excessive aliasing"},
		{"long laughs applied", "PATCH", maps + "/x?fieldManager=a", "apply-patch+yaml", longLaughs, 400, "excessive aliasing"},
		{"long laughs deleted", "DELETE", maps + "/kept", "yaml", longLaughs, 400, "excessive aliasing"},
		{"long laughs reviewed", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "yaml", longLaughs, 400, "excessive aliasing"},
		{"its own part", "POST", maps, "yaml", "a: &a [*a]\n", 400, "contains itself"},
		{"containers", "POST", pods, "json", many(`{"metadata":{"name":"x"},"spec":{"containers":[`, "{}", 900_000, "]}}"), 413, "at most 100000 are accepted"},
		{"nulls", "POST", pods, "json", many(`{"metadata":{"name":"x"},"spec":{"containers":[`, "null", 500_000, "]}}"), 413, "at most 100000 are accepted"},
		{"containers in YAML", "POST", pods, "yaml", "metadata: {name: x}\nspec:\n  containers:\n" + strings.Repeat("  -\n", 150_000), 413,
			"at most 100000 are accepted"},
		{"owners applied", "PATCH", maps + "/x?fieldManager=a", "apply-patch+yaml",
			many("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, ownerReferences: [", "{}", 300_000, "]}"), 413, "at most 100000 are accepted"},
		{"containers patched", "PATCH", maps + "/kept", "merge-patch+json", many(`{"metadata":{"ownerReferences":[`, "{}", 200_000, "]}}"), 413,
			"at most 100000 are accepted"},
		{"faults", "POST", maps, "json", owners.String(), 422, "and 59000 more"},
		{"finalizers", "POST", maps, "json", many(`{"metadata":{"name":"x","finalizers":[`, `"!"`, 20_000, "]}}"), 422, "and 39000 more"},
		{"index", "PATCH", maps + "/kept", "json-patch+json",
			`[{"op":"add","path":"/metadata/finalizers","value":[]},{"op":"add","path":"/metadata/finalizers/999999999","value":"a/b"}]`, 422, "rejected"},
		{"zeros", "POST", maps, "json", strings.Repeat("\x00", 1<<20), 400, "invalid character"},
		{"protobuf", "POST", maps, "vnd.kubernetes.protobuf", "k8s\x00" + strings.Repeat("\xff", 1<<20), 400, "integer overflow"},
		{"protobuf length", "POST", maps, "vnd.kubernetes.protobuf", "k8s\x00\x12\xff\xff\xff\xff\x07", 400, "unexpected EOF"},
		{"late time in protobuf", "POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "vnd.kubernetes.protobuf", renewedLate(c), 400, "20000"},
		{"too large", "POST", maps, "json", `{"data":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`, 413, "limit is"},
		{"compressed", "POST", maps, "json", "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 100), 400, "invalid character"},
	} {
		answer, text := c.Ask(test.method, test.path, http.Header{"Content-Type": {"application/" + test.media}}, []byte(test.body))
		var status metav1.Status
		if json.Unmarshal(text, &status) != nil || answer.StatusCode != test.code || int(status.Code) != test.code || !strings.Contains(status.Message, test.says) {
			c.T.Errorf("%s: %d, want %d that says %q: %.300s", test.name, answer.StatusCode, test.code, test.says, text)
		}
		if len(text) > 1<<20 {
			c.T.Errorf("%s: the answer has %d bytes", test.name, len(text))
		}
	}
	doubled := http.Header{"Content-Type": {"application/yaml"}}
	answer, text := c.Ask(http.MethodPost, maps+"?dryRun=All", doubled, []byte("metadata: {name: x}\n"+strings.Repeat("k: 0\n", 20_000)))
	if warnings := answer.Header.Values("Warning"); answer.StatusCode != http.StatusCreated || len(warnings) == 0 || len(strings.Join(warnings, "")) > 4<<10 {
		c.T.Errorf("20,000 doubled fields: %d, %d warnings, %.200s", answer.StatusCode, len(warnings), text)
	}
}

// renewedLate is a lease in protobuf with a time that JSON, which objects are stored as, can't hold.
func renewedLate(c *cluster) string {
	at := metav1.NewMicroTime(time.Date(20_000, time.January, 1, 0, 0, 0, 0, time.UTC))
	lease := &core.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	lease.Spec.RenewTime = &at
	body, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), lease)
	c.Must(err)
	return string(body)
}

func hostileSelectors(c *cluster) {
	const maps = "/api/v1/namespaces/default/configmaps"
	var several []string
	for i := range 10_000 {
		several = append(several, fmt.Sprintf("!k%d", i))
	}
	for query, want := range map[string]int{
		"labelSelector=" + strings.Join(several, ","):                                                   http.StatusOK,
		"labelSelector=a+in+(" + strings.Repeat("v,", 100_000) + "v)":                                   http.StatusOK,
		"labelSelector=" + strings.Repeat("(", 500_000):                                                 http.StatusBadRequest,
		"fieldSelector=" + strings.Repeat("metadata.name!=x,", 10_000) + "metadata.name!=y":             http.StatusOK,
		"fieldSelector=" + strings.Repeat(`\`, 100_000):                                                 http.StatusBadRequest,
		"watch=1&timeoutSeconds=1&labelSelector=" + strings.Join(several, ","):                          http.StatusOK,
		"resourceVersion=99999999999&resourceVersionMatch=NotOlderThan&timeoutSeconds=1":                http.StatusGatewayTimeout,
		"limit=1&continue=" + "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzIn0": http.StatusBadRequest, // start: ../../secrets
	} {
		if answer, text := c.Ask(http.MethodGet, maps+"?"+query, nil, nil); answer.StatusCode != want {
			c.T.Errorf("%.60s: %d %.300s, want %d", query, answer.StatusCode, text, want)
		}
	}
}

// hostileConnections: no two readers of a connection may disagree on where
// requests begin, and no header may change a user's identity.
func hostileConnections(c *cluster) {
	const maps = "/api/v1/namespaces/default/configmaps"
	request := func(line, token, headers, body string) string {
		return line + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nConnection: close\r\n" + headers + "\r\n" + body
	}
	const second = "DELETE " + maps + "/kept HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer master\r\n\r\n"
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"length and chunks":   {request("GET /version", "master", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+second), "[200]"},
		"chunks by two names": {request("POST "+maps, "master", "Transfer-Encoding: xchunked\r\n", second), "[501]"},
		"chunked twice":       {request("POST "+maps, "master", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+second), "[501]"},
		"space before colon":  {request("POST "+maps, "master", "Transfer-Encoding : chunked\r\n", second), "[400]"},
		"two lengths":         {request("POST "+maps, "master", "Content-Length: 5\r\nContent-Length: 6\r\n", second), "[400]"},
		"length below zero":   {request("POST "+maps, "master", "Content-Length: -1\r\n", second), "[400]"},
		"broken chunk":        {request("POST "+maps, "master", "Transfer-Encoding: chunked\r\n", "zz\r\n"+second), "[400]"},
		"body of a get":       {request("GET /version", "master", fmt.Sprintf("Content-Length: %d\r\n", len(second)), second), "[200]"},
		"two hosts":           {request("GET /version", "master", "Host: y\r\n", ""), "[400]"},
		"zero in a header":    {request("GET /version", "master", "X: \x00\r\n", ""), "[400]"},
		"large header":        {request("GET /version", "master", "X: "+strings.Repeat("x", 2<<20)+"\r\n", ""), "[431]"},
		"other verb":          {request("BREW "+maps, "master", "", ""), "[405]"},
		"override":            {request("GET "+maps, "nobody", "X-HTTP-Method-Override: DELETE\r\n", ""), "[403]"},
		"remote user":         {request("GET "+maps, "nobody", "X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n", ""), "[403]"},
		"impersonation":       {request("GET "+maps, "nobody", "impersonate-user: root\r\nImpersonate-Group: system:masters\r\n", ""), "[403]"},
		"group alone":         {request("GET "+maps, "nobody", "Impersonate-Group: system:masters\r\n", ""), "[400]"},
		"nobody as a group":   {request("GET "+maps, "nobody", "Impersonate-User:\r\nImpersonate-Group: system:masters\r\n", ""), "[400]"},
		"second token":        {request("GET "+maps, "nobody", "Authorization: Bearer master\r\n", ""), "[403]"},
		"no token":            {"GET " + maps + " HTTP/1.1\r\nHost: x\r\nX-Remote-User: root\r\nConnection: close\r\n\r\n", "[401]"},
		"no token at last": {strings.Replace(request("GET /version", "master", "", ""), "Connection: close\r\n", "", 1) +
			"GET " + maps + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "[200 401]"},
		"unwilling": {request("POST "+maps, "master", "Expect: the-worst\r\nContent-Length: 5\r\n", "{}   "), "[417]"},
	} {
		if got := fmt.Sprint(c.Speak(test.text)); got != test.want {
			c.T.Errorf("%s: answered %s, want %s", name, got, test.want)
		}
	}
}

// rapidReset opens many streams and resets each at once.
func rapidReset(c *cluster) {
	client := c.Root()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				ctx, cancel := context.WithCancel(c.T.Context())
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Address+"/api/v1/pods?watch=1", nil)
				if err != nil {
					c.T.Error(err)
				}
				go cancel()
				if answer, err := client.HTTP().Do(request); err == nil {
					_ = answer.Body.Close()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if answer, _ := c.Ask(http.MethodGet, "/readyz", nil, nil); answer.StatusCode != http.StatusOK {
		c.T.Errorf("afterwards the server is not ready: %d", answer.StatusCode)
	}
	c.Until("no watch is left", func(context.Context) bool {
		_, text := c.Ask(http.MethodGet, "/metrics", nil, nil)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `resource="pods"`) && !strings.HasSuffix(line, "} 0\n") {
				return false
			}
		}
		return true
	})
}

// manyWriters update one object concurrently, each based on what it read: no
// update is lost.
func manyWriters(c *cluster) {
	const writers = 64
	maps := c.Root().Resource(core.ConfigMaps, "default")
	c.Must(maps.Create(c.T.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counted"}, Data: map[string]string{"first": ""}}, nil))
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for {
				var m core.ConfigMap
				err := maps.Get(c.T.Context(), "counted", &m)
				if err == nil {
					m.Data[fmt.Sprint(i)] = ""
					err = maps.Update(c.T.Context(), "counted", &m, nil)
				}
				if err == nil {
					return
				}
				if !apierrors.IsConflict(err) {
					c.T.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	var m core.ConfigMap
	c.Must(maps.Get(c.T.Context(), "counted", &m))
	if len(m.Data) != 1+writers {
		c.T.Errorf("%d writers left %v", writers, m.Data)
	}
	c.Must(maps.Delete(c.T.Context(), "counted", nil, nil))
}
