package witness_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// aboutTheServer: which resources there are, and their fields.
func aboutTheServer(u user, _ string) {
	u.says(u.run("version", "-o", "json"), `"serverVersion"`, `"minor": "37"`)
	u.says(u.run("api-versions"), "v1\n", "apps/v1", "coordination.k8s.io/v1", "apiextensions.k8s.io/v1")
	u.says(u.run("api-resources"), "pods", "po", "configmaps", "leases", "deployments")
	u.says(u.run("api-resources", "--namespaced=false", "--verbs=list,get", "-o", "wide"), "nodes", "customresourcedefinitions", "deletecollection")
	u.says(u.run("api-resources", "--api-group=rbac.authorization.k8s.io", "-o", "name"), "clusterroles.rbac.authorization.k8s.io",
		"roles.rbac.authorization.k8s.io")
	u.says(u.run("cluster-info"), "is running at", u.c.Config("admin").Host)
	u.says(u.run("explain", "pod.spec.containers.image"), "image", "<string>", "Container image name")
	u.says(u.run("explain", "deployments", "--recursive"), "rollingUpdate", "maxSurge", "topologySpreadConstraints")
	u.says(u.run("explain", "hpa", "--api-version=autoscaling/v2"), "autoscaling", "v2")
	u.says(u.fails("", "explain", "pod.spec.nothing"), `field "nothing" does not exist`)
	u.says(u.run("get", "--raw", "/readyz?verbose"), "[+]etcd ok")
	u.says(u.run("describe", "node", u.c.Node), "MemoryPressure", "Allocatable", "Non-terminated Pods")
}

// objects are created, seen, changed, replaced and deleted.
func objects(u user, _ string) {
	u.is(u.run("create", "configmap", "made", "--from-literal=a=b"), "configmap/made created")
	u.is(u.run("create", "configmap", "made-not", "--from-literal=a=b", "--dry-run=server"), "configmap/made-not created (server dry run)")
	u.says(u.run("create", "configmap", "nor-this", "--from-literal=a=b", "--dry-run=client", "-o", "yaml"), "name: nor-this")
	u.is(u.run("create", "secret", "generic", "word", "--from-literal=password=x"), "secret/word created")
	u.is(u.run("create", "secret", "docker-registry", "pull", "--docker-username=a", "--docker-password=b"), "secret/pull created")
	u.is(u.run("create", "serviceaccount", "robot"), "serviceaccount/robot created")
	u.is(u.run("create", "quota", "bound", "--hard=configmaps=100"), "resourcequota/bound created")
	u.is(u.run("create", "service", "clusterip", "front", "--tcp=80:8080"), "service/front created")
	u.is(u.run("create", "ingress", "door", "--rule=example.org/*=front:80"), "ingress.networking.k8s.io/door created")
	u.is(u.run("create", "job", "once", "--image=x"), "job.batch/once created")
	u.says(u.fails("", "create", "configmap", "made"), `configmaps "made" already exists`)

	u.is(u.run("label", "configmap", "made", "colour=blue"), "configmap/made labeled")
	u.says(u.fails("", "label", "configmap", "made", "colour=red"), "--overwrite is false")
	u.run("label", "configmap", "made", "colour=red", "--overwrite", "--resource-version="+
		u.run("get", "configmap", "made", "-o", "jsonpath={.metadata.resourceVersion}"))
	u.says(u.fails("", "label", "configmap", "made", "colour=green", "--overwrite", "--resource-version=1"), "(Conflict)", "the object has been modified")
	u.is(u.run("get", "configmaps", "-l", "colour in (red,green),!shape", "-o", "name"), "configmap/made")
	u.is(u.run("annotate", "configmaps", "-l", "colour=red", "note=well"), "configmap/made annotated")
	u.is(u.run("get", "configmap", "made", "-o", "jsonpath={.metadata.annotations.note}"), "well")
	u.run("label", "configmap", "made", "colour-")
	u.run("annotate", "configmap", "made", "note-")
	u.is(u.run("get", "configmap", "made", "-o", "jsonpath={.metadata.labels}{.metadata.annotations}"), "")

	for _, kind := range []string{"configmap/made", "secret/word", "serviceaccount/robot", "quota/bound", "service/front", "ingress/door", "job/once"} {
		_, name, _ := strings.Cut(kind, "/")
		u.says(u.run("describe", kind), "Name:", name, u.namespace)
	}
	u.is(u.given(strings.Replace(u.run("get", "configmap", "made", "-o", "json"), `"a": "b"`, `"a": "c"`, 1), "replace", "-f", "-"), "configmap/made replaced")
	u.is(u.run("get", "configmap", "made", "-o", "jsonpath={.data.a}"), "c")
	u.says(u.given(manifest("made", "d"), "replace", "--force", "-f", "-"), "configmap", "deleted", "configmap/made replaced")
	u.is(u.run("get", "configmap", "made", "-o", "jsonpath={.data.a}"), "d")

	u.says(u.run("delete", "configmap", "made", "--dry-run=server"), `configmap "made" deleted`, "(server dry run)")
	u.says(u.run("delete", "configmap/made", "secret/word"), `configmap "made" deleted`, `secret "word" deleted`)
	u.is(u.run("delete", "configmap", "made", "--ignore-not-found"), "")
	u.says(u.fails("", "delete", "configmap", "made"), `Error from server (NotFound): configmaps "made" not found`)
	u.run("delete", "service,ingress,job,quota,serviceaccount", "--all")
}

