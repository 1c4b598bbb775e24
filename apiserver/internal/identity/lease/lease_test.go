package lease

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestLabels: a host whose name no label can have has a server with a Lease all the same.
func TestLabels(t *testing.T) {
	for host, want := range map[string]bool{"vm": true, "": true, strings.Repeat("a", 64): false, "vm-": false, "v m": false} {
		got := labelsOn(host)
		if _, labelled := got[corev1.LabelHostname]; labelled != want || got[label] != "kube-apiserver" {
			t.Errorf("on %q: %v", host, got)
		}
		if _, err := labels.ValidatedSelectorFromSet(got); err != nil {
			t.Errorf("on %q: %v", host, err)
		}
	}
}
