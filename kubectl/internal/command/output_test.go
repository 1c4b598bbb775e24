package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// With --local no server is asked, nor can it be.
func TestLocalIsLocal(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {l: m}}, spec: {containers: [{name: c, image: i, env: [{name: A, value: b}]}]}}"
	for args, want := range map[string]string{
		"set env -f - --list --local":                                      "# Pod a, container c\nA=b\n",
		"set env pod/a --list --local":                                     "",
		"set image -f - c=j --local -o name":                               "pod/a\n",
		"set image -f - c=j --local --dry-run=server":                      "",
		"set env -f - A=c --local --dry-run=server":                        "",
		"label -f - b=c --local --dry-run=server":                          "",
		"annotate -f - b=c --local --dry-run=server":                       "",
		"patch -f - -p {} --local --dry-run=server":                        "",
		"set image pod/a -f - c=j --local":                                 "",
		"set env pod/a -f - A=c --local":                                   "",
		"label pod a -f - b=c --local":                                     "",
		"annotate pod/a -f - b=c --local":                                  "",
		"patch pod/a -f - -p {} --local":                                   "",
		"set env -f - B=1 -e C=2 -e A- --local -o jsonpath={..env}":        `[{"name":"C","value":"2"},{"name":"B","value":"1"}]`,
		"set env -f - B=1 -e B=2 A=3 A=4 --local -o jsonpath={..env}":      `[{"name":"A","value":"3"},{"name":"B","value":"2"}]`,
		"set env -f - A=b B=1 --overwrite=false --local -o name":           "pod/a\n",
		"set env -f - A=c --overwrite=false --local -o name":               "",
		"set image -f - *=j c=k --local -o name":                           "",
		"label -f - b=c --local --dry-run=client -o jsonpath={..labels.b}": "c",
	} {
		c := kctl(t, server.URL, pod, strings.Fields(args)...)
		if got := asked.Swap(0); (c.code == 0) != (want != "") || got != 0 || c.out.String() != want {
			t.Errorf("%s: code %d, %d requests, printed %q, want %q; complained %s", args, c.code, got, c.out.String(), want, c.err.String())
		}
	}
}

// Variables come from standard input as kubectl takes them: of files that a shell reads, too.
func TestVariablesFromStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const variables = "# made by hand\nA=1# one\n\nnothing\nB=x=y\n1C=\n"
	c := kctl(t, "", variables, "set", "env", "-f", file, "D=4", "-", "E=5", "--local", "--list")
	if want := "# Pod a, container c\nD=4\nA=1\nB=x=y\n1C=\nE=5\n"; c.code != 0 || c.out.String() != want {
		t.Errorf("code %d, printed %q, want %q; complained %s", c.code, c.out.String(), want, c.err.String())
	}
	c = kctl(t, "", variables, "set", "env", "-f", file, "-", "B-", "1C-", "--local", "--list")
	if want := "# Pod a, container c\nA=1\n"; c.code != 0 || c.out.String() != want {
		t.Errorf("without some of them: code %d, printed %q, want %q; complained %s", c.code, c.out.String(), want, c.err.String())
	}
	c = kctl(t, "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "set", "env", "-f", "-", "--local", "--list")
	if c.code != 0 || c.out.String() != "" {
		t.Errorf("of what has no variables: code %d, printed %q; complained %s", c.code, c.out.String(), c.err.String())
	}
}

// A verb that changes something is refused before it does, if the result can't be printed.
func TestNothingIsChangedThatCannotBePrinted(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	for _, verb := range []string{
		"create configmap a", "create -f -", "apply -f -", "replace -f -", "patch configmap a -p {}", "label configmap a b=c", "annotate configmap a b=c",
		"run a --image=b", "expose pod a --port=1", "scale deployment a --replicas=1", "autoscale deployment a --max=2", "taint node a b:NoSchedule",
		"set env deployment/a B=c", "set image deployment/a b=c", "rollout restart deployment/a", "rollout pause deployment/a", "rollout undo deployment/a",
		"certificate approve a", "auth reconcile -f -", "apply set-last-applied -f -",
	} {
		for _, output := range []string{"wide", "jsonpath={", "go-template={{", "jsonpath"} {
			c := kctl(t, server.URL, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", append(strings.Fields(verb), "-o", output)...)
			if got := asked.Swap(0); c.code != 1 || got != 0 {
				t.Errorf("%s -o %s: code %d, %d requests; complained %s", verb, output, c.code, got, c.err.String())
			}
		}
	}
}

// A template may come through a pipe, as of a shell's <(…): the check leaves it to the printer.
func TestTemplateFromAPipe(t *testing.T) {
	for _, verb := range []string{"label b=c --local", "patch -p {} --local", "annotate b=c --local"} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		fmt.Fprint(to, "{{.kind}} ")
		to.Close()
		file := fmt.Sprintf("go-template-file=/dev/fd/%d", from.Fd())
		c := kctl(t, "", "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: Node, metadata: {name: a}}]}",
			append(strings.Fields(verb), "-f", "-", "-o", file)...)
		if c.code != 0 || c.out.String() != "Pod Node " {
			t.Errorf("%s: code %d, printed %q; complained %s", verb, c.code, c.out.String(), c.err.String())
		}
	}
}
