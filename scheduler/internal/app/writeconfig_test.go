package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"kctl/scheduler/internal/config"
)

// --write-config-to writes down only what a scheduler could start with, as
// kube-scheduler's, and needs no API server for that.
func TestOnlyAUsableConfigurationIsWrittenDown(t *testing.T) {
	for configured, want := range map[string]string{
		"podMaxBackoffSeconds: 20\n":                                 "",
		"profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]": `unknown plugin "Nope"`,
		"extenders: [{filterVerb: filter}]":                          "extenders[0].urlPrefix",
	} {
		file, written := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "written")
		if err := os.WriteFile(file, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+configured), 0o600); err != nil {
			t.Fatal(err)
		}
		options, flags := config.NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(flags)
		if err := flags.Parse([]string{"--config=" + file, "--write-config-to=" + written}); err != nil {
			t.Fatal(err)
		}
		configuration, err := options.Complete()
		if err == nil {
			err = Run(t.Context(), options, configuration, nil, zap.NewNop())
		}
		content, missing := os.ReadFile(written)
		switch {
		case want == "" && (err != nil || !strings.Contains(string(content), "podMaxBackoffSeconds: 20")):
			t.Errorf("%s: wrote %q, %v", configured, content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || missing == nil):
			t.Errorf("%s: wrote %q, %v; want no file and an error with %q", configured, content, err, want)
		}
	}
}
