package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/kubeconfig"
	"kctl/kubectl/internal/preferences"
	"kctl/proto/relay"
)

// call is one kctl command line against a server that answers as the test says.
// These tests are for faults and misuse; module test tries what works, on real
// servers.
type call struct {
	out, err bytes.Buffer
	code     int
}

func kctl(t *testing.T, host, stdin string, args ...string) *call {
	t.Helper()
	return called(t, "kctl", host, stdin, args...)
}

// called is kctl for a program that is called otherwise.
func called(t *testing.T, name, host, stdin string, args ...string) *call {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if os.Getenv(preferences.Environment) == "" {
		t.Setenv(preferences.Environment, preferences.Off) // not those of the user who runs the tests
	}
	c := &call{}
	args = append([]string{"--cache-dir", t.TempDir()}, args...)
	if host != "" {
		args = append([]string{"--server", host}, args...)
	}
	cli := frame.New(frame.Streams{In: strings.NewReader(stdin), Out: &c.out, Err: &c.err}, clock.RealClock{})
	cli.Name = name
	c.code = run(context.Background(), cli, args)
	return c
}

func (c *call) want(t *testing.T, code int, stderr ...string) {
	t.Helper()
	if c.code != code {
		t.Errorf("exit code %d, want %d", c.code, code)
	}
	for _, text := range stderr {
		if !strings.Contains(c.err.String(), text) {
			t.Errorf("standard error is\n%s\nwant %q in it", c.err.String(), text)
		}
	}
	if code != 0 && c.out.Len() > 0 {
		t.Errorf("standard output is not empty: %s", c.out.String())
	}
}

