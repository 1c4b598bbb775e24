package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
)

// kubeconfigCalls runs `kctl config` commands with one kubeconfig file.
func kubeconfigCalls(t *testing.T, content string) (file string, config func(args ...string) *call) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, func(args ...string) *call {
		return kctl(t, "", "", append([]string{"--kubeconfig", file, "config"}, args...)...)
	}
}

// prints wants success, and exactly this on standard output.
func (c *call) prints(t *testing.T, want string) {
	t.Helper()
	if c.want(t, 0); c.out.String() != want {
		t.Errorf("printed %q, want %q (%s)", c.out.String(), want, c.err.String())
	}
}

// set-credentials changes what was given of a plugin and of an auth provider, and keeps
// the rest.
func TestSetCredentials(t *testing.T) {
	_, config := kubeconfigCalls(t, "")
	for _, step := range []struct{ args, path, want string }{
		{"--exec-interactive-mode=Never", "{.users[0].user}", "{}"}, // no plugin to change
		{"--exec-command=login --exec-arg=a --exec-env=k=v --exec-env=l=w", "{.users[0].user.exec}",
			`{"apiVersion":"client.authentication.k8s.io/v1","args":["a"],"command":"login","env":[{"name":"k","value":"v"},{"name":"l","value":"w"}],"interactiveMode":"IfAvailable","provideClusterInfo":false}`},
		{"--exec-interactive-mode=Never --exec-provide-cluster-info",
			"{.users[0].user.exec.interactiveMode} {.users[0].user.exec.provideClusterInfo} {.users[0].user.exec.args}", `Never true ["a"]`},
		{"--exec-env=k- --exec-env=l=x", "{.users[0].user.exec.env}", `[{"name":"l","value":"x"}]`},
		{"--exec-command=other", "{.users[0].user.exec.command}{.users[0].user.exec.args} {.users[0].user.exec.interactiveMode}", "othernull Never"},
		{"--exec-provide-cluster-info=false", "{.users[0].user.exec.provideClusterInfo}", "false"},
		{"--auth-provider=oidc --auth-provider-arg=client-id=me,client-secret=it", "{.users[0].user.auth-provider.config}",
			`{"client-id":"me","client-secret":"it"}`},
		{"--auth-provider-arg=client-secret-", "{.users[0].user.auth-provider}", `{"config":{"client-id":"me"},"name":"oidc"}`},
		{"--auth-provider=else", "{.users[0].user.auth-provider.config}", "{}"},
		{"--username=u --password=p", "{.users[0].user.username}", "u"},
		{"--token=t", "{.users[0].user.username}{.users[0].user.token}", "t"},
		{"--token= --username= --password=", "{.users[0].user.username}{.users[0].user.password}{.users[0].user.token}.", "."},
		{"--token=t --username=u", "", "more than one authentication method"},
		{"--exec-interactive-mode=Perhaps", "", "invalid interactive mode type, can be only IfAvailable, Never, Always"},
		{"--exec-env=x", "", "invalid exec-env format: x"},
		{"--auth-provider-arg==x", "", "invalid auth-provider-arg format: =x"},
	} {
		done := config(append([]string{"set-credentials", "bob"}, strings.Fields(step.args)...)...)
		if step.path == "" {
			done.want(t, 1, step.want)
			continue
		}
		done.want(t, 0)
		if got := config("view", "--raw", "-o", "jsonpath="+step.path); strings.TrimSpace(got.out.String()) != step.want {
			t.Errorf("after %s, %s is %s, want %s", step.args, step.path, got.out.String(), step.want)
		}
	}
}

// What is shown of kubeconfigs is what is in them: paths stay relative, and --context
// chooses only what --minify keeps.
func TestConfigView(t *testing.T) {
	file, config := kubeconfigCalls(t, `{clusters: [{name: a, cluster: {server: 'https://a', certificate-authority: ca.crt}}],
		contexts: [{name: one, context: {cluster: a}}, {name: two, context: {cluster: a}}], current-context: one}`)
	path := "jsonpath={.clusters[0].cluster.certificate-authority} {.current-context}"
	for flags, want := range map[string]string{"": "ca.crt one", "--merge=false": "ca.crt one", "--merge": "ca.crt one", "--context=two": "ca.crt one",
		"--context=two --minify": "ca.crt two"} {
		config(append([]string{"view", "-o", path}, strings.Fields(flags)...)...).prints(t, want)
	}
	config("current-context", "--context=two").prints(t, "one\n")
	kctl(t, "", "", "config", "view", "--merge=false").want(t, 1, "if merge==false a precise file must be specified")
	kctl(t, "", "", "config", "view", "--merge=false", "--kubeconfig="+file+".none").want(t, 1, "no such file")
	kctl(t, "", "", "config", "get-users", "--kubeconfig="+file+".none").prints(t, "NAME\n")
}

