package daemon

import (
	"crypto/tls"
	"slices"
	"testing"
)

func TestCipherSuites(t *testing.T) {
	var c tls.Config
	o := TLSOptions{CipherSuites: []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}
	want := []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	if err := o.Apply(&c); err != nil || !slices.Equal(c.CipherSuites, want) {
		t.Errorf("%x, %v; want %x", c.CipherSuites, err, want)
	}
	for _, name := range []string{"TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM", "CHACHA20_POLY1305", ""} {
		if err := (&TLSOptions{CipherSuites: []string{name}}).Validate(); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
