package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// set-credentials changes what was given of a plugin and of an auth provider, and keeps
// the rest.
func TestSetCredentials(t *testing.T) {
	_, config := kubeconfigCalls(t, "")
	for _, step := range []struct{ args, path, want string }{
		{"--exec-interactive-mode=Never", "{.users[0].user}", "{}"}, // no plugin to change
		{"--exec-command=login --exec-arg=a --exec-env=k=v --exec-env=l=w", "{.users[0].user.exec}",
			`{"apiVersion":"client.authentication.k8s.io/v1","args":["a"],"command":"login","env":[{"name":"k","value":"v"},{"name":"l","value":"w"}],"interactiveMode":"IfAvailable","provideClusterInfo":false}`},
		{"--exec-interactive-mode=Never --exec-provide-cluster-info", "{.users[0].user.exec.interactiveMode} {.users[0].user.exec.provideClusterInfo} {.users[0].user.exec.args}", `Never true ["a"]`},
		{"--exec-env=k- --exec-env=l=x", "{.users[0].user.exec.env}", `[{"name":"l","value":"x"}]`},
		{"--exec-command=other", "{.users[0].user.exec.command}{.users[0].user.exec.args} {.users[0].user.exec.interactiveMode}", "othernull Never"},
		{"--exec-provide-cluster-info=false", "{.users[0].user.exec.provideClusterInfo}", "false"},
		{"--auth-provider=oidc --auth-provider-arg=client-id=me,client-secret=it", "{.users[0].user.auth-provider.config}", `{"client-id":"me","client-secret":"it"}`},
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

// config view shows the file of --kubeconfig as it is, and merged it says where the
// files are that it names.
func TestConfigViewMerge(t *testing.T) {
	file, config := kubeconfigCalls(t, "clusters: [{name: a, cluster: {server: 'https://a', certificate-authority: ca.crt}}]")
	path := "jsonpath={.clusters[0].cluster.certificate-authority}"
	for flag, want := range map[string]string{"": "ca.crt", "--merge=false": "ca.crt", "--merge": filepath.Join(filepath.Dir(file), "ca.crt")} {
		got := config(append([]string{"view", "-o", path}, strings.Fields(flag)...)...)
		got.want(t, 0)
		if got.out.String() != want {
			t.Errorf("view %s: %s, want %s", flag, got.out.String(), want)
		}
	}
	kctl(t, "", "", "config", "view", "--merge=false").want(t, 1, "if merge==false a precise file must be specified")
	kctl(t, "", "", "config", "view", "--kubeconfig="+file+".none").want(t, 1, "no such file")
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
