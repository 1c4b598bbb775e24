package profile

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The written configuration can be read with the same result, and does not
// contain the extenders' keys.
func TestEffective(t *testing.T) {
	given, err := parse([]byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /k}
podMaxBackoffSeconds: 20
profiles:
- schedulerName: a
  percentageOfNodesToScore: 30
  plugins:
    multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: TaintToleration, weight: 7}]}
- schedulerName: b
extenders:
- urlPrefix: https://x
  tlsConfig: {keyData: c2VjcmV0, certData: cHVibGlj}
`))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := given.WriteTo(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "keyData") || !strings.Contains(string(text), "certData: cHVibGlj") ||
		string(given.Extenders[0].TLSConfig.KeyData) != "secret" {
		t.Errorf("the key is shown, or lost: %s", text)
	}
	read, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if read.Kubeconfig != "/k" || read.MaxBackoff != given.MaxBackoff || *read.Profiles[0].PercentageOfNodesToScore != 30 {
		t.Errorf("read %+v, given %+v", read, given)
	}
	once, twice := given.Effective(), read.Effective()
	once.Extenders[0].TLSConfig, twice.Extenders[0].TLSConfig = nil, nil
	if !reflect.DeepEqual(once.Profiles, twice.Profiles) {
		t.Errorf("profiles are %+v, read %+v", once.Profiles, twice.Profiles)
	}
	weights := map[string]int32{}
	for _, p := range once.Profiles[0].Plugins.MultiPoint.Enabled {
		weights[p.Name] = 0
		if p.Weight != nil {
			weights[p.Name] = *p.Weight
		}
	}
	if _, there := weights["ImageLocality"]; there || weights["TaintToleration"] != 7 || weights["NodeAffinity"] != 2 ||
		len(once.Profiles[1].Plugins.MultiPoint.Enabled) != len(defaults)-1 {
		t.Errorf("plugins of the first profile: %v", weights)
	}
}
