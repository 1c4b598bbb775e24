package objects

import (
	"net/http"
	"strings"
	"testing"
)

// The formats of patches, and of whole objects.
const (
	putIt   = "application/json"
	merging = "application/merge-patch+json"
	byKeys  = "application/strategic-merge-patch+json"
	applyIt = "application/apply-patch+yaml"
)

// TestPatchAnswers: patches that can't be applied, or that change less than
// they say, are answered as by kube-apiserver.
func TestPatchAnswers(t *testing.T) {
	t.Parallel()
	c := start(t)
	const (
		deployment = "/apis/apps/v1/namespaces/default/deployments/d"
		daemons    = "/apis/apps/v1/namespaces/default/daemonsets"
		policies   = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
		schemas    = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
		ranges     = "/apis/networking.k8s.io/v1/servicecidrs"
		aTemplate  = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
		slices     = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
		volumes    = "/api/v1/persistentvolumes"
		service    = "/api/v1/namespaces/default/services/s"
		aCondition = `{"type":"A","status":"True","reason":"R","lastTransitionTime":"2020-01-01T00:00:00Z","message":"m"}`
	)
	for _, test := range []struct {
		name, method, path, media, body string
		code                            int
		says                            []string // parts of the answer; those that begin with "-" must be missing
	}{
		{"a deployment", "POST", strings.TrimSuffix(deployment, "/d"), putIt, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + aTemplate +
			`}}`, 201, nil},
		{"no kind of patch", "PATCH", deployment, putIt, `{}`, 415,
			[]string{`"message":"415: Unsupported Media Type","reason":"UnsupportedMediaType","details":{},"code":415`}},
		{"a kind in large letters", "PATCH", deployment, "application/MERGE-patch+json", `{}`, 415, nil},
		{"a kind and how it is written", "PATCH", deployment, merging + "; charset=utf-8", `{}`, 200, nil},
		{"no version", "PATCH", deployment, merging, `{"apiVersion":null}`, 400,
			[]string{"the name of the object (d based on URL) was undeterminable: name must be provided"}},
		{"no key", "PATCH", deployment, byKeys, `{"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}}`, 500,
			[]string{`"message":"map: map[image:x] does not contain declared merge key: name","code":500`}},
		{"a directive that is none", "PATCH", deployment, byKeys, `{"spec":{"$patch":"bogus"}}`, 500,
			[]string{`"message":"unknown patch type: bogus in map: map[$patch:bogus]","code":500`}},
		{"another order", "PATCH", deployment, byKeys, `{"metadata":{"$setElementOrder/finalizers":["a.b/c","d.e/f"],"finalizers":["d.e/f","a.b/c"]}}`, 500,
			[]string{`doesn't match $setElementOrder list`}},
		{"text where a map is", "PATCH", deployment, byKeys, `{"metadata":{"labels":"invalid"}}`, 422,
			[]string{"patch: Invalid value: cannot restore map from string"}},
		{"keys that are not kept", "PATCH", deployment, byKeys, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate","rollingUpdate":{}}}}`, 400,
			[]string{`"message":"invalid patch format of retainKeys","reason":"BadRequest"`}},
		{"applied twice in what is no deployment", "PATCH", deployment + "?fieldManager=m", applyIt, `{"kind":"Other","kind":"Other"}`, 400,
			[]string{"invalid object type"}},

		{"another's scale", "PATCH", deployment + "/scale", merging, `{"metadata":{"uid":"x"}}`, 409,
			[]string{`Operation cannot be fulfilled on deployments/scale.apps \"d\": Precondition failed: UID in precondition: x, UID in object meta: `}},
		{"another's older scale", "PATCH", deployment + "/scale", merging, `{"metadata":{"uid":"x","resourceVersion":"1"}}`, 409,
			[]string{`Operation cannot be fulfilled on deployments/scale.apps \"d\": Precondition failed: UID in precondition: x, UID in object meta: `}},
		{"fewer than none", "PATCH", deployment + "/scale", merging, `{"spec":{"replicas":-1}}`, 422,
			[]string{`Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`}},

		{"a set of daemons", "POST", daemons, putIt, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + aTemplate + `}}`, 201,
			[]string{`"f:metadata":{"f:annotations":{".":{},"f:deprecated.daemonset.template.generation":{}}}`, `"deprecated.daemonset.template.generation":"1"`}},

		{"a set of daemons by its status", "PUT", daemons + "/d/status", putIt,
			`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + aTemplate + `},"status":{"currentNumberScheduled":1}}`, 200,
			[]string{`"deprecated.daemonset.template.generation":"1"`}},
		{"a generation that is no number", "POST", daemons, putIt,
			`{"metadata":{"name":"f","annotations":{"deprecated.daemonset.template.generation":"x"}},"spec":{"selector":{"matchLabels":{"a":"b"}},` + aTemplate + `}}`,
			400,
			[]string{`DaemonSet in version \"v1\" cannot be handled as a DaemonSet: strconv.ParseInt: parsing \"x\": invalid syntax`}},
		{"a patch to such", "PATCH", daemons + "/d", merging, `{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"x"}}}`, 422,
			[]string{`strconv.ParseInt: parsing \"x\": invalid syntax`}},
		{"its generation by its status", "PATCH", daemons + "/d/status", merging, `{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"7"}}}`,
			200, []string{`"deprecated.daemonset.template.generation":"1"`}},
		{"a set of daemons that was there before", "POST", daemons, putIt,
			`{"metadata":{"name":"e","annotations":{"deprecated.daemonset.template.generation":"9"}},"spec":{"selector":{"matchLabels":{"a":"b"}},` + aTemplate + `}}`,
			201,
			[]string{`"deprecated.daemonset.template.generation":"9"`}},

		{"a policy", "POST", policies, putIt,
			`{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["x.io"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["xs"]}]},"validations":[{"expression":"true"}]}}`, 201, nil},
		{"a label by the status", "PATCH", policies + "/p/status", merging, `{"metadata":{"labels":{"sneaked":"1"}}}`, 200, []string{"-sneaked"}},
		{"no condition", "PATCH", policies + "/p/status", merging, `{"status":{"conditions":[{"type":"","status":"Maybe"}]}}`, 422,
			[]string{`[status.conditions[0].type: Required value: is required, status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\", status.conditions[0].lastTransitionTime: Required value, status.conditions[0].reason: Required value]`}},
		{"a condition twice", "PATCH", policies + "/p/status", merging, `{"status":{"conditions":[` + aCondition + `,` + aCondition + `]}}`, 422,
			[]string{`is invalid: status.conditions[1]: Duplicate value: \"A\"`}},
		{"a schema's condition twice", "PATCH", schemas + "/exempt/status", merging,
			`{"status":{"conditions":[{"type":"A","status":"True"},{"type":"A","status":"x"},{"type":"","status":"x"}]}}`, 422,
			[]string{`[status.conditions[1].type: Duplicate value: \"A\", status.conditions[2].type: Required value]`}},
		{"a range", "POST", ranges, putIt, `{"metadata":{"name":"r"},"spec":{"cidrs":["10.99.0.0/24"]}}`, 201, nil},
		{"endpoints", "POST", slices, putIt, `{"metadata":{"name":"e"},"addressType":"IPv4","endpoints":[]}`, 201, []string{`"generation":1`}},
		{"an annotation of endpoints", "PATCH", slices + "/e", merging, `{"metadata":{"annotations":{"a":"b"}}}`, 200, []string{`"generation":1`}},
		{"a label of endpoints", "PATCH", slices + "/e", merging, `{"metadata":{"labels":{"a":"b"}}}`, 200, []string{`"generation":2`}},
		{"a volume", "POST", volumes, putIt,
			`{"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}}`, 201, nil},
		{"no status of a volume", "PATCH", volumes + "/v/status", merging, `{"status":null}`, 200, []string{`"phase":"Pending","lastPhaseTransitionTime":"2`}},
		{"a service", "POST", strings.TrimSuffix(service, "/s"), putIt, `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`, 201, nil},
		{"no balancer", "PATCH", service + "/status", merging, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`, 422,
			[]string{"status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"}},
		{"a balancer", "PATCH", service, merging, `{"spec":{"type":"LoadBalancer"}}`, 200, nil},
		{"no address and no name", "PATCH", service + "/status", merging,
			`{"status":{"loadBalancer":{"ingress":[{"ip":"x"},{"ip":"1.2.3.4","ipMode":"X"},{"ipMode":"VIP","hostname":"A_b"},{"hostname":"1.2.3.4"}]}}}`, 422,
			[]string{`[status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), status.loadBalancer.ingress[1].ipMode: Unsupported value: \"X\": supported values: \"Proxy\", \"VIP\", ` +
				"status.loadBalancer.ingress[2].ipMode: Forbidden: may not be specified when `ip` is not set, " +
				`status.loadBalancer.ingress[2].hostname: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain`,
				`status.loadBalancer.ingress[3].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address]`}},
		{"an address", "PATCH", service + "/status", merging, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`, 200,
			[]string{`"ingress":[{"ip":"1.2.3.4","ipMode":"VIP"}]`}},
		{"nobody's fields by the status", "PATCH", service + "/status", merging, `{"metadata":{"managedFields":[]}}`, 200, []string{`"managedFields":[{`}},
		{"nobody's fields", "PATCH", service + "?dryRun=All", merging, `{"metadata":{"managedFields":[]}}`, 200, []string{"-managedFields"}},
		{"no balancer any more", "PATCH", service, merging, `{"spec":{"type":"ClusterIP"}}`, 200, []string{`"loadBalancer":{}`}},
		{"a range's finalizer by its status", "PATCH", ranges + "/r/status", merging, `{"metadata":{"finalizers":["sneaked.io/1"]}}`, 200, []string{"-sneaked"}},
	} {
		answer, text := c.Ask(test.method, test.path, http.Header{"Content-Type": {test.media}}, []byte(test.body))
		if answer.StatusCode != test.code {
			t.Errorf("%s: %d, want %d: %.400s", test.name, answer.StatusCode, test.code, text)
		}
		for _, part := range test.says {
			if part, none := strings.CutPrefix(part, "-"); strings.Contains(string(text), part) == none {
				t.Errorf("%s: %.600s\nhas %q: %v", test.name, text, part, none)
			}
		}
	}
}
