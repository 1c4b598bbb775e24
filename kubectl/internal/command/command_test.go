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
	for _, args := range [][]string{{"get", "pods"}, {"run", "x", "--image=x"}, {"delete", "pod", "x"}, {"logs", "x"}, {"describe", "pod", "x"}, {"trace", "pod/x"}, {"wait", "--for=delete", "pod/x"}} {
		kctl(t, "http://"+address, "", args...).want(t, 1,
			"The connection to the server "+address+" was refused - did you specify the right host or port?\n", `"kctl status" tells`)
	}
	places := kubeconfig.Places
	t.Cleanup(func() { kubeconfig.Places = places })
	kubeconfig.Places = nil
	kctl(t, "", "", "get", "pods").want(t, 1, "error: no cluster is configured", "kctl up", "$KUBECONFIG is "+os.Getenv("KUBECONFIG")+", and there is no such file")
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
		{"forbidden", status(403, metav1.StatusReasonForbidden, `pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`), []string{"get", "pods"},
			`Error from server (Forbidden): pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`},
		{"unauthorized", status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), []string{"get", "pods"},
			"error: You must be logged in to the server (Unauthorized)\n"},
		{"conflict", status(409, metav1.StatusReasonAlreadyExists, `pods "x" already exists`), []string{"run", "x", "--image=x"},
			"Error from server (AlreadyExists): pods \"x\" already exists\n"},
		{"one cause", status(422, metav1.StatusReasonInvalid, "no", metav1.StatusCause{Field: "spec.x", Message: "Required value"}), []string{"run", "x", "--image=x"},
			"The Pod \"x\" is invalid: spec.x: Required value\n"},
		{"two causes", status(422, metav1.StatusReasonInvalid, "no", metav1.StatusCause{Field: "a", Message: "b"}, metav1.StatusCause{Field: "c", Message: "d"}), []string{"run", "x", "--image=x"},
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

// A command line that makes no sense is refused before a server is asked.
func TestMisuse(t *testing.T) {
	cases := []struct {
		args string
		want []string
	}{
		{"gte pods", []string{`error: unknown command "gte" for "kctl"`, "Did you mean this?\n\tget"}},
		{"kustomize a b", []string{"error: specify one path to kustomization.yaml"}},
		{"apply -k . -f x", []string{"error: only one of -f or -k can be specified"}},
		{"apply -k . -R", []string{"error: the -k flag can't be used with -f or -R"}},
		{"apply -k /does/not/exist", []string{"/does/not/exist", "no such file or directory"}},
		{"create --raw=/x -k .", []string{"--raw can only use a single local file or stdin"}},
		{"wait -k . --for=delete", []string{"unknown shorthand flag: 'k'"}},
		{"drain", []string{"error: USAGE: drain NODE"}},
		{"scale deployment x", []string{`required flag(s) "replicas" not set`}},
		{"rollout undone x", []string{`unknown command "undone x"`, "Did you mean this?\n\tundo"}},
		{"rollout status", []string{"error: required resource not specified"}},
		{"set image deployment/x", []string{"error: at least one image update is required"}},
		{"set image deployment/x c=UPPER:::", []string{`invalid image name "UPPER:::"`}},
		{"set env deployment/x", []string{"error: at least one environment variable must be provided"}},
		{"set env deployment/x A=b other", []string{"all resources must be specified before changes: other"}},
		{"set resources deployment/x", []string{"you must specify an update to requests or limits"}},
		{"set resources deployment/x --limits=cpu=much", []string{`limits of cpu: "much"`}},
		{"taint node x", []string{"error: at least one taint update is required"}},
		{"taint node x a=b", []string{"error: invalid taint spec: a=b"}},
		{"taint node x a=b:Never", []string{"error: invalid taint effect: Never, unsupported taint effect"}},
		{"replace --force --dry-run=client -f x", []string{"--dry-run can not be used when --force is set"}},
		{"autoscale deployment x --max=1 --min=2", []string{"--max=MAXPODS must be larger or equal to --min=MINPODS"}},
		{"create quota", []string{"exactly one NAME is required, got 0"}},
		{"create rolebinding x", []string{"exactly one of clusterrole or role must be specified"}},
		{"create pdb x --selector=a=b", []string{"one of min-available or max-unavailable must be specified"}},
		{"create pdb x --selector=a=b --min-available=x%", []string{"invalid format specified for min-available"}},
		{"create job x", []string{"either --image or --from must be specified"}},
		{"create ingress x --rule=nonsense", []string{"rule nonsense is invalid and should be in format"}},
		{"cp a b", []string{"one of src or dest must be a remote file specification"}},
		{"cp a:b c:d", []string{"one of src or dest must be a local file specification"}},
		{"debug x", []string{"error: you must specify --image when not using --copy-to."}},
		{"debug x --copy-to=y", []string{"error: you must specify --image, --set-image or command arguments."}},
		{"debug x --copy-to=y -- sleep 1", []string{"error: you must specify an existing container or a new image when specifying args."}},
		{"debug x --copy-to=y --attach --set-image=a=b", []string{"error: you must specify --container or create a new container using --image in order to attach."}},
		{"debug x --image=a --set-image=a=b", []string{"error: --set-image may only be used with --copy-to."}},
		{"debug x --image=a --same-node", []string{"error: --same-node may only be used with --copy-to."}},
		{"debug x --image=a --replace", []string{"error: --replace may only be used with --copy-to."}},
		{"debug x --image=a --profile=god", []string{"unknown profile: god"}},
		{"debug x --image=a --custom=/does/not/exist", []string{"must pass a container spec json file for custom profile: open /does/not/exist"}},
		{"exec x --pod-running-timeout=0 -- ls", []string{"error: --pod-running-timeout must be higher than zero\nSee 'kctl exec -h'"}},
		{"attach x --pod-running-timeout=-1s", []string{"error: --pod-running-timeout must be higher than zero"}},
		{"port-forward x 80 --pod-running-timeout=0", []string{"error: --pod-running-timeout must be higher than zero"}},
		{"logs x --pod-running-timeout=0", []string{"error: --pod-running-timeout must be higher than zero"}},
		{"delete -i --raw /x", []string{"--interactive can not be used with --raw"}},
		{"certificate approve", []string{"one or more CSRs must be specified"}},
		{"top pods --sort-by=name", []string{"--sort-by accepts only cpu or memory"}},
		{"completion tcsh", []string{`Unsupported shell type "tcsh"`}},
		{"proxy --accept-hosts=(", []string{"error parsing regexp"}},
		{"get pods --namespcae=web", []string{"error: unknown flag: --namespcae\nDid you mean --namespace?\nSee 'kctl get --help' for usage."}},
		{"get pods --nonsense", []string{"error: unknown flag: --nonsense\nSee 'kctl get --help' for usage."}},
		{"get", []string{"You must specify the type of resource to get."}},
		{"run", []string{"error: NAME is required for run\nSee 'kctl run -h' for help and examples"}},
		{"run x", []string{"error: --image is required"}},
		{"get pods --request-timeout=1p", []string{"Invalid timeout value. Timeout must be a single integer in seconds"}},
		{"get pods --context=nosuch", []string{"error: context was not found for specified context: nosuch"}},
		{"get pods --cluster=nosuch", []string{`error: no server found for cluster "nosuch"`}},
		{"cordon", []string{"error: USAGE: cordon NODE [flags]"}},
		{"list", []string{"Did you mean this?\n\tget\n"}},
		{"auth can-i get /logs --subresource=log", []string{"error: --subresource can not be used with NonResourceURL"}},
		{"run x --image=UPPER:::", []string{`error: invalid image name "UPPER:::": invalid reference format`}},
		{"run x --image=a --image-pull-policy=Maybe", []string{"error: invalid image pull policy: Maybe, valid values are: Always, IfNotPresent, Never"}},
		{"run x --image=a --restart=Maybe", []string{"error: invalid restart policy: Maybe"}},
		{"run x --image=a -t", []string{"-i/--stdin is required for containers with -t/--tty=true"}},
		{"run x --image=a --rm", []string{"--rm should only be used for attached containers"}},
		{"run x --image=a --rm -i --force --grace-period=5", []string{"--force and --grace-period greater than 0 cannot be specified together"}},
		{"run x --image=a --expose", []string{"error: --port must be set when exposing a service"}},
		{"run x --image=a --generator=deployment/apps.v1", []string{`generator "deployment/apps.v1" was removed: use run-pod/v1`}},
		{"run x --image=a --dry-run=sometimes", []string{`invalid dry-run value (sometimes). Must be "none", "server", or "client"`}},
		{"run x --image=a -i --dry-run=client", []string{"--dry-run=[server|client] can't be used with attached containers"}},
		{"run x --image=a --overrides={ --dry-run=client", []string{"error: overrides:"}},
		{"create -f /does/not/exist.yaml", []string{`error: the path "/does/not/exist.yaml" does not exist`}},
		{"create wonder x", []string{"error: Unexpected args: [wonder x]\nSee 'kctl create -h'"}},
		{"apply", []string{"error: must specify one of -f and -k"}},
		{"apply --prune -f x", []string{"all resources selected for prune without explicitly passing --all"}},
		{"delete pods", []string{"error: resource(s) were provided, but no name was specified"}},
		{"delete pods --all --cascade=x", []string{"invalid cascade value (x)"}},
		{"delete pod x --force --grace-period=5", []string{"--force and --grace-period greater than 0 cannot be specified together"}},
		{"replace -f x --grace-period=5", []string{"--grace-period must have --force specified"}},
		{"replace --force -f x --cascade=perhaps", []string{`invalid cascade value (perhaps). Must be "background", "foreground", or "orphan"`}},
		{"run x --image=a --cascade=perhaps", []string{`invalid cascade value (perhaps)`}},
		{"apply -f x --cascade=perhaps", []string{`invalid cascade value (perhaps)`}},
		{"replace -f x --timeout=5s", []string{"--timeout must have --force specified"}},
		{"label pod x a=b a-", []string{"error: can not both modify and remove a label in the same command"}},
		{"annotate pod x a=b a-", []string{"can not both modify and remove the following annotation(s) in the same command: a"}},
		{"set env deploy/x A=b A-", []string{"can not both modify and remove the same environment variable in the same command"}},
		{"set env deploy/x -e nothing", []string{"error: environment variables must be of the form key=value: nothing"}},
		{"label pods --all -l a=b c=d", []string{"error: cannot set --all and --selector at the same time"}},
		{"annotate pods --all --field-selector a=b c=d", []string{"error: cannot set --all and --field-selector at the same time"}},
		{"create service externalname x --external-name=a..b", []string{"error: invalid service external name a..b"}},
		{"set env deploy/x 1A=b", []string{`error: "1A" is not a valid key name`}},
		{"set env deploy/x A=b --keys=c", []string{"when specifying --keys, a configmap or secret must be provided with --from"}},
		{"create cm x --from-env-file=a --from-literal=b=c", []string{"error: from-env-file cannot be combined with from-file or from-literal"}},
		{"create clusterrole x --verb=get --non-resource-url=x", []string{"error: nonResourceURL should start with /"}},
		{"create clusterrole x --verb=list --non-resource-url=/x", []string{"error: invalid verb: 'list' for nonResourceURL"}},
		{"api-resources x", []string{"error: unexpected arguments: [x]\nSee 'kctl api-resources -h'"}},
		{"api-resources --namespaced=maybe", []string{`invalid argument "maybe" for "--namespaced" flag`}},
		{"wait pod/x --for=jsonpath={.a}=", []string{"jsonpath wait has to have a value after equal sign"}},
		{"wait pod/x", []string{"error: --for is required"}},
		{"wait pod/x --for=create --for=nonsense", []string{`error: unrecognized condition: "nonsense"`}},
		{"logs", []string{"error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'"}},
		{"logs x --since=1s --since-time=2026-01-01T00:00:00Z", []string{"at most one of"}},
		{"logs x y -c z", []string{"error: only one of -c or an inline [CONTAINER] arg is allowed"}},
		{"logs x -l a=b", []string{"error: only a selector (-l) or a POD name is allowed"}},
		{"apply -f x --server-side --dry-run=client", []string{"error: --dry-run=client doesn't work with --server-side"}},
		{"exec x -f y -- ls", []string{"error: resource/name arguments cannot be provided when a path is specified"}},
		{"exec x", []string{"error: you must specify at least one command for the container"}},
		{"exec x ls", []string{"error: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"}},
		{"trace pod/x -o yaml", []string{"--output must be json"}},
		{"trace node/x", []string{`"node/x" is not a pod`}},
		{"label pod x", []string{"error: at least one label update is required"}},
		{"patch pod x -p {} --type=magic", []string{"--type must be one of [json merge strategic]"}},
		{"config set nonsense x", []string{`unable to locate path "nonsense"`}},
		{"config set-context", []string{"you must specify a non-empty context name or --current"}},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			asked := false
			host := serve(t, func(w http.ResponseWriter, r *http.Request) { asked = true; http.NotFound(w, r) })
			kctl(t, host, "", strings.Fields(c.args)...).want(t, 1, c.want...)
			if asked {
				t.Error("the server was asked")
			}
		})
	}
}

