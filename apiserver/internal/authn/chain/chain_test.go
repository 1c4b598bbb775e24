package chain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/config"
	"kctl/proto/pki"
)

// TestAnonymousByFlag: with --anonymous-auth on, off, and not set.
func TestAnonymousByFlag(t *testing.T) {
	for flags, want := range map[string]authn.AnonymousRule{
		"": {Enabled: true, Paths: HealthPaths}, "--anonymous-auth=false": {}, "--anonymous-auth": {Enabled: true},
	} {
		o, set := config.Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(set)
		if err := set.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if got := (&Authentication{o: Options{Flags: o}}).anonymousByFlag(); got.Enabled != want.Enabled || !slices.Equal(got.Paths, want.Paths) {
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
	o.DataDir = t.TempDir()
	o.Complete()
	begin := func() error {
		_, err := New(Options{Flags: o, Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Logger: zap.NewNop()})
		return err
	}
	if err := begin(); err == nil || !strings.Contains(err.Error(), "--requestheader-allowed-names") {
		t.Errorf("every client may name any user: %v", err)
	}
	o.RequestHeader.AllowedNames = []string{"front"}
	if err := begin(); err != nil {
		t.Error(err)
	}
}
