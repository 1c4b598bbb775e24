package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"kctl/proto/pki"
)

const (
	clientSigner  = certificatesv1.KubeAPIServerClientSignerName
	kubeletSigner = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName
)

var node = x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}}

func TestRules(t *testing.T) {
	with := func(change func(*x509.CertificateRequest)) *x509.CertificateRequest {
		r := node
		change(&r)
		return &r
	}
	none := func(*x509.CertificateRequest) {}
	names := func(r *x509.CertificateRequest) { r.DNSNames = []string{"n1"} }
	for name, test := range map[string]struct {
		signer  string
		request *x509.CertificateRequest
		usages  string
		want    string
	}{
		"client":                      {clientSigner, with(none), "client auth", ""},
		"client, for RSA":             {clientSigner, with(none), "client auth,digital signature,key encipherment", ""},
		"client that serves":          {clientSigner, with(none), "client auth,server auth", `"server auth" is not permitted`},
		"client for nothing":          {clientSigner, with(none), "digital signature", `did not include "client auth"`},
		"client that signs others":    {clientSigner, with(none), "client auth,cert sign", `"cert sign" is not permitted`},
		"kubelet":                     {kubeletSigner, with(none), "client auth,digital signature", ""},
		"kubelet without a signature": {kubeletSigner, with(none), "client auth", `did not include "digital signature"`},
		"kubelet that serves":         {kubeletSigner, with(none), "server auth,digital signature", `did not include "client auth"`},
		"kubelet with names":          {kubeletSigner, with(names), "client auth,digital signature", "not permitted"},
		"kubelet of another group": {kubeletSigner, with(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }),
			"client auth,digital signature", "organization"},
		"kubelet of two groups": {kubeletSigner, with(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }),
			"client auth,digital signature", "organization"},
		"kubelet of another name": {kubeletSigner, with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "root" }), "client auth,digital signature",
			"common name"},
		"kubelet with an address": {kubeletSigner, with(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }), "client auth,digital signature",
			"email"},
		"kubelet with a URI": {kubeletSigner, with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Host: "h"}} }), "client auth,digital signature",
			"URIs"},
		"serving": {servingSigner, with(names), "server auth,digital signature", ""},
		"serving by address": {servingSigner, with(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }),
			"server auth,digital signature,key encipherment", ""},
		"serving without a name":  {servingSigner, with(none), "server auth,digital signature", "is required"},
		"serving as a client too": {servingSigner, with(names), "server auth,digital signature,client auth", `"client auth" is not permitted`},
		"legacy":                  {certificatesv1beta1.LegacyUnknownSignerName, with(names), "any", ""},
		"another signer":          {"acme.test/x", with(none), "client auth", "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			var usages []certificatesv1.KeyUsage
			for usage := range strings.SplitSeq(test.usages, ",") {
				usages = append(usages, certificatesv1.KeyUsage(usage))
			}
			err := Check(test.signer, test.request, usages)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func authority(t *testing.T, lasts time.Duration) *Authority {
	t.Helper()
	ca, err := pki.NewCA("cluster", now, lasts)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{CertFile: filepath.Join(t.TempDir(), "ca.crt"), KeyFile: filepath.Join(t.TempDir(), "ca.key"), Longest: 30 * 24 * time.Hour}
	if err := ca.Save(a.CertFile, a.KeyFile); err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	return a
}

func asked(t *testing.T) *x509.CertificateRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &node, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestSign(t *testing.T) {
	a := authority(t, 365*24*time.Hour)
	for seconds, want := range map[int32]time.Duration{
		0:       30*24*time.Hour - backdate, // not requested
		3600:    time.Hour,
		60:      minValidity,
		86400:   24*time.Hour - backdate,
		8640000: 30*24*time.Hour - backdate, // more than the maximum
	} {
		spec := &certificatesv1.CertificateSigningRequestSpec{Usages: []certificatesv1.KeyUsage{"client auth", "digital signature"}}
		if seconds > 0 {
			spec.ExpirationSeconds = new(seconds)
		}
		data, err := a.Sign(asked(t), spec, now)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(data)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := cert.NotAfter.Sub(now); got != want || !cert.NotBefore.Equal(now.Add(-backdate)) {
			t.Errorf("%d seconds: from %s, for %s, want %s", seconds, cert.NotBefore, got, want)
		}
		if cert.IsCA || !cert.BasicConstraintsValid || cert.Subject.CommonName != "system:node:n1" || cert.KeyUsage != x509.KeyUsageDigitalSignature ||
			len(cert.ExtKeyUsage) != 1 || cert.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
			t.Errorf("certificate %+v", cert)
		}
	}
}

func TestAuthorityThatEnds(t *testing.T) {
	spec := &certificatesv1.CertificateSigningRequestSpec{Usages: []certificatesv1.KeyUsage{"client auth"}}
	a := authority(t, time.Hour)
	data, err := a.Sign(asked(t), spec, now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if cert, err := x509.ParseCertificate(block.Bytes); err != nil || !cert.NotAfter.Equal(now.Add(time.Hour)) {
		t.Errorf("it outlives its authority: %v", err)
	}
	if _, err := a.Sign(asked(t), spec, now.Add(2*time.Hour)); err == nil || !strings.Contains(err.Error(), "it expired at") {
		t.Errorf("signed by an authority that has ended: %v", err)
	}
	leaf, err := pki.SelfSigned(pki.Subject{CommonName: "x", Server: true}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := leaf.Save(a.CertFile, a.KeyFile); err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), "not a CA certificate") {
		t.Errorf("a serving certificate would sign: %v", err)
	}
}