const discoveryAPI = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
  {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","shortNames":["po"],"categories":["all"],"verbs":["get","list"]},
  {"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster","singularResource":"node","shortNames":["no"],"verbs":["get","list"]}]}]}]}`

// serve starts a server that knows its resources and answers everything else
// with answer.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	return serveAPIs(t, `{"kind":"APIGroupDiscoveryList","items":[]}`, answer)
}

// serveAPIs is serve for a server with groups.
func serveAPIs(t *testing.T, apis string, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, discoveryAPI)
		case "/apis":
			fmt.Fprint(w, apis)
		default:
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func status(code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		s := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
		s.APIVersion, s.Kind = "v1", "Status"
		if causes != nil {
			s.Details = &metav1.StatusDetails{Kind: "Pod", Name: "x", Causes: causes}
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(s)
	}
}

func TestNoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", "pods"}, {"run", "x", "--image=x"}, {"delete", "pod", "x"}, {"logs", "x"}, {"describe", "pod", "x"},
		{"trace", "pod/x"}, {"wait", "--for=delete", "pod/x"}} {
		kctl(t, "http://"+address, "", args...).want(t, 1,
			"The connection to the server "+address+" was refused - did you specify the right host or port?\n", `"kctl status" shows`)
	}
	places := kubeconfig.Places
	t.Cleanup(func() { kubeconfig.Places = places })
	kubeconfig.Places = nil
	kctl(t, "", "", "get", "pods").want(t, 1, "error: no cluster is configured", "kctl up",
		"$KUBECONFIG is "+os.Getenv("KUBECONFIG")+", and there is no such file")
	kubeconfig.Places = []string{filepath.Join(t.TempDir(), "admin.kubeconfig")}
	if err := os.WriteFile(kubeconfig.Places[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kctl(t, "", "", "get", "pods").want(t, 1, `"export KUBECONFIG=`+kubeconfig.Places[0]+`" chooses the one on this machine`)
	c := kctl(t, "http://"+address, "", "version")
	if c.code != 1 || !strings.HasPrefix(c.out.String(), "Client Version: v1.") {
		t.Errorf("version without a server: code %d, %q", c.code, c.out.String())
	}
}

func TestServersThatSayNo(t *testing.T) {
	cases := []struct {
		name   string
		answer http.HandlerFunc
		args   []string
		want   string
	}{
		{"not found", status(404, metav1.StatusReasonNotFound, `pods "x" not found`), []string{"get", "pod", "x"},
			"Error from server (NotFound): pods \"x\" not found\n"},
		{"forbidden", status(403, metav1.StatusReasonForbidden,
			`pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`), []string{"get", "pods"},
			`Error from server (Forbidden): pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`},
		{"unauthorized", status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), []string{"get", "pods"},
			"error: You must be logged in to the server (Unauthorized)\n"},
		{"conflict", status(409, metav1.StatusReasonAlreadyExists, `pods "x" already exists`), []string{"run", "x", "--image=x"},
			"Error from server (AlreadyExists): pods \"x\" already exists\n"},
		{"one cause", status(422, metav1.StatusReasonInvalid, "no", metav1.StatusCause{Field: "spec.x", Message: "Required value"}),
			[]string{"run", "x", "--image=x"},
			"The Pod \"x\" is invalid: spec.x: Required value\n"},
		{"two causes", status(422, metav1.StatusReasonInvalid, "no", metav1.StatusCause{Field: "a", Message: "b"}, metav1.StatusCause{Field: "c", Message: "d"}),
			[]string{"run", "x", "--image=x"},
			"The Pod \"x\" is invalid: \n* a: b\n* c: d\n"},
		{"without a reason", status(500, "", "it broke"), []string{"get", "pods"}, "Error from server: it broke\n"},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>Bad Gateway</html>")
		}, []string{"get", "pods"}, "Bad Gateway"},
		{"garbage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"kind":`) }, []string{"get", "pods"}, "error: decode answer"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"kind":"PodList"`)
		}, []string{"get", "pods"}, "unexpected EOF"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kctl(t, serve(t, c.answer), "", c.args...).want(t, 1, c.want)
		})
	}
}

func TestBrokenManifests(t *testing.T) {
	host := serve(t, http.NotFound)
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Pod\nmetadata:\n  name: [\n":                                "error: error parsing STDIN: line ",
		"{\"apiVersion\": \"v1\",\n \"kind\": }":                                           "error: error parsing STDIN: line 2: ",
		"apiVersion: v1\nmetadata: {name: x}\n":                                            "error: error parsing STDIN: line 1: error validating data: kind not set",
		"apiVersion: v9\nkind: Wonder\nmetadata: {name: x}\n":                              `resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for kind "Wonder" in version "v9"` + "\nensure CRDs are installed first",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: other}\nspec: {a: 1}\n": `the namespace from the provided object "other" does not match the namespace "here"`,
		"# nothing\n": "error: no objects passed to",
	} {
		for _, verb := range []string{"create", "apply"} {
			kctl(t, host, text, verb, "-n", "here", "-f", "-").want(t, 1, want)
		}
	}
}

// An error in one of many files does not stop the rest: a definition is created
// even if the objects of its kind, beside it, can't be created yet.
func TestTheRestOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\n---\napiVersion: v9\nkind: Wonder\nmetadata: {name: x}\n",
		"b.yaml": "metadata: {}\n",
		"c.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: elsewhere, namespace: other}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: two}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"create", "apply", "replace", "delete", "get", "describe", "label"} {
		host := serve(t, status(403, metav1.StatusReasonForbidden, "not you"))
		args := []string{verb, "-n", "here", "-R", "-f", dir}
		if verb == "label" {
			args = append(args, "a=b")
		}
		c := kctl(t, host, "", args...)
		c.want(t, 1, "error parsing "+filepath.Join(dir, "b.yaml"), `no matches for kind "Wonder"`, `the namespace from the provided object "other"`, "not you")
		if got := strings.Count(c.err.String(), "not you"); got != 2 {
			t.Errorf("%s was refused %d times, not twice:\n%s", verb, got, c.err.String())
		}
		kctl(t, host, "", append(args, "-f", filepath.Join(dir, "none"))...).want(t, 1, "does not exist")
	}
}

// A kind that --prune can't list is refused before anything is applied.
func TestPruneOfAnUnknownKind(t *testing.T) {
	host := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
	kctl(t, host, pod, "apply", "-f", "-", "--prune", "--all", "--prune-allowlist=core/v9/Wonder").want(t, 1, `no matches for kind "Wonder"`)
}

func TestErrorsSayTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := serve(t, status(404, metav1.StatusReasonNotFound, `namespaces "default" not found`))
	kctl(t, host, "", "create", "-f", path).want(t, 1,
		fmt.Sprintf("Error from server (NotFound): error when creating %q: namespaces \"default\" not found\n", path))
}

func TestBrokenKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("clusters: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kctl(t, "", "", "--kubeconfig", path, "get", "pods").want(t, 1, "error: error loading config file ", path)
	kctl(t, "", "", "--kubeconfig", path+"-none", "get", "pods").want(t, 1, "error: ", path+"-none")
}

// Only the create of a pod carries the stamps of the hops so far.
func TestRunSendsItsStamps(t *testing.T) {
	var mu sync.Mutex
	var header string
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		header = r.Header.Get(relay.Header)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"default"}}`)
	})
	c := kctl(t, host, "", "run", "x", "--image=x", "--wait=false")
	if c.code != 0 || c.out.String() != "pod/x created\n" {
		t.Fatalf("code %d, %q, %s", c.code, c.out.String(), c.err.String())
	}
	mu.Lock()
	defer mu.Unlock()
	stamps, err := relay.Decode(header)
	if err != nil {
		t.Fatal(err)
	}
	var hops []string
	for i, s := range stamps {
		hops = append(hops, string(s.Hop))
		if i > 0 && s.At.Before(stamps[i-1].At) {
			t.Errorf("%s is before %s", s.Hop, stamps[i-1].Hop)
		}
	}
	if got := strings.Join(hops, " "); got != "kctl.started kctl.generated kctl.sent" {
		t.Errorf("stamps: %s", got)
	}
}

func TestWarningsAreShownOnce(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "careful \"here\""`)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)
	})
	c := kctl(t, host, "", "get", "pod", "x", "pod", "-o", "name")
	if got := strings.Count(c.err.String(), "Warning: careful \"here\"\n"); got != 1 {
		t.Errorf("the warning is printed %d times in\n%s", got, c.err.String())
	}
}

func TestVerbosityShowsRequests(t *testing.T) {
	host := serve(t, status(404, metav1.StatusReasonNotFound, "no"))
	kctl(t, host, "", "get", "pod", "x", "-v", "6").want(t, 1, `"Response" verb="GET" url="`+host+
		`/api/v1/namespaces/default/pods/x" status="404 Not Found" milliseconds=`)
	kctl(t, host, "", "get", "pod", "x", "-v", "8").want(t, 1, "    Accept: ", `Response Body: {"kind":"Status"`, "Error from server (NotFound): no")
	c := kctl(t, host, "", "create", "namespace", "o'x", "-v", "9", "--token", "very-secret")
	c.want(t, 1, "curl -v -XPOST -H 'Accept: ", `--data-binary '{"kind":"Namespace"`, `o'\''x`, "'"+host+"/api/v1/namespaces?")
	if strings.Contains(c.err.String(), "very-secret") {
		t.Errorf("the token is shown: %s", c.err.String())
	}
}
