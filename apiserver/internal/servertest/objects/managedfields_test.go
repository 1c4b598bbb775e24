package objects

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// ownershipStep is one write, and the object's managedFields after it, or the
// refusal.
type ownershipStep struct {
	method, path, manager, body string
	// object is the object whose managedFields are checked, if it is not the
	// answer.
	object string
	owns   []string // all entries, "manager/operation/subresource version fields"
	says   string
	// generation is the object's generation after it; 0 if it does not matter.
	generation float64
}

const (
	autoscalersV1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
	autoscalersV2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	eventsNew     = "/apis/events.k8s.io/v1/namespaces/default/events"
	eventsCore    = "/api/v1/namespaces/default/events"
	deployments   = "/apis/apps/v1/namespaces/default/deployments"
	revisions     = "/apis/apps/v1/namespaces/default/controllerrevisions"
	definitions   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	pods          = "/api/v1/namespaces/default/pods"
	namespaces    = "/api/v1/namespaces"
	requests      = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	apiServices   = "/apis/apiregistration.k8s.io/v1/apiservices"
)

var ownershipSteps = map[string][]ownershipStep{
	"a kind in two versions": {
		{"POST", autoscalersV1, "maker",
			`{metadata: {name: a}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: D, name: d}, maxReplicas: 3, targetCPUUtilizationPercentage: 50}}`, "",
			[]string{`maker/Update/ autoscaling/v1 {"f:spec":{"f:maxReplicas":{},"f:minReplicas":{},"f:scaleTargetRef":{},"f:targetCPUUtilizationPercentage":{}}}`}, "",
			0},
		{"APPLY", autoscalersV2 + "/a", "other", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 4}}`, "", nil,
			`conflict with "maker" using autoscaling/v1: .spec.maxReplicas`, 0},
		{"APPLY", autoscalersV1 + "/a", "maker", `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a, labels: {a: b}}}`, "",
			[]string{
				`maker/Apply/ autoscaling/v1 {"f:metadata":{"f:labels":{"f:a":{}}}}`,
				`maker/Update/ autoscaling/v1 {"f:spec":{"f:maxReplicas":{},"f:minReplicas":{},"f:scaleTargetRef":{},"f:targetCPUUtilizationPercentage":{}}}`,
			}, "", 0},
	},
	"a kind in two groups": {
		{"POST", eventsNew, "scheduler",
			`{metadata: {name: e}, regarding: {kind: Pod, namespace: default, name: p}, reason: R, note: note, type: Normal, action: A, ` +
				`eventTime: '2030-01-01T00:00:00.000000Z', reportingController: a.b/c, reportingInstance: i}`, "",
			[]string{`scheduler/Update/ events.k8s.io/v1 {"f:action":{},"f:eventTime":{},"f:note":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:type":{}}`}, "", 0},
		{"MERGE", eventsCore + "/e", "editor", `{message: other}`, "",
			[]string{
				`editor/Update/ v1 {"f:message":{}}`,
				`scheduler/Update/ events.k8s.io/v1 {"f:action":{},"f:eventTime":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:type":{}}`,
			}, "", 0},
	},
	"the replicas that Scale sets": {
		{"APPLY", deployments + "/d", "maker", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, ` +
			`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`, "", nil, "", 0},
		{"MERGE", deployments + "/d/scale", "scaler", `{spec: {replicas: 2}}`, deployments + "/d",
			[]string{
				`maker/Apply/ apps/v1 {"f:spec":{"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`,
				`scaler/Update/scale apps/v1 {"f:spec":{"f:replicas":{}}}`,
			}, "", 0},
		{"APPLY", deployments + "/d/scale", "third", `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: d}, spec: {replicas: 3}}`, "", nil,
			`conflict with "scaler" with subresource "scale" using autoscaling/v1: .spec.replicas`, 0},
		{"APPLY", deployments + "/d/scale", "third", `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: d}, spec: {replicas: 2}}`, "", nil, "", 0},
		{"APPLY", deployments + "/d", "fourth", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 9}}`, "", nil,
			`Apply failed with 2 conflicts: conflicts with "scaler" with subresource "scale" using apps/v1:`, 0},
	},
	"labels that a status leaves alone": {
		{"POST", deployments, "maker",
			`{metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`, "", nil,
			"", 0},
		{"APPLY", deployments + "/s/status", "status", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: s, labels: {c: d}}, status: {replicas: 1}}`, "",
			[]string{`maker/Update/ apps/v1 {"f:spec":`, `status/Apply/status apps/v1 {"f:status":{"f:replicas":{}}}`}, "", 0},
		{"POST", apiServices, "maker",
			`{metadata: {name: v1.a.example.com}, spec: {group: a.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10, service: {namespace: some, name: s}, insecureSkipTLSVerify: true}}`, "", nil, "", 0},
		{"MERGE", apiServices + "/v1.a.example.com/status", "status", `{metadata: {labels: {c: d}}}`, "",
			[]string{`maker/Update/ apiregistration.k8s.io/v1 {"f:spec":`}, "", 0},
		{"MERGE", deployments + "/s", "editor", `{metadata: {labels: {e: f}}}`, "", nil, "", 1},
		{"MERGE", deployments + "/s", "editor", `{metadata: {annotations: {e: f}}}`, "", nil, "", 2},
	},
	"what a subresource leaves alone": {
		{"POST", pods, "maker", `{metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}`, "", nil, "", 0},
		{"MERGE", pods + "/p/status", "status", `{metadata: {deletionTimestamp: '2030-01-01T00:00:00Z'}, status: {message: m}}`, "",
			[]string{`maker/Update/ v1 {"f:spec":`, `status/Update/status v1 {"f:status":{"f:message":{}}}`}, "", 0},
		{"POST", namespaces, "maker", `{metadata: {name: f}}`, "", nil, "", 0},
		{"PUT", namespaces + "/f/finalize", "status", `{metadata: {name: f, labels: {a: b}}, status: {phase: Terminating}}`, "",
			[]string{`maker/Update/ v1 {"f:metadata":`, `status/Update/finalize v1 {"f:metadata":{"f:labels":{"f:a":{}}}}`}, "", 0},
		{"POST", requests, "maker", `{metadata: {name: r}, spec: {signerName: a.b/c, usages: [any], request: ` + aRequest() + `}}`, "", nil, "", 0},
		{"APPLY", requests + "/r/status", "status", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: r, labels: {a: b}}, ` +
			`status: {conditions: [{type: Failed, status: 'True'}]}}`, "",
			[]string{`status/Apply/status certificates.k8s.io/v1 {"f:metadata":{"f:labels":{"f:a":{}}}}`}, "", 0},
		{"MERGE", requests + "/r/approval", "approver", `{metadata: {labels: {c: d}}, status: {certificate: AA==}}`, "",
			[]string{`approver/Update/approval certificates.k8s.io/v1 {"f:metadata":{"f:labels":{"f:c":{}}}}`,
				`status/Apply/status certificates.k8s.io/v1 {"f:metadata":{"f:labels":{"f:a":{}}}}`}, "", 0},
	},
	"data as a whole": {
		{"POST", revisions, "maker", `{metadata: {name: r}, revision: 1, data: {a: {b: c}}}`, "", []string{`maker/Update/ apps/v1 {"f:data":{},"f:revision":{}}`}, "",
			0},
	},
	"schemas that may be one thing or another": {
		{"APPLY", definitions + "/as.example.com", "maker",
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, ` +
				`spec: {group: example.com, scope: Namespaced, names: {plural: as, singular: a, kind: A, listKind: AList}, versions: [{name: v1, served: true, storage: true, ` +
				`schema: {openAPIV3Schema: {type: object, properties: {l: {type: array, default: [], items: {type: object}}, m: {type: object, additionalProperties: {type: string}}}}}}]}}`, "",
			[]string{`maker/Apply/ apiextensions.k8s.io/v1 {"f:spec":{"f:group":{},"f:names":{"f:kind":{},"f:listKind":{},"f:plural":{},"f:singular":{}},"f:scope":{},"f:versions":{}}}`}, "", 0},
	},
	"versions that nobody knows": {
		{"POST", "/api/v1/namespaces/default/configmaps", "maker",
			`{metadata: {name: c, managedFields: [{manager: old, operation: Update, apiVersion: v9, fieldsType: FieldsV1, fieldsV1: {'f:data': {'f:a': {}}}}]}, data: {a: b}}`, "",
			[]string{`maker/Update/ v1 {"f:data":{".":{},"f:a":{}}}`}, "", 0},
	},
}

