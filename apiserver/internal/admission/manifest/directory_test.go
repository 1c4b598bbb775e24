package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission/configuration"
	admissionpolicy "kctl/apiserver/internal/admission/policy"
	"kctl/proto/core"
)

const (
	group = "apiVersion: admissionregistration.k8s.io/v1\n"
	hooks = group + "kind: ValidatingWebhookConfiguration\nmetadata: {name: h.static.k8s.io}\nwebhooks:\n- "
	hook  = "name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: [''], apiVersions: [v1], operations: " +
		"[CREATE], resources: [pods]}]"
	byURL  = "{" + hook + ", clientConfig: {url: 'https://a.b/c'}}\n"
	policy = group +
		"kind: ValidatingAdmissionPolicy\nmetadata: {name: p.static.k8s.io}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], " +
		"operations: [CREATE], resources: [pods]}]}, validations: [{expression: 'true'}]}\n"
	binding = group + "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b.static.k8s.io}\nspec: {policyName: p.static.k8s.io, validationActions: [Deny]}\n"
	next    = "---\n"
)

var policyKinds = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// TestObjects: all documents of all files are read, in the order of the objects' names; what can't be
// in force without what is stored is refused, and so is what clients could not create.
func TestObjects(t *testing.T) {
	hookKinds := []string{"ValidatingWebhookConfiguration"}
	for name, test := range map[string]struct {
		kinds []string
		files map[string]string
		names string
		fails string
	}{
		"nothing":     {kinds: hookKinds},
		"webhooks":    {kinds: hookKinds, files: map[string]string{"a.yaml": hooks + byURL}, names: "h.static.k8s.io"},
		"other files": {kinds: hookKinds, files: map[string]string{"a.txt": "x", "b.YML": hooks + byURL, "c.json": ""}, names: "h.static.k8s.io"},
		"several documents": {
			kinds: policyKinds, files: map[string]string{"a.yaml": next + policy + next + "\n" + next + binding}, names: "b.static.k8s.io p.static.k8s.io",
		},
		"several files": {kinds: policyKinds, files: map[string]string{"a.yaml": binding, "b.yaml": policy}, names: "b.static.k8s.io p.static.k8s.io"},
		"a list": {
			kinds: policyKinds, files: map[string]string{"a.json": `{"apiVersion":"v1","kind":"List","items":[` + inJSON + `]}`}, names: "p.static.k8s.io",
		},
		"a list of one kind": {
			kinds: policyKinds,
			files: map[string]string{"a.json": `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyList","items":[` + inJSON + `]}`},
			names: "p.static.k8s.io",
		},
		"a service": {
			kinds: hookKinds,
			files: map[string]string{"a.yaml": hooks + "{" + hook +
				", clientConfig: {service: {name: s, namespace: ns}}}\n"},
			fails: `a.yaml: ValidatingWebhookConfiguration "h.static.k8s.io": webhook "a.b.c": clientConfig.service is not supported for static manifests; use clientConfig.url instead`,
		},
		"another name": {
			kinds: policyKinds, files: map[string]string{"a.yaml": strings.Replace(policy, "p.static.k8s.io", "p", 1)},
			fails: `a.yaml: ValidatingAdmissionPolicy "p": must have a name ending with ".static.k8s.io"`,
		},
		"another kind": {
			kinds: hookKinds, files: map[string]string{"a.yaml": policy},
			fails: "a.yaml: a ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1 is not supported here, only ValidatingWebhookConfiguration",
		},
		"no kind": {kinds: hookKinds, files: map[string]string{"a.yaml": "a: b\n"}, fails: "a.yaml: Object 'Kind' is missing"},
		"an unknown field": {
			kinds: policyKinds, files: map[string]string{"a.yaml": policy + "foo: bar\n"}, fails: `a.yaml: strict decoding error: unknown field "foo"`,
		},
		"a namespace": {
			kinds: policyKinds, files: map[string]string{"a.yaml": strings.Replace(policy, "static.k8s.io}", "static.k8s.io, namespace: shop}", 1)},
			fails: `a.yaml: ValidatingAdmissionPolicy "p.static.k8s.io": metadata.namespace: Forbidden: not allowed on this type`,
		},
		"no name": {
			kinds: policyKinds, files: map[string]string{"a.yaml": strings.Replace(policy, "name: p.static.k8s.io", "", 1)},
			fails: `a.yaml: ValidatingAdmissionPolicy "": metadata.name: Required value`,
		},
		"an invalid policy": {
			kinds: policyKinds, files: map[string]string{"a.yaml": strings.Replace(policy, "'true'", "'1'", 1)},
			fails: `a.yaml: ValidatingAdmissionPolicy "p.static.k8s.io": spec.validations[0].expression: Invalid value`,
		},
		"a policy with parameters": {kinds: policyKinds, files: map[string]string{"a.yaml": strings.Replace(policy, "spec: {",
			"spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, ", 1)}, fails: "spec.paramKind is not supported for static manifests"},
		"a binding with parameters": {kinds: policyKinds, files: map[string]string{"a.yaml": policy + next + strings.Replace(binding, "spec: {",
			"spec: {paramRef: {name: c, parameterNotFoundAction: Deny}, ", 1)}, fails: "spec.paramRef is not supported for static manifests"},
		"a binding to a stored one": {kinds: policyKinds, files: map[string]string{"a.yaml": strings.Replace(binding, "policyName: p.static.k8s.io", "policyName: p",
			1)}, fails: `spec.policyName "p" must end with ".static.k8s.io"`},
		"a binding to none": {
			kinds: policyKinds, files: map[string]string{"a.yaml": binding},
			fails: `binding "b.static.k8s.io" references policy "p.static.k8s.io" which does not exist in the manifest directory`,
		},
		"a name twice": {kinds: policyKinds, files: map[string]string{"a.yaml": policy, "b.yaml": policy}, fails: `duplicate name "p.static.k8s.io"`},
	} {
		directory := t.TempDir()
		for file, content := range test.files {
			write(t, filepath.Join(directory, file), content)
		}
		objects, err := Directory{Path: directory, Kinds: test.kinds}.read()
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s:\n got: %v\nwant: %s", name, err, test.fails)
			}
			continue
		}
		if err != nil || names(objects) != test.names {
			t.Errorf("%s: %q, %v", name, names(objects), err)
		}
	}
	directory := t.TempDir()
	write(t, filepath.Join(directory, "a.yaml"), policy)
	objects, err := Directory{Path: directory, Kinds: policyKinds}.read()
	if err != nil || *objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("the policy has no defaults: %v, %v", objects, err)
	}
}

