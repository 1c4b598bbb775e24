package hosts_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kctl/test/harness"
)

// twoServices are a service with a cluster IP and a headless one, both of the
// same two pods, and a pod that calls them.
const twoServices = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: kctl.local/demo, readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: asking}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: asking, image: kctl.local/demo}]
`

// TestServices runs upstream's kube-proxy, kube-controller-manager and CoreDNS
// beside a cluster of ours, by the commands of docs/networking.md. A pod
// reaches services by name, and follows their pods. metrics-server runs there,
// too.
func TestServices(t *testing.T) {
	upstream := harness.Upstream(t, "kube-proxy", "kube-controller-manager", "coredns", "metrics-server")
	s := newSingle(t)
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(harness.Root(), "deploy"), filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	page := harness.OpenPage(t, "docs/networking.md")
	s.bash(t, dir, upstream, page.Take(t, "Services: kube-proxy"))

	image := filepath.Join(dir, "coredns.tar")
	harness.Archive(t, "registry.k8s.io/coredns/coredns:v1.15.0", filepath.Join(upstream, "coredns"), image)
	s.bash(t, dir, upstream, "ctr --address /var/lib/kctl/run/containerd.sock -n k8s.io images import "+image+"\n"+page.Take(t, "DNS for pods"))

	s.bash(t, dir, upstream, "kctl apply -f - <<'end'\n"+twoServices+
		"end\nkctl rollout status deployment/web --timeout=120s\nkctl wait pod/asking --for=condition=Ready --timeout=120s")
	pods := strings.Fields(s.bash(t, dir, upstream, `kctl get pods -l app=web -o 'jsonpath={.items[*].metadata.name}'`))
	if len(pods) != 2 {
		t.Fatalf("the pods are %v", pods)
	}
	for _, url := range []string{"http://web", "http://web.default.svc.cluster.local"} {
		s.reaches(t, url, pods...)
	}
	s.reaches(t, "http://headless:8080") // the client chooses between the addresses
	// A service's endpoints follow its pods.
	s.bash(t, dir, upstream, "kctl scale deployment/web --replicas=1")
	harness.Eventually(t, patience, func() error {
		pods = strings.Fields(s.bash(t, dir, upstream, `kctl get pods -l app=web -o 'jsonpath={.items[*].metadata.name}'`))
		if len(pods) != 1 {
			return errors.New("pods stay: " + strings.Join(pods, " "))
		}
		return nil
	})
	s.reaches(t, "http://web", pods...)
	// The API server is a service like others.
	s.bash(t, dir, upstream, "kctl exec asking -- /demo env | grep KUBERNETES_SERVICE_HOST=10.0.0.1")
	s.top(t, dir, upstream)
}

// top runs upstream's metrics-server by the commands of docs/operations.md, and
// checks the usage of a pod and a node.
func (s *single) top(t *testing.T, dir, upstream string) {
	t.Helper()
	image := filepath.Join(dir, "metrics-server.tar")
	harness.Archive(t, "registry.k8s.io/metrics-server/metrics-server:v0.9.0", filepath.Join(upstream, "metrics-server"), image)
	s.bash(t, dir, upstream, "ctr --address /var/lib/kctl/run/containerd.sock -n k8s.io images import "+image+"\n"+
		harness.OpenPage(t, "docs/operations.md").Take(t, "`kubectl top`: metrics-server"))
	for what, numbers := range map[string]*regexp.Regexp{
		"pod":  regexp.MustCompile(`(?m)^asking +\d+m +[1-9]\d*Mi *$`),
		"node": regexp.MustCompile(`(?m)^\S+ +[1-9]\d*m +\d+% +[1-9]\d*Mi +\d+% *$`),
	} {
		harness.Eventually(t, patience, func() error {
			out, err := s.command(t.Context(), s.bin+"/kctl", "--kubeconfig", s.dir+"/admin.kubeconfig", "top", what).CombinedOutput()
			if err != nil || !numbers.Match(out) {
				return errors.Join(err, errors.New("kctl top "+what+": "+string(out)))
			}
			return nil
		})
	}
}

// reaches has the pod send requests until each of these pods has answered, or
// any if none are named.
func (s *single) reaches(t *testing.T, url string, pods ...string) {
	t.Helper()
	answered := map[string]bool{}
	harness.Eventually(t, patience, func() error {
		out, err := s.command(t.Context(), s.bin+"/kctl", "--kubeconfig", s.dir+"/admin.kubeconfig", "exec", "asking", "--", "/demo", "get", url).CombinedOutput()
		if err != nil {
			return errors.New(url + ": " + string(out))
		}
		if !strings.HasPrefix(string(out), "hello from pod web-") {
			return errors.New(url + " answers " + string(out))
		}
		for _, pod := range pods {
			answered[pod] = answered[pod] || strings.Contains(string(out), pod)
			if !answered[pod] {
				err = errors.Join(err, errors.New(url+": "+pod+" has not answered yet, but "+string(out)))
			}
		}
		return err
	})
}