// set-cluster leaves no cluster behind that clients refuse.
func TestSetCluster(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, config := kubeconfigCalls(t, "")
	for _, step := range []struct{ args, want string }{
		{"a --server=https://a --tls-server-name=b --certificate-authority=" + ca + " --embed-certs",
			`{"certificate-authority-data":"eA==","server":"https://a","tls-server-name":"b"}`},
		{"a --insecure-skip-tls-verify", `{"insecure-skip-tls-verify":true,"server":"https://a","tls-server-name":"b"}`},
		{"a --certificate-authority=" + ca, `{"certificate-authority":"` + ca + `","server":"https://a","tls-server-name":"b"}`},
		{"a --server=https://c/d/", `{"certificate-authority":"` + ca + `","server":"https://c/d/"}`},
	} {
		config(append([]string{"set-cluster"}, strings.Fields(step.args)...)...).want(t, 0)
		config("view", "--raw", "-o", "jsonpath={.clusters[0].cluster}").prints(t, step.want)
	}
	config("set-cluster", "a", "--insecure-skip-tls-verify", "--certificate-authority="+ca).want(t, 1,
		"a certificate authority and insecure mode at the same time")
	config("set-cluster", "a", "--embed-certs").want(t, 1, "you must specify a --certificate-authority to embed")
	config("set-cluster", "").want(t, 1, "a non-empty cluster name")
	config("set-credentials", "").want(t, 1, "a non-empty user name")
	config("set-credentials", "a", "--embed-certs").want(t, 1, "you must specify a --client-certificate or --client-key to embed")
	config("set-context", "").want(t, 1, "a non-empty context name or --current")
	config("set-context", "a", "--current").want(t, 1, "both a context name and --current")
}

// set and unset reach every value of a kubeconfig, whole entries and parts too, and names
// may have dots.
func TestConfigProperties(t *testing.T) {
	_, config := kubeconfigCalls(t, "{users: [{name: u, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}]}")
	for _, step := range []struct{ args, path, want string }{
		{"set preferences.colors true", "{.preferences.colors}", "true"},
		{"set clusters.10.0.0.1.disable-compression true", "{.clusters[0].name} {.clusters[0].cluster.disable-compression}", "10.0.0.1 true"},
		{"set clusters.10.0.0.1.certificate-authority-data eA==", "{.clusters[0].cluster.certificate-authority-data}", "eA=="},
		{"unset clusters.10.0.0.1.certificate-authority-data", "{.clusters[0].cluster.certificate-authority-data}", ""},
		{"set users.u.act-as me", "{.users[0].user.as}", "me"},
		{"unset users.u.exec", "{.users[0].user}", `{"as":"me"}`},
		{"set contexts.c.namespace blue", "{.contexts[0].context.namespace}", "blue"},
		{"unset contexts.other", "{.contexts[0].name}", "c"},
		{"unset contexts", "{.contexts}", "null"},
		{"set contexts.c.namespace blue", "{.contexts[*].name}", "c"},
	} {
		config(strings.Fields(step.args)...).want(t, 0)
		config("view", "--raw", "-o", "jsonpath="+step.path).prints(t, step.want)
	}
	for args, want := range map[string]string{
		"set contexts x": "no single value", "set users.u.nosuch.x y": "no single value", "set nosuch.x y": "unable to locate path",
		"set users.u.exec.args x": "unable to locate path", "unset contexts.other.namespace": "unable to locate path",
		"set clusters.c.insecure-skip-tls-verify maybe": "invalid syntax", "set clusters.c.certificate-authority-data !": "error decoding input value",
	} {
		config(strings.Fields(args)...).want(t, 1, want)
	}
	config("set", "current-context", "").want(t, 1, "you cannot use set to unset a property")
}

// The first change makes the last of the files of $KUBECONFIG, as kubectl does.
func TestConfigMakesTheLastFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(preferences.Environment, preferences.Off)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "a")+string(os.PathListSeparator)+filepath.Join(dir, "b"))
	c := &call{}
	c.code = run(t.Context(), frame.New(frame.Streams{Out: &c.out, Err: &c.err}, clock.RealClock{}), []string{"config", "set-context", "x", "--namespace=blue"})
	c.want(t, 0)
	if made, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(made) != 1 || filepath.Base(made[0]) != "b" {
		t.Errorf("made %v (%v), want b alone", made, err)
	}
}

// taint asks the server to check what it sends as --validate says: strictly by default.
func TestTaintValidates(t *testing.T) {
	asked := make(chan string, 1)
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			asked <- r.URL.Query().Get("fieldValidation")
		}
		_, _ = w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"one"}}`))
	})
	for flag, want := range map[string]string{"--validate": "Strict", "--validate=warn": "Warn", "--validate=false": "Ignore", "--all=false": "Strict"} {
		kctl(t, host, "", "taint", "node", "one", "a=b:NoSchedule", flag).want(t, 0)
		if got := <-asked; got != want {
			t.Errorf("taint %s asks for %q, want %q", flag, got, want)
		}
	}
	kctl(t, host, "", "taint", "node", "one", "a=b:NoSchedule", "--validate=maybe").want(t, 1, `invalid - validate option "maybe"`)
}