// manifest is a config map's manifest.
func manifest(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels: {app: %s}\ndata:\n  a: %s\n", name, name, value)
}

// printing: -o and the other output flags.
func printing(u user, _ string) {
	for _, name := range []string{"p2", "p1", "p3"} {
		u.run("create", "configmap", name, "--from-literal=name="+name)
		u.run("label", "configmap", name, "printed=yes")
	}
	get := func(args ...string) string {
		u.Helper()
		return u.run(append([]string{"get", "configmaps", "-l", "printed"}, args...)...)
	}
	u.says(get(), "NAME", "DATA", "AGE", "p1     1")
	u.says(get("-o", "wide", "--show-labels", "-L", "printed"), "LABELS", "PRINTED", "printed=yes")
	u.says(get("-A"), "NAMESPACE", u.namespace)
	u.says(get("-o", "yaml"), "apiVersion: v1", "kind: List", "name: p3")
	u.says(get("-o", "json"), `"kind": "List"`, `"name": "p2"`)
	u.is(get("-o", "jsonpath={.items[*].metadata.name}"), "p1 p2 p3")
	u.is(get("-o", `go-template={{range .items}}{{.data.name}}.{{end}}`), "p1.p2.p3.")
	u.is(get("-o", "custom-columns=N:.data.name", "--no-headers", "--sort-by=.data.name", "--chunk-size=1"), "p1\np2\np3")
	u.is(get("--field-selector", "metadata.name!=p2", "-o", "name"), "configmap/p1\nconfigmap/p3")
	u.says(u.run("get", "all,cm", "-o", "name"), "configmap/p1")
	u.says(u.run("get", "events"), "") // whatever events there are
	u.run("delete", "configmaps", "-l", "printed")
	u.is(get("-o", "name"), "")
}