// aRequest is one for a certificate, as it is in JSON.
func aRequest() string {
	key, err := pki.NewKey()
	if err != nil {
		panic(err)
	}
	request, err := pki.NewRequest(pki.Subject{CommonName: "a"}, key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(request)
}

// TestManagedFields: field ownership is recorded as by upstream's server, in
// whichever version and through whichever subresource an object is written.
func TestManagedFields(t *testing.T) {
	t.Parallel()
	c := start(t)
	root := c.Root()
	types := map[string]types.PatchType{"APPLY": types.ApplyYAMLPatchType, "MERGE": types.MergePatchType}
	for name, steps := range ownershipSteps {
		t.Run(name, func(t *testing.T) {
			for _, step := range steps {
				var body, made map[string]any
				if err := yaml.Unmarshal([]byte(step.body), &body); err != nil {
					t.Fatalf("%v in %s", err, step.body)
				}
				options := []rest.Option{rest.Query("fieldManager", step.manager)}
				method := step.method
				if media, ok := types[method]; ok {
					method, options = http.MethodPatch, append(options, rest.ContentType(string(media)))
				}
				err := root.Do(t.Context(), method, step.path, body, &made, options...)
				if step.says != "" || err != nil {
					if err == nil || step.says == "" || !strings.Contains(err.Error(), step.says) {
						t.Errorf("%s %s by %s:\n     %v\nwant %s", step.method, step.path, step.manager, err, step.says)
					}
					continue
				}
				if step.object != "" {
					made = map[string]any{}
					c.Must(root.Do(t.Context(), http.MethodGet, step.object, nil, &made))
				}
				object := &unstructured.Unstructured{Object: made}
				checkManagedFields(t, object, step)
				if got, _, _ := unstructured.NestedFloat64(made, "metadata", "generation"); step.generation != 0 && got != step.generation {
					t.Errorf("%s %s: generation %v, want %v", step.method, step.path, got, step.generation)
				}
			}
		})
	}
}

func checkManagedFields(t *testing.T, made *unstructured.Unstructured, step ownershipStep) {
	t.Helper()
	var have []string
	for _, e := range made.GetManagedFields() {
		if e.Manager != "kube-apiserver" { // the server's own status may be there already, or not
			have = append(have, entryText(e))
		}
	}
	slices.Sort(have)
	if step.owns != nil && len(have) != len(step.owns) {
		t.Errorf("%s %s by %s: %d entries, want %d", step.method, step.path, step.manager, len(have), len(step.owns))
	}
	for _, want := range step.owns {
		if !slices.ContainsFunc(have, func(text string) bool { return strings.HasPrefix(text, want) }) {
			t.Errorf("%s %s by %s: nothing in managedFields is\n%s\nbut\n%s", step.method, step.path, step.manager, want, strings.Join(have, "\n"))
		}
	}
}

func entryText(e metav1.ManagedFieldsEntry) string {
	text := e.Manager + "/" + string(e.Operation) + "/" + e.Subresource + " " + e.APIVersion
	if e.FieldsV1 != nil {
		text += " " + string(e.FieldsV1.Raw)
	}
	return text
}
