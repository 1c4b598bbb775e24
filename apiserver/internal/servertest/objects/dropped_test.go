package objects

import (
	"net/http"
	"strings"
	"testing"
)

// TestFieldsThatAreDropped: fields of features that are off in kube-apiserver
// v1.37.0 are accepted and dropped, as there; null values of data become empty
// ones.
func TestFieldsThatAreDropped(t *testing.T) {
	t.Parallel()
	c := start(t)
	const (
		core, leases, batch = "/api/v1/namespaces/default", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "/apis/batch/v1/namespaces/default"
		template            = `{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"i"}]}}`
		scheduling          = `"scheduling":{"disruptionMode":{"all":{}}}`
	)
	for _, test := range []struct{ path, body, kept, dropped string }{
		{leases, `{"metadata":{"name":"a"},"spec":{"holderIdentity":"h","strategy":"OldestEmulationVersion","preferredHolder":"p"}}`, `"holderIdentity":"h"`,
			`"strategy":`},
		{leases, `{"metadata":{"name":"a"},"spec":{"holderIdentity":"h","preferredHolder":"p"}}`, `"holderIdentity":"h"`, `"preferredHolder":`},
		{"/api/v1/nodes", `{"metadata":{"name":"a"},"spec":{"unschedulable":true,"podPreemptionPolicy":{"disableResizePreemption":["x"]}}}`, `"unschedulable":true`,
			`"podPreemptionPolicy":`},
		{batch + "/jobs", `{"metadata":{"name":"a"},"spec":{` + scheduling + `,"template":` + template + `}}`, `"parallelism":1`, `"scheduling":`},
		{batch + "/cronjobs", `{"metadata":{"name":"a"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{` + scheduling + `,"template":` + template + `}}}}`,
			`"schedule":"* * * * *"`, `"scheduling":`},
		{core + "/persistentvolumeclaims",
			`{"metadata":{"name":"a"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}},"dataSource":{"kind":"Pod","name":"p"}}}`,
			`"storage":"1"`, `"dataSource":`},
		{core + "/secrets", `{"metadata":{"name":"a"},"data":{"key":null}}`, `"key":""`, ":null"},
		{core + "/configmaps", `{"metadata":{"name":"a"},"binaryData":{"key":null}}`, `"key":""`, ":null"},
		{core + "/configmaps", `{"metadata":{"name":"a","generation":7}}`, `"generation":7`, ":null"},
	} {
		answer, text := c.Ask(http.MethodPost, test.path+"?dryRun=All", http.Header{"Content-Type": {"application/json"}}, []byte(test.body))
		if answer.StatusCode != http.StatusCreated || !strings.Contains(string(text), test.kept) || strings.Contains(string(text), test.dropped) {
			t.Errorf("%s: %d, which has %s and not %s: %s", test.body, answer.StatusCode, test.kept, test.dropped, text)
		}
	}
}
