package objects

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUpdates: updates of objects and of their status are refused with the same
// causes as by kube-apiserver v1.37.0, or have the same result. The rows are
// what had to be fixed after about ten thousand random changes had been sent to
// both.
func TestUpdates(t *testing.T) {
	t.Parallel()
	c := start(t)
	merge := http.Header{"Content-Type": {"application/merge-patch+json"}}
	for _, test := range []struct {
		name, path, object string
		subresource        string
		before, patch      string // before is applied first
		code               int
		causes             []string // sorted
		holds              string   // is in the answer
	}{
		{"a parameter that is no name", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
			`{"metadata":{"name":"u0"},"spec":{"policyName":"p","validationActions":["Deny"],"paramRef":{"name":"a","parameterNotFoundAction":"Deny"}}}`, "", "",
			`{"spec":{"paramRef":{"name":"a/b","selector":{}}}}`, 422, []string{`spec.paramRef.name: Forbidden: name and selector are mutually exclusive`,
				`spec.paramRef.name: Invalid value: "a/b": may not contain '/'`, `spec.paramRef.selector: Forbidden: name and selector are mutually exclusive`}, ""},
		{"a mutation of what goes", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings", `{"metadata":{"name":"u1"},"spec":{"policyName":"p"}}`,
			"", "", `{"spec":{"matchResources":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["DELETE"],"resources":["pods"]}]}}}`, 422,
			[]string{`spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"`}, ""},
		{"warnings about nothing", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
			`{"metadata":{"name":"u2"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"true"}]}}`, "/status", "", `{"status":{"typeChecking":{"expressionWarnings":[{"fieldRef":"","warning":""},{"fieldRef":"spec.validations[0].expression","warning":"w"},{"fieldRef":"a 1","warning":"w"},{"fieldRef":"100m","warning":"w"},{"fieldRef":"a=b","warning":"w"},{"fieldRef":".a..b[0]","warning":"w"}]}}}`, 422, []string{`status.typeChecking.expressionWarnings[0].fieldRef: Required value`, `status.typeChecking.expressionWarnings[0].warning: Required value`}, ""},
		{"a service that is deleted by its status", "/apis/apiregistration.k8s.io/v1/apiservices",
			`{"metadata":{"name":"v1.u3.example"},"spec":{"group":"u3.example","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"service":{"name":"s","namespace":"default"}}}`, "/status", "", `{"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z","labels":{"a":"b"}}}`, 422, []string{`metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable`}, ""},
		{"conditions of no type", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
			`{"metadata":{"name":"u4"},"spec":{"signerName": "example.com/signer", "usages": ["any"], "request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQnlqQ0NBVE1DQVFBd2dZa3hDekFKQmdOVkJBWVRBbFZUTVJNd0VRWURWUVFJRXdwRFlXeHBabTl5Ym1saApNUll3RkFZRFZRUUhFdzFOYjNWdWRHRnBiaUJXYVdWM01STXdFUVlEVlFRS0V3cEhiMjluYkdVZ1NXNWpNUjh3CkhRWURWUVFMRXhaSmJtWnZjbTFoZEdsdmJpQlVaV05vYm05c2IyZDVNUmN3RlFZRFZRUURFdzUzZDNjdVoyOXYKWjJ4bExtTnZiVENCbnpBTkJna3Foa2lHOXcwQkFRRUZBQU9CalFBd2dZa0NnWUVBcFp0WUpDSEo0VnBWWEhmVgpJbHN0UVRsTzRxQzAzaGpYK1prUHl2ZFlkMVE0K3FiQWVUd1htQ1VLWUhUaFZSZDVhWFNxbFB6eUlCd2llTVpyCldGbFJRZGRaMUl6WEFsVlJEV3dBbzYwS2VjcWVBWG5uVUsrNWZYb1RJL1VnV3NocmU4dEoreC9UTUhhUUtSL0oKY0lXUGhxYVFoc0p1elpidkFkR0E4MEJMeGRNQ0F3RUFBYUFBTUEwR0NTcUdTSWIzRFFFQkJRVUFBNEdCQUlobAo0UHZGcStlN2lwQVJnSTVaTStHWng2bXBDejQ0RFRvMEprd2ZSRGYrQnRyc2FDMHE2OGVUZjJYaFlPc3E0ZmtIClEwdUEwYVZvZzNmNWlKeENhM0hwNWd4YkpRNnpWNmtKMFRFc3VhYU9oRWtvOXNkcENvUE9uUkJtMmkvWFJEMkQKNmlOaDhmOHowU2hHc0ZxakRnRkh5RjNvK2xVeWorVUM2SDFRVzdibgotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0="}}`, "/status", "", `{"status":{"conditions":[{"type":"","status":"True"},{"type":"","status":"True"}]}}`, 422, []string{`status.conditions[0].type: Required value`, `status.conditions[1].type: Duplicate value: ""`, `status.conditions[1].type: Required value`}, ""},
		{"a migration from a time that is none", "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
			`{"metadata":{"name":"u5"},"spec":{"resource":{"resource":"pods"}}}`, "/status", "", `{"status":{"resourceVersion":"x"}}`, 422,
			[]string{`status.resourceVersion: Invalid value: "x": resource version is not well formed: x`}, ""},
		{"a migration from another time", "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
			`{"metadata":{"name":"u6"},"spec":{"resource":{"resource":"pods"}}}`, "/status", `{"status":{"resourceVersion":"5"}}`, `{"status":{"resourceVersion":"6"}}`,
			422, []string{`status.resourceVersion: Invalid value: "6": field is immutable`}, ""},
		{"a migration that ended in two ways", "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
			`{"metadata":{"name":"u7"},"spec":{"resource":{"resource":"pods"}}}`, "/status", "",
			`{"status":{"conditions":[{"type":"Succeeded","status":"True","reason":"R","message":"","lastTransitionTime":"2030-01-01T00:00:00Z"},{"type":"Failed","status":"True","reason":"R","message":"","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`, 422, []string{`status.conditions: Invalid value: [{"type":"Succeeded","status":"True","lastTransitionTime":"2030-01-01T00:00:00Z","reason":"R","message":""},{"type":"Failed","status":"True","lastTransitionTime":"2030-01-01T00:00:00Z","reason":"R","message":""}]: Both success and failed conditions cannot be true at the same time`}, ""},
		{"a migration that is begun again", "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
			`{"metadata":{"name":"u8"},"spec":{"resource":{"resource":"pods"}}}`, "/status",
			`{"status":{"conditions":[{"type":"Failed","status":"True","reason":"R","message":"","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`,
			`{"status":{"conditions":[]}}`, 422, []string{`status.conditions: Invalid value: []: Failed condition cannot be set to false once it is true`}, ""},
		{"a schema whose status speaks of metadata", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
			`{"metadata":{"name":"u9"},"spec":{"priorityLevelConfiguration":{"name":"exempt"}}}`, "/status", "",
			`{"metadata":{"deletionGracePeriodSeconds":1,"labels":{"a":"b"}}}`, 200, nil, ""},
		{"a level that was of a type", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
			`{"metadata":{"name":"u10"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}`, "", "",
			`{"spec":{"type":"x","limited":{"lendablePercent":200,"borrowingLimitPercent":-1,"limitResponse":{"type":"y","queuing":{}}}}}`, 422,
			[]string{`spec.limited.limitResponse.queuing: Forbidden`, `spec.limited: Forbidden`,
				`spec.type: Unsupported value: "x": supported values: "Exempt", "Limited"`}, ""},
		{"queues of no type", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
			`{"metadata":{"name":"u11"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}`, "", "",
			`{"spec":{"limited":{"limitResponse":{"type":"","queuing":{}}}}}`, 422,
			[]string{`spec.limited.limitResponse.queuing: Forbidden`, `spec.limited.limitResponse.type: Required value`}, ""},
		{"another family", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
			`{"metadata":{"name":"u12"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}]}`, "", "", `{"addressType":"X"}`, 422,
			[]string{`addressType: Invalid value: null: field is immutable`, `addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"`}, ""},
		{"an address of somebody else", "/apis/networking.k8s.io/v1/ipaddresses", `{"metadata":{"name":"10.0.7.7"},"spec":{"parentRef":{"resource":"r","name":"a"}}}`,
			"", "", `{"spec":{"parentRef":{"name":"b"}}}`, 422, []string{`spec.parentRef: Invalid value: null: field is immutable`}, ""},
		{"a block beside pods", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", `{"metadata":{"name":"u14"},"spec":{"podSelector":{}}}`, "", "",
			`{"spec":{"ingress":[{"from":[{"podSelector":{},"ipBlock":{"cidr":"x","except":["y"]}}]}]}}`, 422,
			[]string{`spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
				`spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer`}, ""},
		{"other ranges", "/apis/networking.k8s.io/v1/servicecidrs", `{"metadata":{"name":"u15"},"spec":{"cidrs":["10.77.0.0/16"]}}`, "", "",
			`{"spec":{"cidrs":["10.78.0.0/16"]}}`, 422, []string{`spec.cidrs[0]: Invalid value: "10.78.0.0/16": field is immutable`}, ""},
		{"another range, and one more", "/apis/networking.k8s.io/v1/servicecidrs", `{"metadata":{"name":"u16"},"spec":{"cidrs":["10.77.0.0/16"]}}`, "", "",
			`{"spec":{"cidrs":["10.78.0.0/16","x"]}}`, 422, []string{`spec.cidrs[0]: Invalid value: "10.78.0.0/16": field is immutable`,
				`spec.cidrs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`}, ""},
		{"three ranges", "/apis/networking.k8s.io/v1/servicecidrs", `{"metadata":{"name":"u17"},"spec":{"cidrs":["10.77.0.0/16"]}}`, "", "",
			`{"spec":{"cidrs":["10.77.0.0/16","x","y"]}}`, 422, []string{`spec.cidrs: Invalid value: ["10.77.0.0/16","x","y"]: field is immutable`}, ""},
		{"another handler", "/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"u18"},"handler":"h"}`, "", "", `{"handler":"i"}`, 422,
			[]string{`handler: Invalid value: null: field is immutable`}, ""},
		{"another handler, of a long name", "/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"u19"},"handler":"h"}`, "", "",
			`{"handler":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii"}`, 422,
			[]string{`handler: Invalid value: "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii": must be no more than 63 characters`,
				`handler: Invalid value: null: field is immutable`}, ""},
		{"what is tolerated twice", "/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"u20"},"handler":"h"}`, "", "",
			`{"scheduling":{"tolerations":[{"key":"a","effect":"NoExecute"},{"key":"a","effect":"NoExecute","tolerationSeconds":1},{"operator":"Exists","value":"v"}]}}`,
			422, []string{`scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"","Value":"","Effect":"NoExecute","TolerationSeconds":1}`,
				"scheduling.tolerations[2].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"}, ""},
		{"two budgets", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
			`{"metadata":{"name":"u21"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}}`, "", "", `{"spec":{"maxUnavailable":1}}`, 422,
			[]string{`spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set`}, ""},
		{"a selector that is none", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"u22"},"rules":[]}`, "", "",
			`{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"_"}}]}}`, 422,
			[]string{`aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: "_": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`, `aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.`}, ""},
		{"health that is not told of", "/apis/storage.k8s.io/v1/csinodes",
			`{"metadata":{"name":"u23"},"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":[]}]}}`, "/status", "",
			`{"metadata":{"ownerReferences":[{"apiVersion":"/a/b","kind":"K","name":"n","uid":"u"}]},"status":{"storageHealth":[{"name":"d"}]}}`, 200, nil,
			`"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":null}]},"status":{}`},
		{"another node", "/apis/storage.k8s.io/v1/csinodes",
			`{"metadata":{"name":"u24"},"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":["k"],"allocatable":{"count":1}}]}}`, "", "",
			`{"spec":{"drivers":[{"name":"d","nodeID":"m","topologyKeys":["k"],"allocatable":{"count":2}}]}}`, 422,
			[]string{`spec.drivers: Invalid value: {"Name":"d","NodeID":"m","TopologyKeys":["k"],"Allocatable":null}: field is immutable`}, ""},
		{"another driver, of no name", "/apis/storage.k8s.io/v1/volumeattributesclasses", `{"metadata":{"name":"u25"},"driverName":"d","parameters":{"a":"b"}}`, "",
			"", `{"driverName":""}`, 422, []string{`driverName: Forbidden: updates to driverName are forbidden.`, `driverName: Required value`}, ""},
		{"an attachment by another driver", "/apis/storage.k8s.io/v1/volumeattachments",
			`{"metadata":{"name":"u26"},"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"p"}}}`, "", "", `{"spec":{"attacher":"_"}}`, 422,
			[]string{`spec.attacher: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec: Invalid value: null: field is immutable`}, ""},
		{"an error of less than no code", "/apis/storage.k8s.io/v1/volumeattachments",
			`{"metadata":{"name":"u27"},"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"p"}}}`, "/status", "",
			`{"status":{"attachError":{"errorCode":-1}}}`, 422, []string{`status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive`},
			""},
		{"another wish", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u28"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "", "",
			`{"spec":{"devices":{"requests":[{"name":"A","exactly":{"deviceClassName":"_"}}]}}}`, 422, []string{`spec: Invalid value: null: field is immutable`}, ""},
		{"a template of finalizers", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", `{"metadata":{"name":"u29"},"spec":{"spec":{}}}`, "", "",
			`{"spec":{"metadata":{"finalizers":[]}}}`, 422, []string{`spec.metadata.finalizers: Forbidden: cannot be set`}, ""},
		{"devices that were not given", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u30"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "/status", "",
			`{"status":{"devices":[{"driver":"_","pool":"A/b","device":"c.d","shareID":"x","conditions":[],"data":[1],"networkData":{"interfaceName":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii","ips":["x","x"]}}]}}`, 422, []string{`status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object`, `status.devices[0].device: Invalid value: "c.d": must not contain dots`, `status.devices[0].driver: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes`, `status.devices[0].networkData.ips[0]: Invalid value: "x": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`, `status.devices[0].networkData.ips[1]: Duplicate value: "x"`, `status.devices[0].networkData.ips[1]: Invalid value: "x": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`, `status.devices[0].pool: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `status.devices[0].shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format`, `status.devices[0]: Invalid value: {"Driver":"_","Pool":"A/b","Device":"c.d","ShareID":"x"}: must be an allocated device in the claim`}, ""},
		{"an allocation of what nobody asked for", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u31"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "/status", "",
			`{"status":{"allocation":{"devices":{"results":[{"request":"a/b/c","driver":"_","pool":"A//b","device":"","shareID":"x","bindingConditions":["a","a"],"bindingFailureConditions":["a"],"tolerations":[{"operator":"Exists","value":"v"}]}],"config":[{"source":"x","requests":["q"]}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"k","operator":"Gt"}]}]}}}}`, 422, []string{`status.allocation.devices.config[0].opaque: Required value`, `status.allocation.devices.config[0].requests[0]: Invalid value: "q": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`, `status.allocation.devices.config[0].source: Unsupported value: "x": supported values: "FromClaim", "FromClass"`, `status.allocation.devices.results[0].bindingConditions[1]: Duplicate value: "a"`, `status.allocation.devices.results[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions`, `status.allocation.devices.results[0].device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, `status.allocation.devices.results[0].driver: Invalid value: "_": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `status.allocation.devices.results[0].pool: Invalid value: "A": segment 0: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `status.allocation.devices.results[0].pool: Invalid value: "A//b": segment 1: must not be empty`, `status.allocation.devices.results[0].request: Invalid value: "a/b/c": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`, `status.allocation.devices.results[0].shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format`, "status.allocation.devices.results[0].tolerations[0].value: Invalid value: \"v\": must be empty for operator `Exists`", `status.allocation.nodeSelector.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "k": not a valid field selector key`, `status.allocation.nodeSelector.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Gt": not a valid selector operator`}, ""},
		{"a device of administrators", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u32"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "/status", "",
			`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"a.b","pool":"p","device":"d","adminAccess":true}]}}}}`, 422,
			[]string{"status.allocation.devices.results[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` " +
				"label on the containing namespace"}, ""},
		{"another allocation", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u33"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "/status",
			`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"a.b","pool":"p","device":"d"}]}}}}`,
			`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"a.b","pool":"p","device":"e"}]}}}}`, 422,
			[]string{`status.allocation: Invalid value: null: field cannot be modified once set`}, ""},
		{"a device that is given back", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u34"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "/status",
			`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"a.b","pool":"p","device":"d"}]}},"devices":[{"driver":"a.b","pool":"p","device":"d","conditions":[]}]}}`, `{"status":{"allocation":null}}`, 200, nil, `"status":{}`},
		{"what a node need not do", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
			`{"metadata":{"name":"u35"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "/status", "",
			`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"a.b","pool":"p","device":"d","skipNodeOperations":["x"],"tolerations":[{"key":"k"}]}]}}}}`, 200, nil, `"results":[{"request":"r","driver":"a.b","pool":"p","device":"d","tolerations":[{"key":"k","operator":"Equal"}]}]`},
		{"counters of no name", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"u36"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`, "", "",
			`{"spec":{"sharedCounters":[{"name":"A","counters":{"B":{"value":"1"}}},{"name":"A"}]}}`, 422,
			[]string{`spec.sharedCounters[0].counters: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, `spec.sharedCounters[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, `spec.sharedCounters[1].counters: Required value`, `spec.sharedCounters[1].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, `spec.sharedCounters[1]: Duplicate value: {"name":"A"}`}, ""},
		{"devices beside counters", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"u37"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`, "", "",
			`{"spec":{"sharedCounters":[{"name":"a","counters":{"b":{"value":"1"}}}],"devices":[{"name":"d","consumesCounters":[{"counterSet":"","counters":{}}],"bindingConditions":["a"]}]}}`, 422, []string{`spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions`, `spec.devices[0].consumesCounters[0].counterSet: Required value`, `spec.devices[0].consumesCounters[0].counters: Required value`, "spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed"}, ""},
		{"nodes that are none", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"u38"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`, "", "",
			`{"spec":{"nodeName":null,"perDeviceNodeSelection":true,"devices":[{"name":"d","nodeName":"_","allNodes":true},{"name":"e","nodeName":""},{"name":"f","nodeSelector":{"nodeSelectorTerms":[]}}]}}`, 422, []string{`spec.devices[0].nodeName: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, "spec.devices[0]: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec", `spec.devices[1].nodeName: Invalid value: "": must not be empty`, "spec.devices[1]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec", `spec.devices[2].nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term`, `spec.nodeName: Invalid value: null: field is immutable`}, ""},
		{"attributes of two slashes, and of none", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"u39"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`, "", "",
			`{"spec":{"devices":[{"name":"d","attributes":{"a/b/c":{"int":1},"/a":{"int":1},"a/":{"int":1},"v":{"version":"99999999999999999999.0.0","string":"x"}}}]}}`,
			422, []string{`spec.devices[0].attributes: Invalid value: "": the domain must not be empty`,
				`spec.devices[0].attributes: Invalid value: "": the name must not be empty`,
				"spec.devices[0].attributes[v]: Invalid value: \"{string, version}\": must specify exactly one of: `int`, `bool`, `string`, `version`, `ints`, " +
					"`bools`, `strings`, `versions`"}, ""},
		{"parts that can't be had", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"u40"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`, "", "",
			`{"spec":{"devices":[{"name":"d","allowMultipleAllocations":true,"capacity":{"a":{"value":"10","requestPolicy":{"default":"4","validValues":["3","2","20","20"]}},"b":{"value":"10","requestPolicy":{"default":"1","validRange":{"min":"2","max":"20","step":"5"}}},"c":{"value":"10","requestPolicy":{"default":"0.5","validRange":{"min":"0.25","step":"0.0001"}}},"d":{"value":"10","requestPolicy":{"default":"1","validRange":{"min":"-1","step":"1"}}},"e":{"value":"10","requestPolicy":{"default":"1","validRange":{"min":"1","step":"0"}}},"f":{"value":"10","requestPolicy":{"default":"2","validRange":{"min":"1","max":"9","step":"3"}}},"g":{"value":"10","requestPolicy":{"default":"1.2","validValues":["1.2","1.7"]}}}}]}}`, 422, []string{`spec.devices[0].capacity[a].requestPolicy.validValues: Invalid value: "4": default value is not valid according to the requestPolicy`, `spec.devices[0].capacity[a].requestPolicy.validValues[1]: Invalid value: "2": values must be sorted in ascending order`, `spec.devices[0].capacity[a].requestPolicy.validValues[2]: Invalid value: "20": option is larger than capacity value: 10`, `spec.devices[0].capacity[a].requestPolicy.validValues[3]: Duplicate value: "20"`, `spec.devices[0].capacity[a].requestPolicy.validValues[3]: Invalid value: "20": option is larger than capacity value: 10`, `spec.devices[0].capacity[b].requestPolicy.validRange.default: Invalid value: "1": default is less than min: 2`, `spec.devices[0].capacity[b].requestPolicy.validRange.max: Invalid value: "20": max is larger than capacity value: 10`, `spec.devices[0].capacity[b].requestPolicy.validRange.step: Invalid value: "1": value is not a multiple of a given step (5) from (2)`, `spec.devices[0].capacity[b].requestPolicy.validRange.step: Invalid value: "20": value is not a multiple of a given step (5) from (2)`, `spec.devices[0].capacity[d].requestPolicy.validRange.min: Invalid value: "-1": must be greater than or equal to 0`, `spec.devices[0].capacity[e].requestPolicy.validRange.step: Invalid value: "0": must be greater than zero`, `spec.devices[0].capacity[f].requestPolicy.validRange.step: Invalid value: "2": value is not a multiple of a given step (3) from (1)`, `spec.devices[0].capacity[f].requestPolicy.validRange.step: Invalid value: "9": value is not a multiple of a given step (3) from (1)`, `spec.devices[0].capacity[g].requestPolicy.validValues[1]: Duplicate value: "2"`}, ""},
		{"what a slice can't have yet", "/apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"u41"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`, "", "",
			`{"spec":{"partitionTypeAttribute":"x","skipNodeOperations":["x"],"devices":[{"name":"d","nodeAllocatableResources":{"x":{}},"consumesCounters":[{"counterSet":"s","counters":{"c":{"value":"1"}},"compatibilityGroups":["_"]}]}]}}`, 200, nil, `"devices":[{"name":"d","consumesCounters":[{"counterSet":"s","counters":{"c":{"value":"1"}}}]}]}`},
		{"an extended name", "/apis/resource.k8s.io/v1/deviceclasses", `{"metadata":{"name":"u42"},"spec":{}}`, "", "",
			`{"spec":{"extendedResourceName":"requests.a","config":[{"opaque":{"driver":"_","parameters":null}}]}}`, 422,
			[]string{`spec.config[0].opaque.driver: Invalid value: "_": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, `spec.config[0].opaque.parameters: Required value`, `spec.extendedResourceName: Invalid value: "requests.a": a name must be a domain-prefixed path, such as 'example.com/my-prop'`, `spec.extendedResourceName: Invalid value: "requests.a": must not have "requests." prefix`}, ""},
	} {
		var made struct{ Metadata metav1.ObjectMeta }
		answer, text := c.Ask(http.MethodPost, test.path, http.Header{"Content-Type": {"application/json"}}, []byte(test.object))
		c.Must(json.Unmarshal(text, &made))
		if answer.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s", test.name, text)
			continue
		}
		path := test.path + "/" + made.Metadata.Name
		if test.before != "" {
			if answer, text := c.Ask(http.MethodPatch, path+test.subresource, merge, []byte(test.before)); answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", test.name, text)
			}
		}
		answer, text = c.Ask(http.MethodPatch, path+test.subresource+"?dryRun=All", merge, []byte(test.patch))
		if causes := causesOf(c, text); answer.StatusCode != test.code || !slices.Equal(causes, test.causes) {
			t.Errorf("%s: %d %q\n want %d %q", test.name, answer.StatusCode, causes, test.code, test.causes)
		}
		if !bytes.Contains(text, []byte(test.holds)) {
			t.Errorf("%s: %s\n lacks %s", test.name, text, test.holds)
		}
		c.Ask(http.MethodDelete, path, nil, nil)
	}
}

// causesOf are the causes of a Status, sorted.
func causesOf(c *cluster, text []byte) []string {
	var status struct{ Details *metav1.StatusDetails }
	c.Must(json.Unmarshal(text, &status))
	var causes []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			causes = append(causes, cause.Field+": "+cause.Message)
		}
	}
	slices.Sort(causes)
	return causes
}
