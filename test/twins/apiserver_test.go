package twins_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"kctl/test/harness"
)

// definition and kinds are objects that nobody but the test changes.
const (
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mugs.twins.example}
spec:
  group: twins.example
  scope: Namespaced
  names: {kind: Mug, plural: mugs, singular: mug}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {litres: {type: number, default: 0.3}}}}}}
`
	kinds = `
{apiVersion: twins.example/v1, kind: Mug, metadata: {name: kept}, spec: {}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, annotations: {a: "1"}}, data: {text: "ä"}, binaryData: {bytes: AAH/}}
---
{apiVersion: v1, kind: Secret, metadata: {name: kept}, stringData: {password: swordfish}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: kept}, imagePullSecrets: [{name: kept}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: kept}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: kept}, value: 7}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kept}, spec: {holderIdentity: test, renewTime: "2026-01-02T03:04:05.678901Z"}}
`
)

// apiservers are ours and upstream's, one of which runs.
type apiservers struct {
	*scene
	upstream string
	args     []string // upstream's
	theirs   []*twin  // if they run: kube-controller-manager, for the loops that ours has inside, and kube-apiserver
}

// TestAPIServer has kube-apiserver begin on an empty etcd, then ours and it
// replace each other, while our scheduler, our kubelet and a pod go on. What the
// one has stored, the other serves unchanged.
func TestAPIServer(t *testing.T) {
	upstream := harness.Upstream(t, "kube-apiserver", "kube-controller-manager")
	etcd := harness.StartEtcd(t)
	c := harness.Start(t, harness.Options{Without: []string{"apiserver", "scheduler", "kubelet"}, Flags: []string{"--etcd-servers=" + etcd.URL}})
	a := &apiservers{scene: newScene(t, c), upstream: upstream, args: apiserverFlags(c, etcd.URL)}
	a.startTheirs()
	c.Kctl("up", "--dir", c.Dir, "--without=apiserver")
	a.nodeReady()
	c.KctlInput(definition, "create", "-f", "-")
	c.Kctl("wait", "crd/mugs.twins.example", "--for=condition=Established", "--timeout=60s")
	c.KctlInput(kinds, "create", "-f", "-")
	c.Create(a.pod("stays"))
	c.AwaitRunning("stays")
	stays := a.container("stays")

	for i, step := range []struct {
		name   string
		change func()
	}{{"upstream's", func() {}}, {"ours", a.toOurs}, {"upstream's again", a.toTheirs}, {"ours again", a.toOurs}} {
		was := a.stored()
		step.change()
		ok := t.Run(step.name, func(t *testing.T) {
			s := a.in(t)
			sameObjects(t, was, s.stored())
			s.nodeReady()
			if is := s.container("stays"); is != stays {
				t.Errorf("the pod was %s and is %s", stays, is)
			}
			s.logs("began\n", "stays")
			s.works(fmt.Sprintf("works-%d", i))
			// Each server stores each object once.
			s.c.KctlInput(definition+"---"+kinds, "label", "--overwrite", "-f", "-", fmt.Sprintf("step=%d", i))
		})
		if !ok {
			return
		}
	}
	a.deleted("stays")
}

// apiserverFlags are those that kctl gives to our API server, as far as upstream's
// has them.
func apiserverFlags(c *harness.Cluster, etcd string) []string {
	pki := func(name string) string { return filepath.Join(c.Dir, "pki", name) }
	return []string{
		"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.Port),
		"--endpoint-reconciler-type=none", // loopback is no address for a service
		"--request-timeout=20s",           // for as long it waits at its end for watches to close
		"--client-ca-file=" + pki("ca.crt"), "--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
		"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-cluster-ip-range=10.0.0.0/24",
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP,Hostname",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
	}
}

// startTheirs starts upstream's API server and controllers.
func (a *apiservers) startTheirs() {
	a.t.Helper()
	server := startTwin(a.t, a.c, filepath.Join(a.upstream, "kube-apiserver"), a.args...)
	a.theirs = []*twin{server}
	server.until(func() error {
		if r := a.c.Run("", a.c.Bin("kctl"), "get", "--raw", "/readyz"); r.Code != 0 {
			return errors.New(r.Stderr)
		}
		return nil
	})
	pki := filepath.Join(a.c.Dir, "pki")
	a.theirs = slices.Insert(a.theirs, 0, startTwin(a.t, a.c, filepath.Join(a.upstream, "kube-controller-manager"),
		"--kubeconfig="+a.c.Kubeconfig("controller-manager"), "--leader-elect=false", "--use-service-account-credentials", "--secure-port=0",
		"--root-ca-file="+filepath.Join(pki, "ca.crt"), "--service-account-private-key-file="+filepath.Join(pki, "sa.key")))
	a.c.Kctl("wait", "--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt", "--timeout=120s")
}

func (a *apiservers) toTheirs() {
	a.t.Helper()
	a.c.Signal("apiserver", syscall.SIGTERM)
	a.startTheirs()
}

func (a *apiservers) toOurs() {
	a.t.Helper()
	for _, p := range a.theirs {
		p.stop()
	}
	a.theirs = nil
	a.c.Kctl("up", "--dir", a.c.Dir, "--without=")
}

// nodeReady waits until the kubelet has said so to the server that runs now.
func (s *scene) nodeReady() {
	s.t.Helper()
	lease := func() string {
		return s.c.Kctl("get", "lease", "-n", "kube-node-lease", "--ignore-not-found", s.c.Node, "-o", "jsonpath={.metadata.resourceVersion}")
	}
	was := lease()
	harness.Eventually(s.t, patience, func() error {
		if is := lease(); is == "" || is == was {
			return errors.New("the kubelet does not renew its lease")
		}
		return nil
	})
	s.c.Kctl("wait", "node/"+s.c.Node, "--for=condition=Ready", "--timeout=120s")
}

// stored are the objects of definition and kinds, in full.
func (s *scene) stored() []map[string]any {
	s.t.Helper()
	var list struct{ Items []map[string]any }
	out := s.c.KctlInput(definition+"---"+kinds, "get", "-f", "-", "-o", "json", "--show-managed-fields")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 8 {
		s.t.Fatalf("%d objects: %v\n%s", len(list.Items), err, out)
	}
	return list.Items
}

func sameObjects(t *testing.T, were, are []map[string]any) {
	t.Helper()
	for i, was := range were {
		if is := are[i]; !reflect.DeepEqual(is, was) {
			t.Errorf("an object was\n%v\nand is\n%v", was, is)
		}
	}
}
