package command

import (
	"net/http"
	"strings"
	"testing"
)

// An object without a name is not a target: as one, it would mean all objects
// of its kind. Only create accepts it.
func TestUnnamed(t *testing.T) {
	for _, args := range []string{
		"delete", "replace", "replace --force", "get", "get -w", "describe", "label a=b", "annotate a=b", "patch -p {}", "edit",
		"apply", "apply --server-side", "diff", "wait --for=create", "wait --for=delete", "rollout restart", "scale --replicas=0",
	} {
		for manifest, why := range map[string]string{
			"{apiVersion: v1, kind: Pod}":                                  `error when reading "STDIN": resource name may not be empty`,
			"{apiVersion: v1, kind: Pod, metadata: {generateName: some-}}": `error when reading "STDIN": it has a generateName and no name`,
		} {
			host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				t.Errorf("%s: the server was asked for %s %s", args, r.Method, r.URL)
				http.NotFound(w, r)
			})
			code := 1
			if args == "diff" {
				code = 2
			}
			kctl(t, host, manifest, append(strings.Fields(args), "-f", "-")...).want(t, code, why)
		}
	}
}

// An empty list of objects is not an error.
func TestNothingInFiles(t *testing.T) {
	host := serve(t, func(http.ResponseWriter, *http.Request) {})
	kctl(t, host, "", "get", "-f", "-").want(t, 0, "No resources found in default namespace.")
	kctl(t, host, "---\n# nothing\n", "describe", "-f", "-").want(t, 0, "No resources found in default namespace.")
}
