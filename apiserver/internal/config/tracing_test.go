package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTracingConfiguration(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n"
	for content, want := range map[string]string{
		header + "endpoint: localhost:4317\nsamplingRatePerMillion: 100": "",
		strings.Replace(header, "v1beta1", "v1", 1):                      "",
		"":                             "", // without its kind, as in upstream
		"# nothing yet":                "",
		"endpoint: localhost:4317":     "",
		"kind: TracingConfiguration":   "",
		"kind: AdmissionConfiguration": "AdmissionConfiguration",
		"apiVersion: v1":               "must be of kind TracingConfiguration",
		"sampling: 1":                  "sampling",
		header + "samplingRatePerMillion: 1000001":        "less than or equal to one million",
		header + "endpoint: ftp://collector":              "unsupported scheme",
		header + "sampling: 1":                            "sampling",
		strings.Replace(header, "Tracing", "Tracking", 1): "TrackingConfiguration",
	} {
		path := filepath.Join(t.TempDir(), "tracing.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := parse(t, "--tracing-config-file="+path).Validate(loops)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--tracing-config-file")) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	if err := parse(t, "--tracing-config-file=/nowhere").Validate(loops); err == nil {
		t.Error("a file that is not there is taken")
	}
}
