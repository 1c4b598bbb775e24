package command

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/relay"
)

const applied = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}}`

// Who applies what was made in another way is warned in the words of the program that was
// called.
func TestApplyOfWhatWasNotApplied(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, applied) })
	for _, name := range []string{"kctl", frame.Kubectl} {
		called(t, name, host, applied, "apply", "--validate=false", "-f", "-").want(t, 0,
			"is required by "+name+" apply. "+name+" apply should only be used on resources created declaratively by either "+name+" create --save-config or "+name+
				" apply.")
	}
}

// Fields that others manage are not taken from them: what to do about that is said.
func TestApplyOfWhatOthersManage(t *testing.T) {
	host := serve(t, status(409, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "other" using v1: .spec.x`,
		metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.x"}))
	kctl(t, host, applied, "apply", "--server-side", "-f", "-").want(t, 1, "Apply failed with 1 conflict", "run the command again with --force-conflicts")
	host = serve(t, status(409, metav1.StatusReasonConflict, "the object has been modified"))
	if c := kctl(t, host, applied, "apply", "--server-side", "-f", "-"); c.code != 1 ||
		c.err.String() != "Error from server (Conflict): error when applying patch to \"STDIN\": the object has been modified\n" {
		t.Errorf("code %d, %s", c.code, c.err.String())
	}
}

// Each pod of a file carries the stamps of its way, whichever verb creates it; other objects have
// none.
func TestEveryPodCarriesItsStamps(t *testing.T) {
	const file = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n---\n{apiVersion: v1, kind: " +
		"Node, metadata: {name: c}}\n"
	sent := map[string]string{}
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			status(404, metav1.StatusReasonNotFound, "not found")(w, r)
			return
		}
		var object metav1.PartialObjectMetadata
		if err := yaml.NewYAMLOrJSONDecoder(r.Body, 1024).Decode(&object); err != nil {
			t.Error(err)
		}
		sent[object.Name] = r.Header.Get(relay.Header)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"%s","metadata":{"name":"%s"}}`, object.Kind, object.Name)
	})
	for _, verb := range []string{"create", "apply", "apply --server-side"} {
		clear(sent)
		kctl(t, host, file, append(strings.Fields(verb), "--validate=false", "-f", "-")...).want(t, 0)
		for _, pod := range []string{"a", "b"} {
			stamps, err := relay.Decode(sent[pod])
			if err != nil || len(stamps) != 2 || stamps[0].Hop != relay.ClientStarted || stamps[1].Hop != relay.ClientSent {
				t.Errorf("%s sends with pod %s: %v (%v)", verb, pod, stamps, err)
			}
		}
		if other, ok := sent["c"]; !ok || other != "" {
			t.Errorf("%s sends with a node: %q", verb, other)
		}
	}
}

// What is about to go does not keep what is applied to it.
func TestApplyOfWhatIsBeingDeleted(t *testing.T) {
	going := strings.Replace(applied, `"name":"web"`, `"name":"web","deletionTimestamp":"2026-01-02T03:04:05Z"`, 1)
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, going) })
	const warning = "Warning: Detected changes to resource web which is currently being deleted."
	for args, warns := range map[string]bool{"": true, "--server-side": true, "--dry-run=server": true, "--dry-run=client": false} {
		c := kctl(t, host, applied, append([]string{"apply", "--validate=false", "-f", "-"}, strings.Fields(args)...)...)
		if got := strings.Contains(c.err.String(), warning); c.code != 0 || got != warns {
			t.Errorf("%s: code %d, warned %t: %s", args, c.code, got, c.err.String())
		}
	}
}

// What was applied last is recorded with all objects or with none.
func TestSetLastAppliedOfSome(t *testing.T) {
	const pods = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n"
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		annotations := ""
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		} else if strings.HasSuffix(r.URL.Path, "/a") {
			annotations = `,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}`
		}
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"%s}}`, path.Base(r.URL.Path), annotations)
	})
	c := kctl(t, host, pods, "apply", "set-last-applied", "-f", "-")
	if c.want(t, 1, "no last-applied-configuration annotation found on resource: b"); c.out.String() != "" {
		t.Errorf("said %s", c.out.String())
	}
}