// patching in the three formats.
func patching(u user, _ string) {
	u.given(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"patched"},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`, "create", "-f",
		"-")
	ports := func() string {
		return u.run("get", "service", "patched", "-o", "jsonpath={range .spec.ports[*]}{.name}={.port} {end}")
	}
	u.is(u.run("patch", "service", "patched", "-p", `{"spec":{"ports":[{"port":82,"name":"c"},{"port":81,"$patch":"delete"}]}}`), "service/patched patched")
	u.is(ports(), "c=82 a=80")
	u.run("patch", "service", "patched", "--type=json", "-p", `[{"op":"test","path":"/spec/ports/0/name","value":"c"},{"op":"remove","path":"/spec/ports/0"}]`)
	u.is(ports(), "a=80")
	u.run("patch", "service", "patched", "--type=merge", "-p", `{"spec":{"ports":[{"name":"z","port":90}]},"metadata":{"labels":{"x":"y"}}}`)
	u.is(ports(), "z=90")
	u.is(u.run("patch", "service", "patched", "--type=merge", "-p", `{"metadata":{"labels":{"x":"y"}}}`), "service/patched patched (no change)")
	u.says(u.fails("", "patch", "service", "patched", "--type=json", "-p", `[{"op":"remove","path":"/spec/nothing"}]`),
		"patch: error in remove for path: '/spec/nothing'")
	u.run("delete", "service", "patched")
}

// applying on the client's side and on the server's.
func applying(u user, _ string) {
	u.is(u.given(manifest("applied", "one"), "apply", "-f", "-"), "configmap/applied created")
	u.is(u.given(manifest("applied", "one"), "apply", "-f", "-"), "configmap/applied unchanged")
	u.says(u.given(manifest("applied", "one"), "apply", "view-last-applied", "-f", "-"), "a: one")
	diff := u.try(manifest("applied", "two"), nil, "diff", "-f", "-")
	if diff.Code != 1 {
		u.Errorf("diff: exit code %d, %s", diff.Code, diff.Stderr)
	}
	u.says(diff.Stdout, "-  a: one", "+  a: two")
	u.is(u.given(manifest("applied", "two"), "apply", "--dry-run=server", "-f", "-"), "configmap/applied configured (server dry run)")
	u.is(u.given(manifest("applied", "two"), "apply", "-f", "-"), "configmap/applied configured")
	u.is(u.given(manifest("applied", "two"), "diff", "-f", "-"), "")

	server := func(manager, value string, more ...string) []string {
		return append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, more...)
	}
	u.is(u.given(manifest("shared", "one"), server("first", "one")...), "configmap/shared serverside-applied")
	conflict := u.fails(manifest("shared", "two"), server("second", "two")...)
	u.says(conflict, "conflict with \"first\"", ".data.a", "--force-conflicts")
	u.is(u.given(manifest("shared", "two"), server("second", "two", "--force-conflicts")...), "configmap/shared serverside-applied")
	u.is(u.run("get", "configmap", "shared", "-o", "jsonpath={.data.a}"), "two")
	u.says(u.try(manifest("shared", "three"), nil, "diff", "--server-side", "--field-manager=second", "-f", "-").Stdout, "+  a: three")
	shown := []string{"get", "configmap", "shared", "-o", "yaml"}
	if u.minor >= 21 {
		shown = append(shown, "--show-managed-fields")
	}
	u.says(u.run(shown...), "manager: second", "operation: Apply")

	// What is no longer in the directory is pruned.
	dir := u.TempDir()
	for _, name := range []string{"keep", "drop"} {
		text := strings.Replace(manifest(name, "x"), "{app: "+name+"}", "{set: pruned}", 1)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			u.Fatal(err)
		}
	}
	prune := []string{"apply", "-f", dir, "--prune", "-l", "set=pruned"}
	if u.minor >= 26 {
		prune = append(prune, "--prune-allowlist=core/v1/ConfigMap")
	} else {
		prune = append(prune, "--prune-whitelist=core/v1/ConfigMap")
	}
	u.says(u.run(prune...), "configmap/keep created", "configmap/drop created")
	if err := os.Remove(filepath.Join(dir, "drop.yaml")); err != nil {
		u.Fatal(err)
	}
	u.says(u.run(prune...), "configmap/keep unchanged", "configmap/drop pruned")
	u.run("delete", "configmap", "applied", "shared", "keep")
}

// editing, with an editor that needs nobody.
func editing(u user, _ string) {
	u.run("create", "configmap", "edited", "--from-literal=colour=blue")
	edit := func(script string) (string, int) {
		r := u.try("", []string{"env", "KUBE_EDITOR=sed -i " + script, "TMPDIR=" + u.TempDir()}, "edit", "configmap", "edited")
		return r.Stdout + r.Stderr, r.Code
	}
	if out, code := edit("s/blue/green/"); code != 0 || !strings.Contains(out, "configmap/edited edited") {
		u.Errorf("edit: %d %s", code, out)
	}
	u.is(u.run("get", "configmap", "edited", "-o", "jsonpath={.data.colour}"), "green")
	if out, code := edit("s/nothing/at-all/"); code != 0 || !strings.Contains(out, "no changes made") {
		u.Errorf("edit that changes nothing: %d %s", code, out)
	}
	// A change that the server refuses is opened in the editor again, which leaves
	// it as it is.
	if out, code := edit("'s/^data:/immutable: 7\\ndata:/'"); code == 0 || !strings.Contains(out, "A copy of your changes has been stored") {
		u.Errorf("edit to what is refused: %d %s", code, out)
	}
	u.run("delete", "configmap", "edited")
}

func mistakes(u user, _ string) {
	u.says(u.fails(strings.Replace(manifest("bad", "x"), "\ndata:", "\ndaat:", 1), "apply", "-f", "-"), `unknown field "daat"`)
	u.says(u.fails("a: [b", "create", "-f", "-"), "yaml")
	u.says(u.fails("", "get", "spaceships"), `the server doesn't have a resource type "spaceships"`)
	u.says(u.fails("", "get", "configmap", "none"), `Error from server (NotFound): configmaps "none" not found`)
	u.says(u.fails("", "create", "configmap", "Not_A_Name"), "metadata.name: Invalid value", "RFC 1123")
	u.says(u.fails("", "get", "configmaps", "--field-selector=data.a=b"), "data.a")
}
