package servertest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/config"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: RequestResponse, resources: [{resources: [configmaps]}]}
- {level: Metadata, resources: [{resources: [secrets, namespaces, users]}], omitStages: []}
- {level: Metadata, resources: [{resources: [nodes]}], verbs: [watch]}
- {level: Metadata, resources: [{resources: [serviceaccounts/token, endpoints, pods/binding]}]}
- {level: RequestResponse, resources: [{resources: [services/proxy]}]}
- {level: RequestResponse, nonResourceURLs: ["/apis/apps/v1"]}
- {level: Metadata, userGroups: [dev]}
- {level: None, userGroups: ["system:authenticated"]}
- {level: Metadata, nonResourceURLs: ["/secret-door"]}
`

// StartAudited starts a server that writes an audit log, and returns the log's
// path.
func StartAudited(t *testing.T) (*Cluster, string) {
	t.Helper()
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return StartIn(t, dir, func(o *config.Options) {
		o.Audit.PolicyFile, o.Audit.Log.Path = policy, path
		o.Audit.LogSink.Mode, o.Audit.LogSink.Batch.MaxSize = audit.ModeBatch, 1
	}), path
}

// AuditEvents are the events in an audit log from requests with this user
// agent.
func AuditEvents(t *testing.T, path, agent string) []audit.Event {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var found []audit.Event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e audit.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if e.UserAgent == agent {
			found = append(found, e)
		}
	}
	return found
}
