package hosts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/test/harness"
)

// TestDiscovery has upstream's Prometheus find the API server and the kubelet
// through the API, by prometheus-discovery.yml, with the rights in rbac.yaml.
func TestDiscovery(t *testing.T) {
	upstream := harness.Upstream(t, "prometheus")
	harness.NeedRoot(t)
	s := newSingle(t)
	dir, source := t.TempDir(), filepath.Join(harness.Root(), "deploy", "observability")
	config, err := os.ReadFile(filepath.Join(source, "prometheus-discovery.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("10.0.0.1", "192.0.2.1", "/etc/prometheus/kctl", dir, "interval: 15s", "interval: 1s", "rules.yml",
		source+"/rules.yml").Replace(string(config))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.bash(t, dir, upstream, `kctl up --address=192.0.2.1 --node-name=watched
kctl apply -f `+source+`/rbac.yaml
cp /var/lib/kctl/pki/ca.crt .
kctl pki kubeconfig --dir=/var/lib/kctl --user=prometheus --expires=1h --server=https://192.0.2.1:6443 --out=prometheus.kubeconfig
view() { kctl config view --kubeconfig=prometheus.kubeconfig --raw -o "jsonpath={.users[0].user.client-$1-data}" | base64 -d; }
view certificate >prometheus.crt
view key >prometheus.key
prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9090 &
`)
	client := http.Client{Transport: &http.Transport{DialContext: s.dial, DisableKeepAlives: true}}
	for _, want := range []string{
		`up{instance="192.0.2.1:6443",job="apiserver"}`,
		`up{instance="watched",job="kubelet",node="watched"}`,
	} {
		harness.Eventually(t, patience, func() error { return isOne(t, &client, want) })
	}
}

// isOne returns an error unless the series is 1 in Prometheus.
func isOne(t *testing.T, client *http.Client, series string) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090/api/v1/query?query=up", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	var found []string
	for _, r := range answer.Data.Result {
		is := `up{instance="` + r.Metric["instance"] + `",job="` + r.Metric["job"] + `"`
		if node := r.Metric["node"]; node != "" {
			is += `,node="` + node + `"`
		}
		is += "}"
		if is == series && r.Value[1] == "1" {
			return nil
		}
		found = append(found, fmt.Sprint(is, " ", r.Value[1]))
	}
	return fmt.Errorf("no %s that is 1; there are %q", series, found)
}
