package objects

import (
	"net/http"
	"slices"
	"testing"
)

// TestFaults: objects are refused with the same causes as by kube-apiserver
// v1.37.0, no less and no more, in any order. The rows are what had to be fixed
// after about ten thousand objects with random errors had been sent to both.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, test := range []struct {
		name, path, body string
		code             int
		causes           []string // sorted
	}{
		{"whose address it is", "/apis/networking.k8s.io/v1/ipaddresses",
			`{"metadata":{"name":"1.2.3.4"},"spec":{"parentRef":{"group":"A_b","resource":"a/b","namespace":"..","name":"%"}}}`, 422,
			[]string{`spec.parentRef.group: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.parentRef.name: Invalid value: "%": may not contain '%'`, `spec.parentRef.namespace: Invalid value: "..": may not be '..'`, `spec.parentRef.resource: Invalid value: "a/b": may not contain '/'`}},
		{"an address that is none", "/apis/networking.k8s.io/v1/ipaddresses", `{"metadata":{"name":"a.b"},"spec":{"parentRef":{"resource":"r"}}}`, 422,
			[]string{`metadata.name: Invalid value: "a.b": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`, `spec.parentRef.name: Required value`}},
		{"a migration of what can't be", "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
			`{"metadata":{"name":"a"},"spec":{"resource":{"group":"A_b","resource":"10"}}}`, 422,
			[]string{`spec.resource.group: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.resource.resource: Invalid value: "10": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`}},
		{"a migration of nothing", "/apis/storagemigration.k8s.io/v1/storageversionmigrations", `{"metadata":{"name":"a"},"spec":{"resource":{}}}`, 422,
			[]string{`spec.resource.resource: Required value: resource is required to be set`}},
		{"a template with a name", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
			`{"metadata":{"name":"a"},"spec":{"metadata":{"name":"x","uid":"y","labels":{"a":"_"},"finalizers":["a/b"]},"spec":{}}}`, 422,
			[]string{`spec.metadata.finalizers: Forbidden: cannot be set`,
				`spec.metadata.labels: Invalid value: "_": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`, `spec.metadata.name: Forbidden: cannot be set`, `spec.metadata.uID: Forbidden: cannot be set`}},
		{"two ways to ask for devices", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"a"},"spec":{"devices":{"requests":[{"name":"","exactly":{"deviceClassName":"c"},"firstAvailable":[{"name":"A_b","deviceClassName":"c"}]}]}}}`, 422, []string{`spec.devices.requests[0].name: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"}},
		{"parts of what is not shared", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"a"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"d","capacity":{"m":{"value":"1","requestPolicy":{"default":"1"}}}}]}}`, 422, []string{`spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true`}},
		{"parts of which none is meant", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"a"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"d","capacity":{"m":{"value":"1","requestPolicy":{"validRange":{"min":"1"}}}},"allowMultipleAllocations":true}]}}`, 422, []string{`spec.devices[0].capacity[m].requestPolicy.default: Required value: required when validRange is defined`}},
		{"an event of another namespace", "/apis/events.k8s.io/v1/namespaces/default/events",
			`{"metadata":{"name":"a"},"eventTime":"2030-01-01T00:00:00.000000Z","reportingController":"k","reportingInstance":"n","action":"A","reason":"R","type":"Normal","regarding":{"namespace":"kube-system"}}`, 201, []string{}},
		{"an event of no type by nobody", "/apis/events.k8s.io/v1/namespaces/default/events",
			`{"metadata":{"name":"a"},"eventTime":"2030-01-01T00:00:00.000000Z","reportingController":"","reportingInstance":"n","action":"A","reason":"R","regarding":{"namespace":"default"}}`, 422, []string{`reportingController: Invalid value: "": name part must be non-empty`, `reportingController: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`, `reportingController: Required value`, `type: Invalid value: "": has invalid value: `}},
		{"a question that was asked before", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			`{"metadata":{"uid":"u","creationTimestamp":"2020-01-01T00:00:00Z","labels":{}},"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`, 201,
			[]string{}},
		{"no preemption", "/apis/scheduling.k8s.io/v1/priorityclasses", `{"metadata":{"name":"a"},"value":1,"preemptionPolicy":""}`, 422,
			[]string{`preemptionPolicy: Required value`}},
		{"what a class costs", "/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"a"},"handler":"h","overhead":{"podFixed":{"cpu":"-1"}}}`, 422,
			[]string{`overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`}},
		{"a volume of two amounts", "/api/v1/persistentvolumes",
			`{"metadata":{"name":"a"},"spec":{"capacity":{"storage":"1","x":"-1"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/a"}}}`, 422,
			[]string{`spec.capacity: Unsupported value: {"storage":"1","x":"-1"}: supported values: "storage"`,
				`spec.capacity[x]: Invalid value: "-1": must be greater than zero`, `spec.capacity[x]: Invalid value: -1: must be a valid resource quantity`}},
		{"a scale of no version", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
			`{"metadata":{"name":"a"},"spec":{"maxReplicas":1,"scaleTargetRef":{"apiVersion":"/a","kind":"K","name":"n"}}}`, 422,
			[]string{`spec.scaleTargetRef.apiVersion: Invalid value: "/a": apiVersion must specify API group`}},
		{"a level of no type", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
			`{"metadata":{"name":"a"},"spec":{"type":"x","exempt":{},"limited":{}}}`, 422,
			[]string{`spec.exempt: Forbidden`, `spec.limited.limitResponse.type: Required value`, `spec.limited: Forbidden`,
				`spec.type: Unsupported value: "x": supported values: "Exempt", "Limited"`}},
		{"a response of no type", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
			`{"metadata":{"name":"a"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"x","queuing":{}}}}}`, 422,
			[]string{`spec.limited.limitResponse.queuing: Forbidden`, `spec.limited.limitResponse.type: Unsupported value: "x": supported values: "Queue", "Reject"`}},
		{"a change of what goes", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
			`{"metadata":{"name":"a"},"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"operations":["x"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]},"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[]"}}]}}`, 422, []string{`spec.matchConstraints.resourceRules.operations: Unsupported value: "x": supported values: "*", "CONNECT", "CREATE", "UPDATE"`, `spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "x": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`, `spec.mutations[0].jsonPatch.expression: Invalid value: "[]": must evaluate to list(JSONPatch) but got list(dyn)`}},
		{"parameters of two ways", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
			`{"metadata":{"name":"a"},"spec":{"policyName":"p","validationActions":["Deny"],"paramRef":{"name":"a","selector":{"matchLabels":{"a":"_"}},"parameterNotFoundAction":""}}}`, 422, []string{`spec.paramRef.name: Forbidden: name and selector are mutually exclusive`, `spec.paramRef.parameterNotFoundAction: Required value`, `spec.paramRef.selector.matchLabels: Invalid value: "_": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`, `spec.paramRef.selector: Forbidden: name and selector are mutually exclusive`}},
		{"a cron job that says which failures count", "/apis/batch/v1/namespaces/default/cronjobs",
			`{"metadata":{"name":"a"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]},"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"i"}]}}}}}}`, 201, []string{}},
		{"a cron job that replaces what it must not", "/apis/batch/v1/namespaces/default/cronjobs",
			`{"metadata":{"name":"a"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"podReplacementPolicy":"TerminatingOrFailed","podFailurePolicy":{"rules":[]},"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"i"}]}}}}}}`, 422, []string{`spec.jobTemplate.spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"`}},
		{"an annotation of no domain", "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests",
			`{"metadata":{"name":"a"},"spec":{"signerName":"a.b/c","podName":"p","podUID":"u","serviceAccountName":"s","serviceAccountUID":"u","nodeName":"n","nodeUID":"u","unverifiedUserAnnotations":{"Ab":"c","D E":"f"}}}`, 422, []string{`spec.unverifiedUserAnnotations: Invalid value: "ab": must be a domain-prefixed key (such as "acme.io/foo")`, `spec.unverifiedUserAnnotations: Invalid value: "d e": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`, `spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set`}},
		{"a path without a slash", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
			`{"metadata":{"name":"a"},"spec":{"priorityLevelConfiguration":{"name":"exempt"},"rules":[{"subjects":[{"kind":"User","user":{"name":"u"}}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["a//b"]}]}]}}`, 422, []string{`spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "a//b": must start with slash`}},
		{"parameters of no scope", "/apis/networking.k8s.io/v1/ingressclasses",
			`{"metadata":{"name":"a"},"spec":{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":""}}}`, 422,
			[]string{`spec.parameters.scope: Unsupported value: "": supported values: "Cluster", "Namespace"`}},
		{"a host that is an address", "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
			`{"metadata":{"name":"a"},"spec":{"rules":[{"host":"::1","http":{"paths":[{"path":"/","backend":{"resource":{}}}]}}]}}`, 422,
			[]string{`spec.rules[0].host: Invalid value: "::1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.rules[0].host: Invalid value: "::1": must be a DNS name, not an IP address`, `spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified`}},
		{"one fault of two labels", "/apis/storage.k8s.io/v1/csidrivers", `{"metadata":{"name":"a","labels":{"a":"_","b":"_"}},"spec":{}}`, 422,
			[]string{`metadata.labels: Invalid value: "_": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`}},
		{"all pods, and all", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
			`{"metadata":{"name":"a"},"spec":{"policyName":"p","validationActions":["Deny"],"matchResources":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["*"],"resources":["pods","*"]}]}}}`, 201, []string{}},
		{"addresses that are no names", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
			`{"metadata":{"name":"a"},"addressType":"FQDN","endpoints":[{"addresses":["a"]}]}`, 422,
			[]string{`endpoints[0].addresses[0]: Invalid value: "a": should be a domain with at least two segments separated by dots`}},
		{"an attachment by nobody", "/apis/storage.k8s.io/v1/volumeattachments",
			`{"metadata":{"name":"a"},"spec":{"attacher":"_","nodeName":"n","source":{"persistentVolumeName":"_","inlineVolumeSpec":{"capacity":{},"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Block","nodeAffinity":{},"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}}}}}`, 422, []string{`spec.attacher: Invalid value: "_": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.source.persistentVolumeName: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName`}},
		{"a volume that is said in an attachment", "/apis/storage.k8s.io/v1/volumeattachments",
			`{"metadata":{"name":"a"},"spec":{"attacher":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","nodeName":"n","source":{"inlineVolumeSpec":{"capacity":{},"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Block","nodeAffinity":{},"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}}}}}`, 422, []string{`spec.attacher: Too long: may not be more than 63 characters`, `spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes`, `spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes`}},
		{"a class that keeps no volume, nor deletes it", "/apis/storage.k8s.io/v1/storageclasses", `{"metadata":{"name":"a"},"provisioner":"p","reclaimPolicy":""}`,
			201, []string{}},
		{"two tokens for one", "/apis/storage.k8s.io/v1/csidrivers",
			`{"metadata":{"name":"a"},"spec":{"tokenRequests":[{"audience":"a"},{"audience":"a","expirationSeconds":1}]}}`, 422,
			[]string{`spec.tokenRequests[1].audience: Duplicate value: "a"`}},
		{"a path that is none", "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
			`{"metadata":{"name":"a"},"spec":{"rules":[{"http":{"paths":[{"path":"a//b","pathType":"Prefix","backend":{"resource":{"kind":"K","name":"n"}}}]}}]}}`, 422,
			[]string{`spec.rules[0].http.paths[0].path: Invalid value: "a//b": must be an absolute path`,
				`spec.rules[0].http.paths[0].path: Invalid value: "a//b": must not contain '//'`}},
		{"a template of what admins may do", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
			`{"metadata":{"name":"a"},"spec":{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","adminAccess":true}}]}}}}`, 422,
			[]string{"spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label " +
				"on the containing namespace"}},
		{"alternatives beside a wish", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"a"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"_","tolerations":[{"operator":"x","value":"_"}]},"firstAvailable":[{"name":"A","deviceClassName":"_","selectors":[{}],"tolerations":[{"key":"_","effect":"x"}]},{"name":"A","deviceClassName":""}]}],"constraints":[{"requests":["/a/b"],"matchAttribute":"a","distinctAttribute":"b"}]}}}`, 422, []string{`spec.devices.constraints[0].distinctAttribute: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash`, `spec.devices.constraints[0].matchAttribute: Invalid value: "a": a fully qualified name must be a domain and a name separated by a slash`, `spec.devices.constraints[0].requests[0]: Invalid value: "/a/b": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`, `spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: "x": supported values: "Equal", "Exists"`, `spec.devices.requests[0].firstAvailable[0].deviceClassName: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.devices.requests[0].firstAvailable[0].tolerations[0].effect: Unsupported value: "x": supported values: "NoExecute", "NoSchedule", "None"`, `spec.devices.requests[0].firstAvailable[0].tolerations[0].key: Invalid value: "_": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`, `spec.devices.requests[0].firstAvailable[1].deviceClassName: Required value`, `spec.devices.requests[0].firstAvailable[1]: Duplicate value: {"name":"A","deviceClassName":"","allocationMode":"ExactCount","count":1}`, "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"}},
	} {
		answer, text := c.Ask(http.MethodPost, test.path+"?dryRun=All", http.Header{"Content-Type": {"application/json"}}, []byte(test.body))
		causes := causesOf(c, text)
		if answer.StatusCode != test.code || !slices.Equal(causes, test.causes) {
			t.Errorf("%s: %d %q\n want %d %q", test.name, answer.StatusCode, causes, test.code, test.causes)
		}
	}
}
