package server

import (
	"errors"
	"io/fs"
	"testing"

	"kctl/apiserver/internal/config"
)

// TestAnAuditPolicyIsReadAtTheStart: a policy that is not there is told of, though there
// is neither a log nor a webhook that events would go to.
func TestAnAuditPolicyIsReadAtTheStart(t *testing.T) {
	o := config.Defaults()
	o.Audit.PolicyFile = t.TempDir() + "/none"
	if auditor, err := (&Server{options: o}).newAuditor(); auditor != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
