package server

import (
	"errors"
	"io/fs"
	"testing"

	"kctl/apiserver/internal/config"
)

// TestAnAuditPolicyIsReadAtTheStart: a missing policy file is an error, even if
// no log and no webhook is configured.
func TestAnAuditPolicyIsReadAtTheStart(t *testing.T) {
	o := config.Defaults()
	o.Audit.PolicyFile = t.TempDir() + "/none"
	if auditor, err := newAuditor(&process{options: o}); auditor != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
