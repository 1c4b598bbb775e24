package extensions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

func applies(expressions ...string) string {
	var out []string
	for _, e := range expressions {
		out = append(out, fmt.Sprintf("{patchType: ApplyConfiguration, applyConfiguration: {expression: %q}}", e))
	}
	return "mutations: [" + strings.Join(out, ", ") + "]"
}

func patchesBy(expression string) string {
	return fmt.Sprintf("mutations: [{patchType: JSONPatch, jsonPatch: {expression: %q}}]", expression)
}

// mutated are policies with their bindings, and the results: the answer's text
// (if it begins with a space, what the policy says), or the config map's data.
var mutated = map[string]struct{ spec, binding, want, data string }{
	"apply":   {applies("Object{data: {'b': '2'}}"), "", "", "a=1 b=2"},
	"replace": {applies("Object{data: {'a': '2'}}"), "", "", "a=2"},
	"typed": {applies("Object{data: Object.data{b: 2}}"), "",
		" error applying patch: failed to convert patch object to typed object: .data.b: expected string, got &value.valueUnstructured{Value:2}", ""},
	"undeclared": {applies("Object{foo: '2'}"), "", " error applying patch: failed to convert patch object to typed object: .foo: field not declared in schema",
		""},
	"misnamed": {applies("Object{metadata: Object.spec{name: 'b'}}"), "",
		" type mismatch: unexpected type name \"Object.spec\", expected \"Object.metadata\", which matches field name path from root Object type", ""},
	"atomic": {applies("Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 'x', name: 'y'}]}}"), "",
		" error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .metadata.ownerReferences[0]", ""},
	"namespace": {applies("Object{metadata: Object.metadata{namespace: 'other'}}"), "",
		"400 BadRequest the namespace of the provided object does not match the namespace sent on the request", ""},
	"error": {applies("Object{data: {'b': object.data.z}}"), "", " expression 'Object{data: {'b': object.data.z}}' resulted in error: no such key: z", ""},
	"ignored": {applies("Object{data: {'b': '2'}}", "Object{data: {'c': object.data.z}}", "Object{data: {'d': '4'}}") + "\nfailurePolicy: Ignore", "", "",
		"a=1 b=2 d=4"},
	"variables": {applies("Object{data: {'b': variables.v}}", "Object{data: {'a': 'n'}}", "Object{data: {'c': variables.v}}") +
		"\nvariables: [{name: v, expression: \"object.data.a + 'x'\"}]", "", "", "a=n b=1x c=nx"},
	"condition": {applies("Object{data: {'b': '2'}}") + "\nmatchConditions: [{name: c, expression: 'false'}]", "", "", "a=1"},
	"unknown": {applies("Object{data: {'b': '2'}}") + "\nmatchConditions: [{name: c, expression: \"object.data.z == ''\"}]", "",
		" expression 'object.data.z == ''' resulted in error: no such key: z", ""},
	"patch": {patchesBy("[JSONPatch{op: 'add', path: '/data/b', value: '3'}, JSONPatch{op: 'add', path: '/metadata/annotations', value: " +
		"Object.metadata.annotations{x: 'y'}}]"), "", "", "a=1 b=3"},
	"nothing": {patchesBy("has(object.data.z) ? [JSONPatch{op: 'remove', path: '/data/z'}] : []"), "", "", "a=1"},
	"escaped": {patchesBy("[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a~/b'), value: '3'}]"), "",
		`422 Invalid ConfigMap "c" is invalid: data[a~/b]: `, ""},
	"test": {patchesBy("[JSONPatch{op: 'test', path: '/data/a', value: '9'}, JSONPatch{op: 'add', path: '/data/b', value: '3'}]"), "", "", "a=1"},
	"missing": {patchesBy("[JSONPatch{op: 'remove', path: '/data/z'}]"), "",
		" JSON Patch: error in remove for path: '/data/z': Unable to remove nonexistent key: z: missing value", ""},
	"operation": {patchesBy("[JSONPatch{op: 'foo', path: '/data/a'}]"), "", " JSON Patch: Unexpected kind: foo", ""},
	"type": {patchesBy("[JSONPatch{op: 'add', path: '/data', value: '9'}]"), "",
		"500 InternalError Internal error occurred: json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string", ""},
	"strict": {patchesBy("[JSONPatch{op: 'add', path: '/no', value: '9'}]") + "\nfailurePolicy: Ignore", "",
		`500 InternalError Internal error occurred: strict decoding error: unknown field "no"`, ""},

	"param": {patchesBy("[JSONPatch{op: 'add', path: '/data/' + params.metadata.name, value: params.data.max}]") + mapParams,
		"paramRef: {selector: {matchLabels: {set: a}}, namespace: other, parameterNotFoundAction: Deny}", "", "a=1 p1=3"},
	"param-missing": {applies("Object{}") + mapParams, "paramRef: {name: p0, parameterNotFoundAction: Deny}",
		"403 Forbidden policy 'param-missing' with binding 'param-missing-b' denied request: failed to configure binding: no params found for policy binding with " +
			"`Deny` parameterNotFoundAction", ""},
	"param-unknown": {applies("Object{}") + "\nparamKind: {apiVersion: x.io/v1, kind: X}", "",
		`403 Forbidden policy "param-unknown" denied request: failed to configure policy: failed to find resource referenced by paramKind: 'x.io/v1, Kind=X'`, ""},
}

