package clustertrustbundle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func anchor(t *testing.T, authority bool) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: authority, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// The words are kube-apiserver v1.37.0's.
func TestBundles(t *testing.T) {
	one, two := anchor(t, true), anchor(t, true)
	const bundle = `spec.trustBundle: Invalid value: "<value omitted>": `
	for what, c := range map[string]struct{ name, signer, anchors, want string }{
		"two":             {"x", "", one + "some text\n" + two, ""},
		"of a signer":     {"a.b:c:x", "a.b/c", one, ""},
		"none":            {"x", "", "", bundle + "at least one trust anchor must be provided"},
		"twice":           {"x", "", one + two + one, bundle + "duplicate trust anchor (indices [0 2])"},
		"no authority":    {"x", "", anchor(t, false), bundle + "entry 0 does not have the CA bit set"},
		"a key":           {"x", "", one + strings.ReplaceAll(two, "CERTIFICATE", "PRIVATE KEY"), bundle + "entry 1 has bad block type: PRIVATE KEY"},
		"headers":         {"x", "", strings.Replace(one, "-----\n", "-----\nA: b\n\n", 1), bundle + "entry 0 has PEM block headers"},
		"nonsense":        {"x", "", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", bundle + "entry 0 does not parse as X.509"},
		"huge":            {"x", "", one + strings.Repeat("#", maxBundle), "spec.trustBundle: Too long: may not be more than 1048576 bytes"},
		"another's name":  {"x", "a.b/c", one, `metadata.name: Invalid value: "x": ClusterTrustBundle for signerName a.b/c must be named with prefix a.b:c:`},
		"a signer's name": {"a.b:c:x", "", one, `metadata.name: Invalid value: "a.b:c:x": ClusterTrustBundle without signer name must not have ":" in its name`},
		"no such signer": {"nosuch:x", "nosuch", one,
			`spec.signerName: Invalid value: "nosuch": must be a fully qualified domain and path of the form 'example.com/signer-name'`},
		"more of a signer": {"a.b:c:x:y", "a.b/c", one, `metadata.name: Invalid value: "a.b:c:x:y": a lowercase RFC 1123 subdomain must consist of`},
	} {
		b := &certificatesv1.ClusterTrustBundle{Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: c.signer, TrustBundle: c.anchors}}
		b.Name = c.name
		errs := validate(b).ToAggregate()
		if c.want == "" && errs != nil || c.want != "" && (errs == nil || !strings.HasPrefix(errs.Error(), c.want)) {
			t.Errorf("%s:\n got %v\nwant %s", what, errs, c.want)
		}
	}
}
