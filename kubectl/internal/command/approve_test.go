package command

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"kctl/proto/pki"
)

// Whoever approves a kubelet's serving certificate is told of the names in it that are not
// its node's: the authority would sign the API server's as well.
func TestForeignNamesInAServingCertificate(t *testing.T) {
	const signing = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"certificates.k8s.io"},"versions":[{"version":"v1","resources":[
	  {"resource":"certificatesigningrequests","responseKind":{"group":"certificates.k8s.io","version":"v1","kind":"CertificateSigningRequest"},"scope":"Cluster","singularResource":"certificatesigningrequest","verbs":["get","update"]}]}]}]}`
	const node = `{"metadata":{"name":"n"},"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.7"},{"type":"Hostname","address":"n.example"}]}}`
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	ofNode := pki.Subject{CommonName: "system:node:n", DNSNames: []string{"n.example"}, IPs: []net.IP{net.IPv4(192, 0, 2, 7)}}
	foreign := ofNode
	foreign.DNSNames, foreign.IPs = []string{"n.example", "kubernetes.default.svc"}, append(foreign.IPs, net.IPv4(10, 0, 0, 1))
	for name, test := range map[string]struct {
		verb, signer, by string
		asked            pki.Subject
		node             http.HandlerFunc
		want             string
	}{
		"its own":          {asked: ofNode},
		"others'":          {asked: foreign, want: `kubernetes.default.svc, 10.0.0.1, which node "n" has not`},
		"others', denied":  {verb: "deny", asked: foreign},
		"of another kind":  {signer: "kubernetes.io/kube-apiserver-client", asked: foreign},
		"no node":          {asked: ofNode, node: status(http.StatusNotFound, "NotFound", "no"), want: `n.example, 192.0.2.7, which node "n" has not`},
		"not to be read":   {asked: foreign, node: status(http.StatusForbidden, "Forbidden", "no")},
		"nobody's":         {asked: pki.Subject{CommonName: "admin"}, want: `"admin", which is no node's name`},
		"made by somebody": {by: "system:node:m", asked: ofNode, want: `the name of node "n", and was made by "system:node:m"`},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := pki.NewRequest(test.asked, key)
			if err != nil {
				t.Fatal(err)
			}
			csr := fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"a"},"spec":{"request":%q,"signerName":%q,"username":%q}}`,
				base64.StdEncoding.EncodeToString(request), cmp.Or(test.signer, "kubernetes.io/kubelet-serving"), cmp.Or(test.by, "system:node:n"))
			host := serveAPIs(t, signing, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/nodes/n"):
					fmt.Fprint(w, csr)
				case test.node != nil:
					test.node(w, r)
				default:
					fmt.Fprint(w, node)
				}
			})
			verb := cmp.Or(test.verb, "approve")
			c := kctl(t, host, "", "certificate", verb, "a")
			c.want(t, 0)
			want := ""
			if test.want != "" {
				want = "Warning: a asks for " + test.want + "\n"
			}
			if c.err.String() != want || !strings.Contains(c.out.String(), " "+map[string]string{"approve": "approved", "deny": "denied"}[verb]) {
				t.Errorf("printed %q and %q, want the warning %q", c.out.String(), c.err.String(), want)
			}
		})
	}
}
