package doctor

import (
	"encoding/json"
	"strings"
	"testing"
)

// Clients are told that a service is unavailable, not why.
func TestAPIServicesThatAreNotAvailable(t *testing.T) {
	var list apiServiceList
	if err := json.Unmarshal([]byte(`{"items": [
		{"metadata": {"name": "v1."}, "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]}},
		{"metadata": {"name": "v1.new"}, "status": {}},
		{"metadata": {"name": "v1.b"}, "status": {"conditions": [{"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck",
			"message": "x509: certificate has expired"}]}},
		{"metadata": {"name": "v1.c"}, "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]}}
	]}`), &list); err != nil {
		t.Fatal(err)
	}
	checks := judgeAPIServices(list)
	if len(checks) != 2 || checks[0].Result != Fail || checks[0].Name != "apiservice/v1.b" ||
		checks[0].Detail != "not available: x509: certificate has expired" || !strings.Contains(checks[0].Advice, "kctl delete apiservice v1.b") ||
		checks[1].Detail != "not available: ServiceNotFound" {
		t.Errorf("%+v", checks)
	}
}
