package witness_test

import (
	"os/exec"
	"strings"
	"testing"

	"kctl/test/harness"
)

const manifest = `apiVersion: v1
kind: Pod
metadata:
  name: applied
  labels: {app: applied}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: kctl.local/demo
    imagePullPolicy: IfNotPresent
    ports: [{containerPort: 8080}]
`

// kubectls are the binaries to ask: the one on the PATH, and Debian's where it
// is another.
func kubectls(t *testing.T) []string {
	t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Fatalf("the tests need kubectl (Debian's kubernetes-client): %v", err)
	}
	return []string{path}
}

func TestKubectl(t *testing.T) {
	c := harness.Start(t, harness.Options{})
	for _, path := range kubectls(t) {
		t.Run(path, func(t *testing.T) { kubectl(t, c.In(t), path) })
	}
}

func kubectl(t *testing.T, c *harness.Cluster, path string) {
	run := func(input string, args ...string) string {
		t.Helper()
		r := c.Run(input, path, args...)
		if r.Code != 0 {
			t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
		}
		return r.Stdout
	}
	contains := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("lacks %q:\n%s", want, text)
			}
		}
	}
	contains(run("", "version", "-o", "json"), `"serverVersion"`, `"minor": "37"`)
	contains(run("", "get", "nodes", "-o", "wide"), c.Node, "Ready", "containerd://")
	contains(run("", "api-resources"), "pods", "po", "configmaps", "leases", "coordination.k8s.io/v1")
	contains(run(manifest, "apply", "-f", "-"), "pod/applied created")
	contains(run(manifest, "apply", "-f", "-"), "pod/applied unchanged")
	contains(run(strings.Replace(manifest, "{app: applied}", "{app: changed}", 1), "apply", "-f", "-"), "pod/applied configured")
	run("", "wait", "pod/applied", "--for=condition=Ready", "--timeout=60s")
	contains(run("", "get", "pods", "-o", "wide"), "applied", "1/1", "Running", c.Node)
	contains(run("", "get", "pod", "applied", "-o", "yaml"), "kind: Pod", "phase: Running", "app: changed")
	contains(run("", "get", "pods", "-A", "-l", "app=changed", "-o", "jsonpath={.items[*].metadata.name}"), "applied")
	contains(run("", "describe", "pod", "applied"), "Successfully assigned default/applied", "Started")
	contains(run("", "describe", "node", c.Node), "MemoryPressure", "Allocatable", "applied")
	contains(run("", "logs", "applied"), "listening on :8080")
	contains(run("", "explain", "pod.spec.containers.image"), "image")
	contains(run("", "run", "started", "--image=kctl.local/demo", "--restart=Never"), "pod/started created")
	run("", "wait", "pod/started", "--for=condition=Ready", "--timeout=60s")
	run("", "label", "pod", "started", "colour=blue")
	contains(run("", "get", "pods", "-l", "colour=blue", "-o", "name"), "pod/started")
	contains(run("", "auth", "can-i", "create", "pods"), "yes")
	contains(run("", "get", "events"), "Started")
	contains(run("", "create", "configmap", "made", "--from-literal=a=b"), "configmap/made created")
	contains(run("", "delete", "configmap", "made"), "deleted")
	contains(run("", "delete", "pod", "applied", "started", "--grace-period=1"), `pod "applied" deleted`)
	if left := run("", "get", "pods", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	r := c.Run(strings.Replace(manifest, "image:", "imaeg:", 1), path, "apply", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, "imaeg") {
		t.Errorf("a misspelt field: exit code %d, %s", r.Code, r.Stderr)
	}
}
