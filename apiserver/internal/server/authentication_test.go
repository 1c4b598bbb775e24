package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/config"
	"kctl/proto/pki"
)

// TestAnonymousByFlag: what --anonymous-auth says, and what holds without it.
func TestAnonymousByFlag(t *testing.T) {
	for flags, want := range map[string]authn.AnonymousRule{
		"": {Enabled: true, Paths: healthPaths}, "--anonymous-auth=false": {}, "--anonymous-auth": {Enabled: true},
	} {
		o, set := config.Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(set)
		if err := set.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if got := (&Server{options: o}).anonymousByFlag(); got.Enabled != want.Enabled || !slices.Equal(got.Paths, want.Paths) {
			t.Errorf("%q: %+v, want %+v", flags, got, want)
		}
	}
}

func TestProxiesAndClientsOfOneAuthority(t *testing.T) {
	ca, err := pki.NewCA("both", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Defaults()
	o.ClientCAFile, o.RequestHeader.ClientCAFile, o.RequestHeader.UsernameHeaders = file, file, []string{"X-Remote-User"}
	s := &Server{options: o, accounts: &accounts{}, clock: clock.RealClock{}}
	if _, err := s.authentication(objects{}); err == nil || !strings.Contains(err.Error(), "--requestheader-allowed-names") {
		t.Errorf("every client may name any user: %v", err)
	}
	o.RequestHeader.AllowedNames = []string{"front"}
	if _, err := s.authentication(objects{}); err != nil {
		t.Error(err)
	}
}
