package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// If the namespace does not exist, the error says that, and not that the object
// was not found.
func TestNamespaceThatIsNotThere(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/namespaces/there":
			fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"there"}}`)
		case r.URL.Path == "/api/v1/namespaces/typo":
			status(404, metav1.StatusReasonNotFound, `namespaces "typo" not found`)(w, r)
		case r.URL.Path == "/api/v1/namespaces/hidden":
			status(403, metav1.StatusReasonForbidden, `namespaces "hidden" is forbidden`)(w, r)
		default:
			status(404, metav1.StatusReasonNotFound, `pods "web" not found`)(w, r)
		}
	})
	for _, args := range []string{"get pod web", "get pod web -o yaml", "describe pod web", "label pod web a=b", "logs web", "exec web -- ls", "trace pod/web"} {
		for namespace, want := range map[string]string{"typo": `namespaces "typo" not found`, "there": `pods "web" not found`, "hidden": `pods "web" not found`,
			"default": `pods "web" not found`} {
			kctl(t, host, "", append([]string{"-n", namespace}, strings.Fields(args)...)...).want(t, 1, "(NotFound): "+want)
		}
	}
	if c := kctl(t, host, "", "get", "pod", "web", "-n", "typo", "--ignore-not-found"); c.code != 0 || c.err.Len() > 0 {
		t.Errorf("with --ignore-not-found: %d, %s", c.code, c.err.String())
	}
}

// A type that is named twice counts once, as in kubectl.
func TestATypeTwice(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web"}}]}`)
	})
	for _, types := range []string{"pods,pod", "po,all", "all,pods"} {
		if c := kctl(t, host, "", "get", types, "-o", "name"); c.code != 0 || c.out.String() != "pod/web\n" {
			t.Errorf("%s: %d, %q %s", types, c.code, c.out.String(), c.err.String())
		}
	}
}
