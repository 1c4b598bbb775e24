package release

import (
	"strings"
	"testing"
)

func TestCheckGates(t *testing.T) {
	differs := map[string]bool{"MemoryQoS": false, "EventedPLEG": true, "NodeSwap": false}
	for gate, want := range map[string]string{
		"ContainerRestartRules=true":  "",
		"ContainerRestartRules=false": "can't be turned off",
		"CRIListStreaming=false":      "",
		"CRIListStreaming=true":       "not supported",
		"ImageVolume=true":            "",
		"ImageVolume=false":           "locked to true",
		"GitRepoVolumeDriver=true":    "locked to false",
		"GitRepoVolumeDriver=false":   "",
		"H2CContainerProbe=false":     "",
		"MemoryQoS=false":             "",
		"MemoryQoS=true":              "not supported",
		"EventedPLEG=true":            "",
		"EventedPLEG=false":           "not supported",
		"NodeSwap=true":               "not supported",
		"AllAlpha=false":              "",
		"AllAlpha=true":               "not supported",
		"SidecarContainers=true":      "unknown feature gate",
		"ImageVolume=maybe":           "must be true or false",
	} {
		name, value, _ := strings.Cut(gate, "=")
		err := CheckGates(map[string]string{name: value}, differs)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "--feature-gates="+gate) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", gate, err, want)
		}
	}
}
