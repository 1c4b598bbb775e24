package send

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCascade(t *testing.T) {
	for text, want := range map[Cascade]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
		"true": metav1.DeletePropagationBackground, "false": metav1.DeletePropagationOrphan,
	} {
		cascade := text
		var said strings.Builder
		if err := cascade.Settle(&said); err != nil || *cascade.Propagation() != want {
			t.Errorf("%s: %s, %v; want %s", text, *cascade.Propagation(), err, want)
		}
		if warned := strings.Contains(said.String(), "deprecated"); warned != (text != cascade) {
			t.Errorf("%s: %q", text, said.String())
		}
	}
	unknown := Cascade("perhaps")
	if err := unknown.Settle(&strings.Builder{}); err == nil {
		t.Error("an unknown value is accepted")
	}
}
