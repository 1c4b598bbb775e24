package webhook

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"kctl/apiserver/internal/admission/condition"
)

// TestALongAnswerInTheLog: what a webhook answered is cut in the log, as it is for the client.
func TestALongAnswerInTheLog(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	p := &plugin{Surroundings: condition.Surroundings{Logger: zap.New(core)}, kind: validatingKind}
	cause := errors.New("expected response.uid=a, got " + strings.Repeat("u", 1<<20))
	err := p.handleError(t.Context(), &invocation{hook: &hook{name: "h"}}, &callError{"h", cause})
	if err == nil || !strings.Contains(err.Error(), "expected response.uid=a") {
		t.Fatalf("%.200v", err)
	}
	for _, entry := range logs.All() {
		if said := entry.ContextMap()["error"].(string); len(said) > 20_000 || !strings.HasPrefix(said, "expected response.uid=a") {
			t.Errorf("%.200s (%d bytes)", said, len(said))
		}
	}
	if logs.Len() != 1 {
		t.Errorf("%d lines in the log, want one", logs.Len())
	}
}
