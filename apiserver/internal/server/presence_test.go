package server

import (
	"strings"
	"testing"

	"go.uber.org/zap"

	"kctl/apiserver/internal/config"
)

func TestReachedAt(t *testing.T) {
	for _, c := range []struct {
		bind, advertise string
		want            string // "" for nothing
	}{
		{"127.0.0.1", "", ""},
		{"::1", "", ""},
		{"192.0.2.7", "", "192.0.2.7:6443"},
		{"0.0.0.0", "192.0.2.8", "192.0.2.8:6443"},
		{"127.0.0.1", "2001:db8::1", "[2001:db8::1]:6443"},
	} {
		s := &endpoint{process: &process{options: &config.Options{BindAddress: c.bind, AdvertiseAddress: c.advertise}, logger: zap.NewNop()}, port: 6443}
		address, ok := s.reachedAt()
		if got := address.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("bound to %s, advertised %q: %s %v, want %q", c.bind, c.advertise, got, ok, c.want)
		}
		if got, want := s.keySetURI("[::]:6443"), "https://"+address.String()+"/openid/v1/jwks"; got != want {
			t.Errorf("bound to %s, advertised %q: the keys are at %s, want %s", c.bind, c.advertise, got, want)
		}
		const elsewhere = "https://keys.example.com/openid/v1/jwks"
		if s.options.ServiceAccountJWKSURI = elsewhere; s.keySetURI("[::]:6443") != elsewhere {
			t.Errorf("the keys are at %s, want %s", s.keySetURI("[::]:6443"), elsewhere)
		}
	}
}

func TestAdvertiseAddressIsReachable(t *testing.T) {
	for address, good := range map[string]bool{"": true, "192.0.2.1": true, "fd00::1": true, "127.0.0.1": false, "0.0.0.0": false, "me": false} {
		o := config.Defaults()
		o.DataDir, o.AdvertiseAddress = t.TempDir(), address
		if strings.Contains(address, ":") {
			o.ServiceClusterIPRange = "fd00:10::/112" // of the same family
		}
		o.Complete()
		if err := o.Validate(Controllers()); (err == nil) != good {
			t.Errorf("--advertise-address=%q: %v", address, err)
		}
	}
}
