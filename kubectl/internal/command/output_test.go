package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

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
