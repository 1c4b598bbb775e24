package clientauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"

	"k8s.io/apimachinery/pkg/apis/asn1"
)

// TestUIDOfACertificate: the uid that a certificate's subject carries is the
// user's, so that an account made again under an old name is another user.
func TestUIDOfACertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		attributes []string
		uid, err   string
	}{
		"none":  {},
		"one":   {attributes: []string{"1234-5"}, uid: "1234-5"},
		"two":   {attributes: []string{"1", "2"}, err: "it has 2 uids"},
		"empty": {attributes: []string{""}, err: "must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			subject := pkix.Name{CommonName: "jane"}
			for _, value := range test.attributes {
				subject.ExtraNames = append(subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.X509UID(), Value: value})
			}
			template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject}
			der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			user, err := UserOf(leaf, [32]byte{})
			want := "jane"
			if test.err != "" {
				want = ""
			}
			check(t, user, user != nil, err, want, test.err)
			if user != nil && user.UID != test.uid {
				t.Errorf("uid %q, want %q", user.UID, test.uid)
			}
		})
	}
}