const mapParams = "\nparamKind: {apiVersion: v1, kind: ConfigMap}"

func TestMutatingPolicies(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.parameterMaps()
	for _, name := range slices.Sorted(maps.Keys(mutated)) {
		c.mutatingPolicy(name, mutated[name].spec, mutated[name].binding)
	}
	c.policiesCount(true)
	for name, want := range mutated {
		stored := &core.ConfigMap{}
		got, _ := c.told(core.ConfigMaps, "default", labelled("c", name), stored)
		if strings.HasPrefix(want.want, " ") {
			want.want = fmt.Sprintf(`403 Invalid policy '%s' with binding '%s-b' denied request:%s`, name, name, want.want)
		}
		if want.want == "" && got != "" || !strings.HasPrefix(got, want.want) {
			t.Errorf("%s:\n got: %.400s\nwant: %.400s", name, got, want.want)
		}
		if got != "" {
			continue
		}
		var data []string
		for _, key := range slices.Sorted(maps.Keys(stored.Data)) {
			data = append(data, key+"="+stored.Data[key])
		}
		if strings.Join(data, " ") != want.data {
			t.Errorf("%s: %v", name, data)
		}
		c.Must(c.Root().Resource(core.ConfigMaps, "default").Delete(t.Context(), "c", nil, nil))
	}
}

// TestMutatingPods: lists are merged by their keys; the result is defaulted and
// admitted by the built-in plugins.
func TestMutatingPods(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.mutatingPolicy("pods", applies(
		"Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'mesh', image: 'm', restartPolicy: 'Always'}]}}",
		"Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', env: [Object.spec.containers.env{name: 'X', value: 'y'}]}]}}"), "")
	c.mutatingPolicy("atomic",
		applies("Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}], containers: [Object.spec.containers{name: 'c', args: ['x']}]}}"), "")
	c.policiesCount(true)
	p := servertest.Pod("web")
	p.Labels = map[string]string{"hook": "pods"}
	stored := c.Created("default", p)
	added := stored.Spec.InitContainers
	if len(added) != 1 || added[0].TerminationMessagePolicy == "" || added[0].ImagePullPolicy == "" || len(added[0].VolumeMounts) != 1 {
		t.Errorf("the sidecar: %+v", added)
	}
	if containers := stored.Spec.Containers; len(containers) != 1 || containers[0].Image == "" ||
		!slices.Equal(containers[0].Env, []corev1.EnvVar{{Name: "X", Value: "y"}}) {
		t.Errorf("the container: %+v", containers)
	}
	p = servertest.Pod("other")
	p.Labels = map[string]string{"hook": "atomic"}
	if got, _ := c.told(core.Pods, "default", p, nil); !strings.HasSuffix(got, ".spec.containers[0].args, .spec.tolerations") {
		t.Errorf("a field that is replaced as a whole: %s", got)
	}
}

// TestPoliciesAreReinvoked: a policy that asks for it is run again after later
// ones changed the object.
func TestPoliciesAreReinvoked(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, again := range []string{"Never", "IfNeeded"} {
		match := fmt.Sprintf("\nreinvocationPolicy: %s\nmatchConstraints: {objectSelector: {matchLabels: {hook: %s}}, resourceRules: [{apiGroups: [''], "+
			"apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}", again, again)
		name := strings.ToLower(again)
		c.mutatingPolicy("a-"+name, applies("Object{data: {'first': has(object.data.second) ? 'saw it' : 'alone'}}")+match, "")
		c.mutatingPolicy("b-"+name, applies("Object{data: {'second': object.data.first}}")+match, "")
	}
	c.policiesCount(true)
	for again, want := range map[string][2]string{"Never": {"alone", "alone"}, "IfNeeded": {"saw it", "saw it"}} {
		stored := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{}}
		if got, _ := c.told(core.ConfigMaps, "default", labelled(strings.ToLower(again), again), stored); got != "" || stored.Data["first"] != want[0] ||
			stored.Data["second"] != want[1] {
			t.Errorf("%s: %s %v", again, got, stored.Data)
		}
	}
}