func (d Directory) read() ([]core.Object, error) {
	files, err := d.files()
	if err != nil {
		return nil, err
	}
	return d.objects(files)
}

const inJSON = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"p.static.k8s.io"},"spec":{"matchConstraints":` +
	`{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"true"}]}}`

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(objects []core.Object) string {
	var out []string
	for _, obj := range objects {
		out = append(out, obj.GetName())
	}
	return strings.Join(out, " ")
}

// TestFollow: a directory's objects are in force from the start, and so are those of each valid change.
func TestFollow(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "a.yaml")
	write(t, file, policy)
	applied := []string{}
	p := Plugin{
		Name: "ValidatingAdmissionPolicy", Kinds: policyKinds, Directory: admissionpolicy.Directory,
		Apply: func(objects []core.Object) { applied = append(applied, names(objects)) },
	}
	registry := prometheus.NewRegistry()
	follow := func(content string) error {
		files := configuration.Files{p.Name: []byte(content)}
		f, err := p.Follow(Options{Files: files, Metrics: registry, Clock: testingclock.NewFakeClock(time.Unix(1000, 0)), Logger: zap.NewNop()})
		if f == nil || err != nil {
			return err
		}
		for _, changed := range []string{policy + "x: y\n", policy + next + binding, ""} {
			write(t, file, changed)
			content, err := f.Read()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Apply(content); (err != nil) != strings.Contains(changed, "x: y") {
				t.Errorf("%s: %v", changed, err)
			}
		}
		return nil
	}
	const settings = "apiVersion: apiserver.config.k8s.io/v1\nkind: ValidatingAdmissionPolicyConfiguration\n"
	for content, fails := range map[string]string{
		"apiVersion: apiserver.config.k8s.io/v1\nkind: Foo\n":     "must be a ValidatingAdmissionPolicyConfiguration of apiserver.config.k8s.io/v1",
		settings + "kubeConfigFile: /x\n":                         `unknown field "kubeConfigFile"`,
		settings + "staticManifestsDir: a\n":                      `staticManifestsDir: Invalid value: "a": must be an absolute file path`,
		settings + "staticManifestsDir: " + directory + "/none\n": "unable to read",
		settings + "staticManifestsDir: " + file + "\n":           "must be a directory",
		settings: "",
		settings + "staticManifestsDir: " + directory + "\n": "",
	} {
		if err := follow(content); (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: %v, want %s", content, err, fails)
		}
	}
	if got := strings.Join(applied, ", "); got != "p.static.k8s.io, b.static.k8s.io p.static.k8s.io, " {
		t.Errorf("applied %q", got)
	}
	if n, err := testutil.GatherAndCount(registry, "apiserver_manifest_admission_config_controller_last_config_info"); err != nil || n != 1 {
		t.Errorf("%d configurations are told of: %v", n, err)
	}
	if n, err := testutil.GatherAndCount(registry, "apiserver_manifest_admission_config_controller_automatic_reloads_total"); err != nil || n != 1 {
		t.Errorf("%d kinds of reloads are counted after the first one: %v", n, err)
	}
}