func TestArgumentsThatNameNothing(t *testing.T) {
	host := serve(t, http.NotFound)
	for args, want := range map[string]string{
		"get nonsense":      "error: the server doesn't have a resource type \"nonsense\"\n",
		"get pod/x node":    "there is no need to specify a resource type as a separate argument",
		"get pod x/y":       "there is no need to specify a resource type as a separate argument",
		"get pod/":          "arguments in resource/name form must have a single resource and name",
		"get pod x -l a=b":  "name cannot be provided when a selector is specified",
		"get pod x -A":      "a resource cannot be retrieved by name across all namespaces",
		"get pod/x -f y":    "you may not specify resource arguments as well",
		"get pods -o bogus": "unable to match a printer suitable for the output format \"bogus\"",
	} {
		kctl(t, host, "", strings.Fields(args)...).want(t, 1, want)
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
	kctl(t, host, "", "get", "pod", "x", "-v", "6").want(t, 1, `"Response" verb="GET" url="`+host+`/api/v1/namespaces/default/pods/x" status="404 Not Found" milliseconds=`)
	kctl(t, host, "", "get", "pod", "x", "-v", "8").want(t, 1, "    Accept: ", `Response Body: {"kind":"Status"`, "Error from server (NotFound): no")
	c := kctl(t, host, "", "create", "namespace", "o'x", "-v", "9", "--token", "very-secret")
	c.want(t, 1, "curl -v -XPOST -H 'Accept: ", `--data-binary '{"kind":"Namespace"`, `o'\''x`, "'"+host+"/api/v1/namespaces?")
	if strings.Contains(c.err.String(), "very-secret") {
		t.Errorf("the token is shown: %s", c.err.String())
	}
}
