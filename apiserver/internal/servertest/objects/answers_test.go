package objects

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAnswers: answers have everything that clients may look for, in upstream's
// words. The requests build on each other.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := start(t)
	const (
		core, apps = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
		access     = "/apis/authorization.k8s.io/v1"
		evict      = core + "/pods/web/eviction?dryRun=All"
	)
	aPod := `{"metadata":{"name":"web"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}],"serviceAccountName":"web"}}`
	anEvent := `{"metadata":{"name":"b"},"regarding":{"namespace":"default"},"eventTime":"2030-01-01T00:00:00.000000Z","reportingController":"x.io/y",` +
		`"reportingInstance":"i","action":"A","reason":"R","type":"Normal"}`
	for _, test := range []struct {
		name, method, path, body string
		code                     int
		says                     []string // parts of the answer; those that begin with "-" must be missing
	}{
		{"an account", "POST", core + "/serviceaccounts", `{"metadata":{"name":"web"}}`, 201, nil},
		{"a pod", "POST", core + "/pods", aPod, 201, nil},
		{"an account's secrets", "POST", core + "/serviceaccounts", `{"metadata":{"name":"s"},"secrets":[{"name":"a","namespace":"x"}]}`, 201,
			[]string{`"secrets":[{"name":"a"}]`}},
		{"a secret without a name", "POST", core + "/pods",
			`{"metadata":{"name":"pull"},"spec":{"containers":[{"name":"c","image":"i"}],"serviceAccountName":"web","imagePullSecrets":[{}]}}`, 201,
			[]string{`"f:imagePullSecrets":{".":{},"k:{\"name\":\"\"}":{}}`}},
		{"a change that is at fault", "PUT", core + "/pods/pull",
			`{"metadata":{"name":"pull"},"spec":{"containers":[{"name":"c","image":"i"}],"serviceAccountName":"web","tolerations":[{"operator":"x"}]}}`, 422,
			[]string{"spec.tolerations[0].operator: Unsupported value: "}},
		{"no bundle's name", "POST", core + "/pods",
			`{"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i"}],"serviceAccountName":"web","volumes":[{"name":"v","projected":{"sources":[` +
				`{"clusterTrustBundle":{"name":"A_","path":"a"}},{"clusterTrustBundle":{"name":"x.io:y:z","path":"b"}},{"clusterTrustBundle":{"name":"","path":"c"}},{"clusterTrustBundle":{"name":"x","path":"d","labelSelector":{}}},` +
				`{"clusterTrustBundle":{"signerName":"bad","path":"e"}},{"clusterTrustBundle":{"name":"x","signerName":"x.io/y","path":"f"}},{"clusterTrustBundle":{"path":"g"}}]}}]}}`, 422,
			[]string{`sources[0].clusterTrustBundle.name: Invalid value: \"A_\": not a valid clustertrustbundlename: `, "-sources[1]",
				"sources[2].clusterTrustBundle.name: Required value: must be a valid object name",
				`sources[3].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified`,
				`sources[4].clusterTrustBundle.signerName: Invalid value: \"bad\": must be a fully qualified domain and path`,
				"only one of name and signerName may be used", "sources[6].clusterTrustBundle: Required value: either name or signerName must be specified"}},
		{"pods that have names of their own", "POST", apps + "/statefulsets",
			`{"metadata":{"name":"s"},"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"subdomain":"a.b","containers":[{"name":"c","image":"i"}]}}}}`, 201, nil},
		{"a token", "POST", core + "/serviceaccounts/web/token", `{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{}}`, 201,
			[]string{`"uid":"`, `"creationTimestamp":"20`, "-2020-01-01", `"f:expirationSeconds":{}`, `"subresource":"token"`}},
		{"a token of an account of that name", "POST", core + "/serviceaccounts/web/token", `{"metadata":{"uid":"x"},"spec":{"expirationSeconds":1}}`, 409,
			[]string{`TokenRequest.authentication.k8s.io \"web\": the UID in the token request (x) does not match the UID of the service account (`}},
		{"a connection for a test", "GET", core + "/pods/web/exec?command=rm&stdout=true&dryRun=All", "", 400, []string{"dryRun is not supported"}},
		{"a port that is no number", "GET", core + "/pods/none/portforward?ports=x", "", 400,
			[]string{`cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax`}},
		{"ports in one", "GET", core + "/pods/none/portforward?ports=80,443", "", 404, []string{`pods \"none\" not found`}},
		{"a quota without end", "POST", core + "/resourcequotas", `{"metadata":{"name":"q"},"spec":{"hard":{"pods":"1e999999999"},"hard":{}}}`, 400,
			[]string{`quantity \"1e999999999\" is out of range`}},
		{"digits that are no quantity", "POST", core + "/configmaps", `{"metadata":{"name":"digits"},"data":{"limits":"1e999999999"}}`, 201, nil},
		{"a port that is too high", "GET", core + "/pods/web/portforward?ports=80&ports=65536", "", 400, []string{"value out of range"}},
		{"a pod of no node", "GET", core + "/pods/web/attach?stdout=true", "", 404, []string{`pods \"n\" not found`, `"kind":"pods"`}},
		{"a log of no node", "GET", core + "/pods/web/log", "", 404, []string{`pods \"n\" not found`}},

		{"another's eviction", "POST", evict, `{"metadata":{"name":"web","namespace":"kube-system"}}`, 400,
			[]string{"the namespace of the provided object does not match the namespace sent on the request"}},
		{"nobody's eviction", "POST", evict, `{}`, 400, []string{"name in URL does not match name in Eviction object"}},
		{"an eviction of old", "POST", evict, `{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"web"}}`, 201, []string{`"status":"Success"`}},
		{"an eviction of no time", "POST", evict, `{"apiVersion":"policy/v2","kind":"Eviction","metadata":{"name":"web"}}`, 400,
			[]string{"does not match the expected API version"}},
		{"half a dry run", "POST", evict, `{"metadata":{"name":"web"},"deleteOptions":{"dryRun":["x"]}}`, 400,
			[]string{"Non-matching dry-run options in request and content: [All] and [x]"}},
		{"a policy that is none", "POST", evict, `{"metadata":{"name":"web"},"deleteOptions":{"propagationPolicy":"x"}}`, 422,
			[]string{`DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value`}},
		{"another's pod", "POST", evict, `{"metadata":{"name":"web"},"deleteOptions":{"preconditions":{"uid":"x"}}}`, 409,
			[]string{`Operation cannot be fulfilled on Pod \"web\": the UID in the precondition (x) does not match the UID in record`}},
		{"a pod of before", "POST", evict, `{"metadata":{"name":"web"},"deleteOptions":{"preconditions":{"resourceVersion":"1"}}}`, 409,
			[]string{"the ResourceVersion in the precondition (1) does not match"}},
		{"a node without a name", "POST", core + "/pods/web/binding", `{"metadata":{"name":"web"},"target":{"name":"a b"}}`, 422,
			[]string{`target.name: Invalid value: \"a b\"`}},

		{"a pod to be bound", "POST", core + "/pods", `{"metadata":{"name":"unbound"},"spec":{"containers":[{"name":"c","image":"i"}],"serviceAccountName":"web"}}`,
			201, nil},
		{"a binding", "POST", core + "/pods/unbound/binding", `{"metadata":{"name":"unbound"},"target":{"name":"n"}}`, 201, nil},
		{"a pod that is bound", "GET", core + "/pods/unbound", "", 200, []string{`{"type":"PodScheduled","status":"True"`, "-observedGeneration"}},
		{"a status", "PUT", core + "/pods/unbound/status",
			`{"metadata":{"name":"unbound"},"status":{"phase":"Running","observedGeneration":1,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}`,
			200, nil},
		{"a status by who is older", "PUT", core + "/pods/unbound/status",
			`{"metadata":{"name":"unbound"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`, 200,
			[]string{`"status":{"observedGeneration":1,`, `{"type":"Ready","observedGeneration":1,"status":"False"`}},
		{"a claim of nothing", "POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", `{"metadata":{"name":"n"},"spec":{"devices":{"requests":[]}}}`,
			201, []string{`"requests":null`}},
		{"another's binding", "POST", core + "/pods/web/binding", `{"metadata":{"name":"web","namespace":"kube-system"},"target":{"name":"n"}}`, 400,
			[]string{"the namespace of the provided object does not match the namespace sent on the request"}},
		{"more than containers", "PUT", core + "/pods/web/ephemeralcontainers",
			strings.Replace(aPod, `"name":"web"`,
				`"name":"web","labels":{"sneaked":"1"},"annotations":{"sneaked":"2"},"finalizers":["sneaked/3"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"sneaked","uid":"4"}]`, 1), 200, []string{`-"sneaked":`, `-"finalizers":`, `-"name":"sneaked"`}},
		{"more than resources", "PUT", core + "/pods/web/resize", strings.Replace(aPod, `"name":"web"`,
			`"name":"web","labels":{"sneaked":"1"},"finalizers":["sneaked/3"]`, 1), 200, []string{`-"sneaked":`, `-"finalizers":`}},

		{"a pod that is deleted", "DELETE", core + "/pods/web?gracePeriodSeconds=0", "", 200,
			[]string{`"kind":"Pod"`, `"deletionGracePeriodSeconds":0`, `"deletionTimestamp"`}},
		{"an account that is deleted", "DELETE", core + "/serviceaccounts/web", "", 200, []string{`"kind":"ServiceAccount"`, "-deletionTimestamp"}},
		{"a configuration", "POST", core + "/configmaps", `{"metadata":{"name":"a"}}`, 201, nil},
		{"another age", "PUT", core + "/configmaps/a", `{"metadata":{"name":"a","creationTimestamp":"2020-01-01T00:00:00Z"}}`, 200, []string{"-2020-01-01"}},
		{"another beginning", "PUT", core + "/configmaps/a", `{"metadata":{"name":"a","generateName":"a.B"}}`, 422,
			[]string{`metadata.generateName: Invalid value: \"a.B\": a lowercase RFC 1123 subdomain`}},
		{"a beginning of none", "PUT", core + "/configmaps/a", `{"metadata":{"name":"a","generateName":"a/"}}`, 422,
			[]string{`[metadata.generateName: Invalid value: \"a/\": may not contain '/', metadata.generateName: Invalid value: \"a/\": a lowercase`}},
		{"a version of what is tried", "POST", core + "/configmaps?dryRun=All", `{"metadata":{"name":"tried","resourceVersion":"5"}}`, 201,
			[]string{`"resourceVersion":"5"`}},
		{"another link", "PUT", core + "/configmaps/a", `{"metadata":{"name":"a","selfLink":"/x"}}`, 200, []string{"-selfLink"}},
		{"a name that is taken and one to be made", "POST", core + "/configmaps", `{"metadata":{"name":"a","generateName":"b-"}}`, 409,
			[]string{"already exists, the server was not able to generate a unique name for the object", `"retryAfterSeconds":1`}},
		{"a range without a name", "POST", core + "/limitranges", `{"spec":{"limits":[{"type":"Pod","max":{"cpu":"9"}}]}}`, 201, []string{`"name":"`}},
		{"what is held", "POST", core + "/configmaps", `{"metadata":{"name":"held","labels":{"held":"1"},"finalizers":["a.b/c"]}}`, 201, nil},
		{"a collection that was not there yet", "DELETE", core + "/configmaps?labelSelector=held&resourceVersion=1", "", 200, []string{`"items":[]`}},
		{"a collection as it was", "DELETE", core + "/configmaps?labelSelector=held", "", 200, []string{`"name":"held"`, "-deletionTimestamp"}},
		{"a collection as it is", "GET", core + "/configmaps?labelSelector=held", "", 200, []string{`"name":"held"`, "deletionTimestamp"}},
		{"a configuration that is deleted", "DELETE", core + "/configmaps/a", "", 200,
			[]string{`"kind":"Status"`, `"details":{"name":"a","kind":"configmaps","uid"`}},
		{"an event", "POST", core + "/events", `{"metadata":{"name":"a"},"involvedObject":{"namespace":"default"}}`, 201, nil},
		{"an event on which nothing depends", "DELETE", core + "/events/a?propagationPolicy=Foreground", "", 200, []string{`"status":"Success"`}},
		{"an event that is not there", "GET", "/apis/events.k8s.io/v1/namespaces/default/events/a", "", 404,
			[]string{`events.events.k8s.io \"a\" not found`, `"group":"events.k8s.io"`}},
		{"an event of the other group", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", anEvent, 201, nil},
		{"an event that is there", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", anEvent, 409,
			[]string{`"events.events.k8s.io \"b\" already exists"`, `"group":"events.k8s.io"`}},
		{"another's event", "PUT", "/apis/events.k8s.io/v1/namespaces/default/events/b", strings.Replace(anEvent, `"b"`, `"b","resourceVersion":"1"`, 1), 409,
			[]string{`on events.events.k8s.io \"b\": the object has been modified`, `"group":"events.k8s.io"`}},
		{"an event of no name", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", strings.Replace(anEvent, `"name":"b"`, `"generateName":"A_b!"`, 1), 422,
			[]string{`metadata.generateName: Invalid value: \"A_b!\"`}},
		{"a method that is none", "PUT", core + "/configmaps", "", 405, []string{"the server does not allow this method on the requested resource", `"details":{}`}},
		{"another's namespace", "PUT", "/api/v1/namespaces/default", `{"metadata":{"name":"default","uid":"x"}}`, 409,
			[]string{"Code: 4, Key: /registry/namespaces/default, ResourceVersion: 0"}},
		{"a role that is gone", "PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/gone", `{"metadata":{"name":"gone","uid":"x"}}`, 409,
			[]string{"Code: 4, Key: /registry/clusterroles/gone, ResourceVersion: 0"}},
		{"a lease that is gone", "PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/gone?dryRun=All",
			`{"metadata":{"name":"gone","resourceVersion":"1"}}`, 201, []string{`-"resourceVersion"`}},
		{"a lease that is made anew", "PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/gone", `{"metadata":{"name":"gone","resourceVersion":"99999"}}`,
			201, []string{`"resourceVersion":"`}},
		{"a lease of no version", "PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/none", `{"metadata":{"name":"none","resourceVersion":"x"}}`, 500,
			[]string{`"message":"strconv.ParseUint: parsing \"x\": invalid syntax","code":500`}},
		{"who asks", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"metadata":{"name":"x"}}`, 201,
			[]string{`"metadata":{"creationTimestamp":"20`, `-"name":"x"`}},
		{"a role of nothing", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"none"},"rules":[]}`, 201,
			[]string{`"rules":null`, `"f:rules":{}`}},
		{"a role that says nothing", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"silent"}}`, 201,
			[]string{`"rules":null`, `-"f:rules"`}},
		{"a slice of nothing", "POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
			`{"metadata":{"name":"none"},"addressType":"IPv4","endpoints":[],"ports":[]}`, 201,
			[]string{`"endpoints":null`, `"ports":null`, `"f:endpoints":{}`, `"f:ports":{}`}},
		{"a limit of nothing", "POST", core + "/limitranges", `{"metadata":{"name":"none"},"spec":{"limits":[]}}`, 201, []string{`"limits":null`, `"f:limits":{}`}},
		{"a node without drivers", "POST", "/apis/storage.k8s.io/v1/csinodes", `{"metadata":{"name":"none"},"spec":{"drivers":[]}}`, 201,
			[]string{`"drivers":null`, `"f:spec"`}},
		{"an address in eights", "POST", core + "/services", `{"metadata":{"name":"s"},"spec":{"clusterIP":"010.0.0.5","ports":[{"port":80}]}}`, 422,
			[]string{`spec.clusterIPs[0]: Invalid value: \"010.0.0.5\": must not have leading 0s`}},
		{"conditions of no type", "PUT", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt/status",
			`{"metadata":{"name":"exempt"},"status":{"conditions":[{"status":"True"},{"status":"True"}]}}`, 422,
			[]string{`[status.conditions[0].type: Required value, status.conditions[1].type: Duplicate value: \"\", status.conditions[1].type: Required value]`}},
		{"a namespace", "POST", "/api/v1/namespaces", `{"metadata":{"name":"ending"}}`, 201, nil},
		{"the end of a namespace", "DELETE", "/api/v1/namespaces/ending", "", 200, []string{`"deletionTimestamp":"`, "-deletionGracePeriodSeconds"}},
		{"a definition", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			`{"metadata":{"name":"as.n.io","finalizers":["n.io/stays"]},"spec":{"group":"n.io","scope":"Namespaced","names":{"plural":"as","kind":"A"},` +
				`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, 201, nil},
		{"the end of a definition", "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.n.io", "", 200,
			[]string{`"deletionTimestamp":"`, `"generation":1`, "-deletionGracePeriodSeconds"}},
		{"all paths", "GET", "/", "", 200, []string{`"/apis/"`, `"/healthz/poststarthook/crd-informer-synced"`, `"/readyz/etcd-readiness"`}},
		{"a check", "GET", "/healthz/poststarthook/bootstrap-controller", "", 200, []string{"ok"}},
		{"checks of readiness", "GET", "/readyz?verbose", "", 200, []string{"[+]log ok", "[+]poststarthook/scheduling/bootstrap-system-priority-classes ok",
			"[+]autoregister-completion ok"}},
		{"checks of life", "GET", "/livez?verbose", "", 200, []string{"[+]etcd ok", "[+]poststarthook/bootstrap-controller ok", "[+]autoregister-completion ok",
			"-etcd-readiness"}},
		{"a document that is put", "PUT", "/version", "", 405, []string{"the server does not allow this method on the requested resource"}},
		{"a version by its head", "HEAD", "/version", "", 405, nil},
		{"a verbosity", "GET", "/debug/flags/v", "", 406, []string{"unsupported http method"}},
		{"profiles by their head", "HEAD", "/debug/pprof/", "", 200, nil},
		{"a job without a name", "POST", "/apis/batch/v1/namespaces/default/jobs",
			`{"metadata":{"generateName":"job-"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, 201,
			[]string{`"job-name":"job-`, `"batch.kubernetes.io/job-name":"job-`}},
		{"a map that is said to be deleted", "POST", core + "/configmaps?dryRun=All",
			`{"metadata":{"name":"made","uid":"u","deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":5}}`, 201,
			[]string{`-"f:deletionTimestamp"`, "-2020-01-01", `-"uid":"u"`}},
		{"health by its head", "HEAD", "/healthz", "", 200, nil},
		{"no path", "GET", "/nope", "", 404, []string{"404 page not found\n"}},
		{"no group", "GET", "/apis/nope.io/v1/things", "", 404, []string{"404 page not found\n"}},
		{"no version of a group", "GET", "/apis/apps/v9", "", 404, []string{`"reason":"NotFound"`}},
		{"health with a slash", "GET", "/healthz/", "", 404, []string{"404 page not found\n"}},
		{"a version", "GET", "/version/", "", 200, []string{`"emulationMinor": "37"`, `"minCompatibilityMinor": "36"`}},
		{"groups by their head", "HEAD", "/apis", "", 200, nil},
		{"what the server made by itself", "GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", "", 200,
			[]string{`"manager":"kube-apiserver","operation":"Update"`, `"f:value":{}`}},
		{"a state of long ago", "GET", core + "/configmaps?limit=1&resourceVersion=0", "", 200, []string{"-\"continue\""}},

		{"an end that is read", "GET", "/api/v1/namespaces/default/finalize", "", 405, nil},
		{"an end without a domain", "PUT", "/api/v1/namespaces/default/finalize", `{"metadata":{"name":"default"},"spec":{"finalizers":["abc"]}}`, 422,
			[]string{`spec.finalizers[0]: Invalid value: \"abc\": name is neither a standard finalizer name nor is it fully qualified`}},
		{"a deployment", "POST", apps + "/deployments",
			`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, 201, []string{`"generation":1`}},
		{"a status with a note", "PUT", apps + "/deployments/d/status", `{"metadata":{"name":"d","annotations":{"n":"1"}}}`, 200,
			[]string{`"generation":1`, `"n":"1"`}},
		{"another's token", "POST", core + "/serviceaccounts/default/token", `{"metadata":{"name":"x"}}`, 422,
			[]string{`metadata.name: Invalid value: \"x\": must match the service account name if specified`}},

		{"no question", "POST", access + "/subjectaccessreviews", `{}`, 422,
			[]string{`.authorization.k8s.io \"\" is invalid: [spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: \"\": at least one of user or group must be specified]`}},
		{"a question of one's own", "POST", access + "/selfsubjectaccessreviews",
			`{"metadata":{"name":"x"},"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`, 422,
			[]string{`metadata: Invalid value: {\"name\":\"x\"}: must be empty`}},
		{"a question's managedFields", "POST", access + "/selfsubjectaccessreviews?fieldManager=me", `{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`,
			201, []string{`"manager":"me","operation":"Update"`, `"f:path":{}`}},
		{"a question of all rights", "POST", access + "/selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, 201, []string{`"spec":{}`, "-managedFields"}},
		{"a question of nowhere", "POST", access + "/namespaces/default/localsubjectaccessreviews", `{"spec":{"user":"u","resourceAttributes":{"verb":"get"}}}`, 422,
			[]string{`spec.resourceAttributes.namespace: Invalid value: \"\": must match metadata.namespace`}},
		{"a question of elsewhere", "POST", access + "/namespaces/default/localsubjectaccessreviews",
			`{"metadata":{"namespace":"x"},"spec":{"user":"u","resourceAttributes":{"verb":"get"}}}`, 400,
			[]string{"the namespace of the provided object does not match the namespace sent on the request"}},
		{"a question of a path in a namespace", "POST", access + "/namespaces/default/localsubjectaccessreviews",
			`{"spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}`, 422, []string{"disallowed on this kind of request"}},
		{"two ways to select", "POST", access + "/subjectaccessreviews",
			`{"spec":{"user":"u","resourceAttributes":{"verb":"get","fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"In"}]}}}}`, 422,
			[]string{"spec.resourceAttributes.fieldSelector.rawSelector", "spec.resourceAttributes.fieldSelector.requirements[0].values"}},
		{"no way to select", "POST", access + "/subjectaccessreviews", `{"spec":{"user":"u","resourceAttributes":{"verb":"get","labelSelector":{}}}}`, 422,
			[]string{"requirements or rawSelector is required"}},
		{"selectors that can't be read", "POST", access + "/subjectaccessreviews",
			`{"spec":{"user":"u","resourceAttributes":{"verb":"get","labelSelector":{"rawSelector":"a in (("},"fieldSelector":{"requirements":[{"key":"a","operator":"Foo"}]}}}}`, 201,
			[]string{"spec.resourceAttributes.fieldSelector ignored due to parse error", "spec.resourceAttributes.labelSelector ignored due to parse error"}},
		{"a field that is none", "POST", access + "/selfsubjectaccessreviews?fieldValidation=Strict", `{"spec":{"user":"u"}}`, 400,
			[]string{`strict decoding error: unknown field \"spec.user\"`}},
		{"a dry run that is none", "POST", access + "/subjectaccessreviews?dryRun=x", `{}`, 422,
			[]string{`CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value`}},
		{"another kind of question", "POST", access + "/subjectaccessreviews", `{"kind":"Pod","apiVersion":"v1"}`, 400,
			[]string{`Pod in version \"v1\" cannot be handled as a SubjectAccessReview`}},
		{"no namespace", "POST", access + "/selfsubjectrulesreviews", `{}`, 400, []string{"no namespace on request"}},
		{"no token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{}`, 400, []string{"token is required for TokenReview in authentication"}},
		{"a token that nobody knows", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"bad"}}`, 201,
			[]string{`"error":"invalid bearer token"`}},
		{"questions that are read", "GET", "/apis/authentication.k8s.io/v1/tokenreviews", "", 405, []string{`"details":{}`}},
	} {
		answer, text := c.Ask(test.method, test.path, http.Header{"Content-Type": {"application/json"}}, []byte(test.body))
		if answer.StatusCode != test.code {
			t.Errorf("%s: %d, want %d: %.400s", test.name, answer.StatusCode, test.code, text)
		}
		for _, part := range test.says {
			if part, none := strings.CutPrefix(part, "-"); strings.Contains(string(text), part) == none {
				t.Errorf("%s: %.600s\nhas %q: %v", test.name, text, part, none)
			}
		}
	}
	for media, want := range map[string]string{"application/yaml": "kind: Status\n", "application/vnd.kubernetes.protobuf": "k8s\x00"} {
		for path, code := range map[string]int{
			core + "/configmaps/none": 404, "/apis/apps/v1/nones": 404, core + "/configmaps/..": 400, "/api/v1/pods?timeout=x": 400,
			"/version": 406, "/.well-known/openid-configuration": 406, "/openid/v1/jwks": 406,
		} {
			answer, text := c.Ask(http.MethodGet, path, http.Header{"Accept": {media}}, nil)
			if answer.StatusCode != code || answer.Header.Get("Content-Type") != media || !strings.Contains(string(text), want) {
				t.Errorf("%s for who accepts %s: %d %s %q", path, media, answer.StatusCode, answer.Header.Get("Content-Type"), text)
			}
		}
	}
}

// TestUnknownFormatsAreWarnedOf: formats in a definition that are not checked
// are warned about once, when they are new.
func TestUnknownFormatsAreWarnedOf(t *testing.T) {
	t.Parallel()
	c := start(t)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	version := func(formats ...string) string {
		properties := []string{}
		for i, format := range formats {
			properties = append(properties, fmt.Sprintf(`"f%d":{"type":"string","format":%q}`, i, format))
		}
		return `"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{` + strings.Join(properties, ",") +
			`}}}}]`
	}
	for _, step := range []struct {
		method, path, media, body string
		warns                     []string
	}{
		{"POST", definitions, putIt, `{"metadata":{"name":"as.n.io"},"spec":{"group":"n.io","scope":"Namespaced","names":{"plural":"as","kind":"A"},` +
			version("foo", "date-time") + `}}`, []string{`299 - "unrecognized format \"foo\""`}},
		{"PATCH", definitions + "/as.n.io", merging, `{"metadata":{"labels":{"a":"b"}}}`, nil},
		{"PATCH", definitions + "/as.n.io", merging, `{"spec":{` + version("foo", "bar") + `}}`, []string{`299 - "unrecognized format \"bar\""`}},
	} {
		answer, text := c.Ask(step.method, step.path, http.Header{"Content-Type": {step.media}}, []byte(step.body))
		if answer.StatusCode >= 300 || !slices.Equal(answer.Header.Values("Warning"), step.warns) {
			t.Errorf("%s: %d %q, want %q: %s", step.method, answer.StatusCode, answer.Header.Values("Warning"), step.warns, text)
		}
	}
}

// TestKept: which answers may be cached, and by whom.
func TestKept(t *testing.T) {
	t.Parallel()
	c := start(t)
	const together = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, test := range []struct {
		path, accept, want string
		named              bool // by an ETag
	}{
		{"/apis", "", "no-cache, private", true},
		{"/apis/apps/v1", "", "no-cache, private", true},
		{"/apis", together, "public", true},
		{"/openapi/v3", "", "no-cache, private", true},
		{"/api/v1/pods", "", "no-cache, private", false},
		{"/api/v1/nope", "", "no-cache, private", false},
		{"/nope", "", "no-cache, private", false},
		{"/version", "", "no-cache, private", false},
		{"/flagz", "text/plain", "no-cache, private", false},
		{"/openid/v1/jwks", "", "public, max-age=3600", false},
		{"/.well-known/openid-configuration", "", "public, max-age=3600", false},
	} {
		answer, _ := c.Ask(http.MethodGet, test.path, http.Header{"Accept": {test.accept}}, nil)
		if got := answer.Header.Values("Cache-Control"); !slices.Equal(got, []string{test.want}) || answer.Header.Get("ETag") != "" != test.named {
			t.Errorf("%s as %q: %q, ETag %q", test.path, test.accept, got, answer.Header.Get("ETag"))
		}
	}
}
