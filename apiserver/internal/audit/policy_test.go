package audit

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kctl/apiserver/internal/request"
)

func load(t *testing.T, text string) (*Policy, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadPolicy(file)
}

// The example in the Kubernetes docs ("Auditing"), and cases that it leaves
// open.
const policyText = `
omitStages: ["RequestReceived"]
omitManagedFields: true
rules:
- {level: RequestResponse, resources: [{group: "", resources: ["pods"]}], namespaces: [kept], omitManagedFields: false}
- {level: Metadata, resources: [{group: "", resources: ["pods/log", "pods/status"]}]}
- {level: None, resources: [{group: "", resources: ["configmaps"], resourceNames: ["controller-leader"]}]}
- {level: None, users: ["system:kube-proxy"], verbs: ["watch"], resources: [{group: "", resources: ["endpoints", "services"]}]}
- {level: None, userGroups: ["system:authenticated"], nonResourceURLs: ["/api*", "/version"]}
- {level: Request, resources: [{group: "", resources: ["configmaps"]}], namespaces: ["kube-system"]}
- {level: Metadata, resources: [{group: "", resources: ["secrets", "configmaps"]}], omitStages: [ResponseStarted]}
- {level: Request, resources: [{group: apps, resources: ["*/scale"]}, {group: batch, resources: ["jobs/*"]}, {group: policy, resources: ["*"]}]}
- {level: Request, resources: [{group: coordination.k8s.io}], namespaces: [""]}
- {level: Request, resources: [{group: "*", resources: ["networkpolicies"]}], namespaces: [kept]}
- {level: Request, resources: [{group: "*", resources: ["*/*"]}]}
- {level: Metadata, verbs: ["delete"]}
`

func TestPolicy(t *testing.T) {
	p, err := load(t, policyText)
	if err != nil {
		t.Fatal(err)
	}
	jane := &request.User{Username: "jane", Groups: []string{"system:authenticated"}}
	proxy := &request.User{Username: "system:kube-proxy", Groups: []string{"system:nobody"}}
	for target, want := range map[string]Level{
		"GET /api/v1/namespaces/kept/pods/p":                             RequestResponse,
		"GET /api/v1/namespaces/other/pods/p":                            None,
		"GET /api/v1/namespaces/kept/pods/p/log":                         Metadata,
		"PATCH /api/v1/namespaces/a/pods/p/status":                       Metadata,
		"GET /api/v1/namespaces/a/pods/p/exec":                           None,
		"GET /api/v1/namespaces/a/configmaps/controller-leader":          None,
		"GET /api/v1/namespaces/kube-system/configmaps/x":                Request,
		"GET /api/v1/namespaces/a/configmaps/x":                          Metadata,
		"GET /version":                                                   None,
		"GET /apis":                                                      None,
		"GET /healthz":                                                   None,
		"PATCH /apis/apps/v1/namespaces/a/deployments/d/scale":           Request,
		"PATCH /apis/apps/v1/namespaces/a/deployments/d":                 None,
		"GET /apis/batch/v1/namespaces/a/jobs/j/status":                  Request,
		"GET /apis/batch/v1/namespaces/a/jobs/j":                         Request,
		"GET /apis/batch/v1/namespaces/a/cronjobs/j":                     None,
		"GET /apis/networking.k8s.io/v1/namespaces/kept/networkpolicies": Request,
		"GET /apis/networking.k8s.io/v1/namespaces/a/networkpolicies":    None,
		"GET /apis/policy/v1/namespaces/a/poddisruptionbudgets/b":        Request,
		"GET /apis/policy/v1/namespaces/a/poddisruptionbudgets/b/status": Request,
		"GET /apis/coordination.k8s.io/v1/leases":                        Request,
		"GET /apis/coordination.k8s.io/v1/namespaces/a/leases":           None,
		"DELETE /api/v1/nodes/n":                                         Metadata,
	} {
		method, path, _ := strings.Cut(target, " ")
		if got := p.judge(jane, request.Parse(httptest.NewRequest(method, path, nil))).level; got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	watch := request.Parse(httptest.NewRequest("GET", "/api/v1/endpoints?watch=1", nil))
	if v := p.judge(proxy, watch); v.level != None {
		t.Errorf("kube-proxy's watch: %+v", v)
	}
	if v := p.judge(nil, request.Parse(httptest.NewRequest("GET", "/version", nil))); v.level != None {
		t.Errorf("a stranger: %+v", v)
	}
	v := p.judge(jane, request.Parse(httptest.NewRequest("GET", "/api/v1/secrets", nil)))
	if !slices.Equal(v.omit, []Stage{RequestReceived, ResponseStarted}) || !v.omitManagedFields {
		t.Errorf("secrets: %+v", v)
	}
	if v := p.judge(jane, request.Parse(httptest.NewRequest("GET", "/api/v1/namespaces/kept/pods/p", nil))); v.omitManagedFields {
		t.Errorf("the rule's word on managed fields does not count: %+v", v)
	}
}

func TestPoliciesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"rules: []":                                                        "no rules",
		"rules: [{level: Everything}]":                                     "rules[0].level",
		"rules: [{level: None, omitStages: [End]}]":                        "rules[0].omitStages[0]",
		"omitStages: [End]\nrules: [{level: None}]":                        "omitStages[0]",
		"rules: [{level: None, nonResourceURLs: [api]}]":                   "must begin with a '/'",
		"rules: [{level: None, nonResourceURLs: ['/a*b']}]":                "must be the final character",
		"rules: [{level: None, nonResourceURLs: ['/a'], namespaces: [x]}]": "both regular resources and non-resource",
		"rules: [{level: None, resources: [{group: apps/v1}]}]":            "rules[0].resources[0].group",
		"rules: [{level: None, resources: [{group: Apps}]}]":               "rules[0].resources[0].group",
		"rules: [{level: None, resources: [{group: '*.k8s.io'}]}]":         "rules[0].resources[0].group",
		"rules: [{level: None, resources: [{resourceNames: [x]}]}]":        "at least one resource",
		"rules: [{level: None, colour: red}]":                              "colour",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := load(t, "kind: Politics\nrules: [{level: None}]"); err == nil {
		t.Error("another kind was taken")
	}
}
