package resources_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"
)

// TestAmountsAreRounded: quantities are rounded up to thousandths in every
// field.
func TestAmountsAreRounded(t *testing.T) {
	finer := regexp.MustCompile(`[0-9][un]"`)
	b := start(t)
	for name, spec := range map[string]string{
		"limitranges": `{"limits":[{"type":"Container","max":{"cpu":"0.00001"},"min":{"cpu":"0.00001"},"default":{"cpu":"0.00001"},` +
			`"defaultRequest":{"cpu":"0.00001"},"maxLimitRequestRatio":{"cpu":"1.00001"}}]}`,
		"resourcequotas":         `{"hard":{"cpu":"0.00001"}}`,
		"persistentvolumes":      `{"capacity":{"storage":"1.00001"}}`,
		"persistentvolumeclaims": `{"resources":{"requests":{"storage":"1.00001"},"limits":{"storage":"1.00001"}}}`,
		"pods": `{"overhead":{"cpu":"0.00001"},"resources":{"limits":{"cpu":"0.00001"}},"containers":[{"resources":{"limits":{"cpu":"0.00001"}}}],` +
			`"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"1.00001"}}}}}}]}`,
	} {
		found := false
		for _, served := range b.served {
			if info := served.Resource.Info().Resource; info.Name != name || info.Group != "" {
				continue
			}
			found = true
			obj := served.Resource.New()
			if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), obj); err != nil {
				t.Fatal(err)
			}
			served.Resource.Default(obj)
			made, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			if finer.Match(made) || !bytes.Contains(made, []byte(`1m"`)) {
				t.Errorf("%s: %s", name, made)
			}
		}
		if !found {
			t.Errorf("there are no %s", name)
		}
	}
}
