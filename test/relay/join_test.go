package relay_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

// bootstrapRights are the rights that upstream's documentation ("TLS
// bootstrapping") gives nodes that join with a token, and a token.
const bootstrapRights = `
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-abcdef, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-authentication: "true"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: create-csrs-for-bootstrapping}
subjects: [{kind: Group, name: system:bootstrappers, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: system:node-bootstrapper, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: auto-approve-csrs-for-group}
subjects: [{kind: Group, name: system:bootstrappers, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: system:certificates.k8s.io:certificatesigningrequests:nodeclient, apiGroup: rbac.authorization.k8s.io}
`

// A kubelet that has nothing but a token gets a certificate, and with it a
// node.
func TestANodeJoinsWithAToken(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{Without: []string{"kubelet"}})
	c.KctlInput(bootstrapRights, "apply", "-f", "-")
	ca := filepath.Join(c.Dir, "pki", "ca.crt")
	bootstrap, own, certs := filepath.Join(c.Dir, "bootstrap.kubeconfig"), filepath.Join(c.Dir, "own.kubeconfig"), filepath.Join(c.Dir, "own-pki")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:" + strconv.Itoa(c.Port) +
		"', certificate-authority: " + ca + "}}]\n" +
		"users: [{name: x, user: {token: abcdef.0123456789abcdef}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
	if err := os.WriteFile(bootstrap, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Kctl("up", "--dir", c.Dir, "--port", strconv.Itoa(c.Port), "--node-name", c.Node, "--without=",
		"--kubelet-flags=--bootstrap-kubeconfig="+bootstrap+" --kubeconfig="+own+" --cert-dir="+certs+" --rotate-certificates --rotate-server-certificates")
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "kubelet-client-current.pem"), filepath.Join(certs, "kubelet-client-current.pem"))
	if err != nil || pair.Leaf.Subject.CommonName != "system:node:"+c.Node {
		t.Fatalf("the certificate is %v's: %v", pair.Leaf, err)
	}
	if requests := c.Kctl("get", "csr"); !strings.Contains(requests, "system:bootstrap:abcdef") || !strings.Contains(requests, "Approved,Issued") {
		t.Errorf("certificate signing requests:\n%s", requests)
	}
	c.Kctl("run", "joined", "--image="+harness.Demo)
	if phase := c.Kctl("get", "pod", "joined", "-o", "jsonpath={.status.phase}"); phase != "Running" {
		t.Errorf("the pod on the joined node is %s", phase)
	}
	// Somebody has to approve its serving certificate. Until then the API server
	// does not trust it as the kubelet.
	if told := c.KctlFails("logs", "joined"); !strings.Contains(told, "x509") {
		t.Errorf("logs over a connection with an unapproved certificate: %s", told)
	}
	var request string
	harness.Eventually(t, time.Minute, func() error {
		for line := range strings.Lines(c.Kctl("get", "csr")) {
			if strings.Contains(line, "kubernetes.io/kubelet-serving") && strings.Contains(line, "Pending") {
				request = strings.Fields(line)[0]
				return nil
			}
		}
		return errors.New("the kubelet did not ask for a serving certificate")
	})
	c.Kctl("certificate", "approve", request)
	harness.Eventually(t, time.Minute, func() error {
		if r := c.Run("", c.Bin("kctl"), "logs", "joined"); r.Code != 0 {
			return errors.New(r.Stderr)
		}
		return nil
	})
}
